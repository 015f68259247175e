"""P and C: prompts, and completion of their arguments."""

from __future__ import annotations

import re
from typing import Any

from conformance import revisions
from conformance.check import NotApplicable, case, cases_of, need
from conformance.client.frames import Frame, show
from conformance.client.results import result_of
from conformance.context import Context
from conformance.suites.tool_results import encoded

KINDS = {
    revisions.A: {"text", "image", "resource"},
    revisions.B: {"text", "image", "audio", "resource"},
}


def prompt(ctx: Context, *names: str) -> dict[str, Any]:
    ctx.require("prompts")
    for found in ctx.facts.prompts:
        if found.get("name") in names:
            return found
    raise NotApplicable(f"no prompt called {' or '.join(names)}")


def required(found: dict[str, Any]) -> list[str]:
    arguments = found.get("arguments") or []
    return [str(a.get("name")) for a in arguments if isinstance(a, dict) and a.get("required")]


def get(ctx: Context, name: Any, arguments: Any = None) -> Frame:
    params = {"name": name} if arguments is None else {"name": name, "arguments": arguments}
    return ctx.peer.call("prompts/get", params)


def messages(ctx: Context, name: Any, arguments: Any = None) -> list[dict[str, Any]]:
    found = result_of(get(ctx, name, arguments), "prompts/get").get("messages")
    need(isinstance(found, list), f"messages is {found!r}")
    assert isinstance(found, list)
    for message in found:
        need(
            message.get("role") in ("user", "assistant"),
            f"a message has the role {message.get('role')!r}",
        )
        content = message.get("content")
        kind = content.get("type") if isinstance(content, dict) else None
        allowed = KINDS.get(ctx.revision, {"text", "image", "audio", "resource", "resource_link"})
        need(kind in allowed, f"a message has content of type {kind!r}")
    return found


@case("P01a")
def _list(ctx: Context) -> None:
    ctx.require("prompts")
    listed = ctx.peer.result("prompts/list", {}).get("prompts")
    need(isinstance(listed, list), f"prompts is {listed!r}")


@case("P01b")
def _unknown(ctx: Context) -> None:
    ctx.require("prompts")
    frame = get(ctx, "no-such-prompt-here")
    need(frame.kind == "error", f"a prompt that does not exist: {show(frame.raw)}")


@case("P01c")
def _unknown_code(ctx: Context) -> None:
    ctx.require("prompts")
    code = get(ctx, "no-such-prompt-here").code
    need(code == -32602, f"an unknown prompt gave {code!r}, which is not -32602")


def _with_required(ctx: Context) -> tuple[dict[str, Any], list[str]]:
    ctx.require("prompts")
    for found in ctx.facts.prompts:
        if required(found):
            return found, required(found)
    raise NotApplicable("no prompt requires an argument")


@case("P01d")
def _missing_argument(ctx: Context) -> None:
    _with_required(ctx)
    for found in ctx.facts.prompts:
        names = required(found)
        for missing in names:  # every argument on its own, because each may be checked elsewhere
            given = {name: "value" for name in names if name != missing}
            frame = get(ctx, found.get("name"), given)
            where = f"{found.get('name')!r} without {missing!r}"
            need(frame.kind == "error", f"{where} was served: {show(frame.raw)}")
            need(frame.code == -32602, f"{where} gave {frame.code!r}, which is not -32602")


@case("P01e")
def _number_argument(ctx: Context) -> None:
    found, names = _with_required(ctx)
    frame = get(ctx, found.get("name"), dict.fromkeys(names, 17))
    need(frame.kind == "error", f"arguments are strings; a number was accepted: {show(frame.raw)}")


def no_name(ctx: Context, params: dict[str, Any]) -> None:
    ctx.require("prompts")
    frame = ctx.peer.call("prompts/get", params)
    need(frame.kind == "error", f"{params} was answered with {show(frame.raw)}")


cases_of((("P03a", {}), ("P03b", {"name": 17})), no_name)


@case("P02a")
def _simple(ctx: Context) -> None:
    ctx.require("prompts")
    bare = [p for p in ctx.facts.prompts if not required(p)]
    if not bare:
        raise NotApplicable("every prompt requires arguments")
    for found in bare:
        if get(ctx, found.get("name"), {}).code != -32021:  # it needs a capability of the client
            messages(ctx, found.get("name"), {})


@case("P02e")
def _arguments_absent(ctx: Context) -> None:
    ctx.require("prompts")
    tried = 0
    for found in ctx.facts.prompts:
        if required(found) or get(ctx, found.get("name"), {}).kind == "error":
            continue
        tried += 1
        frame = ctx.peer.call("prompts/get", {"name": found.get("name")})
        need(frame.kind == "result", f"without arguments: {show(frame.raw)}")
    if not tried:
        raise NotApplicable("no prompt can be had with empty arguments")


@case("P02b")
def _arguments_used(ctx: Context) -> None:
    found, names = _with_required(ctx)
    if found.get("name") == "test_prompt_with_embedded_resource":
        raise NotApplicable("no prompt with free arguments")
    values = {name: f"value-of-{name}" for name in names}
    told = str(messages(ctx, found.get("name"), values))
    for value in values.values():
        need(value in told, f"{value!r} is missing from the messages")


@case("P02c")
def _embedded(ctx: Context) -> None:
    found = prompt(ctx, "test_prompt_with_embedded_resource")
    uri = "test://static-text"
    contents = [m["content"] for m in messages(ctx, found["name"], {"resourceUri": uri})]
    inner = [c.get("resource") for c in contents if c.get("type") == "resource"]
    need(inner, "no embedded resource in the messages")
    need(
        all(isinstance(i, dict) and i.get("uri") for i in inner), "an embedded resource without uri"
    )


@case("P02d")
def _image(ctx: Context) -> None:
    found = prompt(ctx, "test_prompt_with_image")
    images = [m["content"] for m in messages(ctx, found["name"]) if m["content"]["type"] == "image"]
    need(images, "no image in the messages")
    for image in images:
        encoded(image.get("data"), "the image")
        need(isinstance(image.get("mimeType"), str), "an image without a mimeType")


# -- completion -----------------------------------------------------------------------------------


def complete(ctx: Context, ref: Any, argument: Any, **more: Any) -> Frame:
    if ctx.revision != revisions.A:
        ctx.require("completions")
    frame = ctx.peer.call("completion/complete", {"ref": ref, "argument": argument, **more})
    if ctx.revision == revisions.A and frame.code == -32601:
        raise NotApplicable("the server offers no completion")
    return frame


def _ref(ctx: Context) -> tuple[dict[str, Any], str]:
    ctx.require("prompts")
    for found in ctx.facts.prompts:
        for argument in found.get("arguments") or []:
            return {"type": "ref/prompt", "name": found.get("name")}, str(argument.get("name"))
    raise NotApplicable("no prompt has an argument to complete")


def completion(ctx: Context, value: str = "", **more: Any) -> dict[str, Any]:
    ref, name = _ref(ctx)
    frame = complete(ctx, ref, {"name": name, "value": value}, **more)
    found = result_of(frame, "completion/complete").get("completion")
    need(isinstance(found, dict), f"completion is {found!r}")
    assert isinstance(found, dict)
    return found


@case("C01a")
def _values(ctx: Context) -> None:
    _ref(ctx)
    for found in ctx.facts.prompts:
        for argument in found.get("arguments") or []:
            ref = {"type": "ref/prompt", "name": found.get("name")}
            _few_values(ctx, ref, str(argument.get("name")))
    for template in ctx.facts.templates:
        uri = str(template.get("uriTemplate"))
        for name in re.findall(r"\{[+#./;?&]?(\w+)", uri):
            _few_values(ctx, {"type": "ref/resource", "uri": uri}, name)


def _few_values(ctx: Context, ref: dict[str, Any], name: str) -> None:
    """Complete one argument; a server may refuse arguments that it cannot complete."""
    for start in ("", "a"):
        frame = complete(ctx, ref, {"name": name, "value": start})
        if frame.kind == "error":
            continue
        found = frame.result.get("completion")
        values = found.get("values") if isinstance(found, dict) else None
        need(isinstance(values, list), f"the values of {name!r} are {values!r}")
        assert isinstance(values, list)
        need(all(isinstance(value, str) for value in values), f"the values are {values!r}")
        need(len(values) <= 100, f"{len(values)} values of {name!r}; 100 is the limit")


@case("C01b")
def _totals(ctx: Context) -> None:
    found = completion(ctx)
    total, more = found.get("total"), found.get("hasMore")
    if total is not None:
        need(total >= len(found["values"]), f"total {total} for {len(found['values'])} values")
    if more is False and total is not None:
        need(total == len(found["values"]), f"hasMore is false, but total is {total}")


@case("C01c")
def _declared(ctx: Context) -> None:
    if ctx.offers("completions"):
        ref, name = _ref(ctx)
        frame = ctx.peer.call(
            "completion/complete", {"ref": ref, "argument": {"name": name, "value": ""}}
        )
        need(frame.kind == "result", f"completions are declared but gave {show(frame.raw)}")
        return
    ref = {"type": "ref/prompt", "name": "x"}
    params = {"ref": ref, "argument": {"name": "x", "value": ""}}
    frame = ctx.peer.call("completion/complete", params)
    need(frame.kind == "error", f"completions are not declared but served: {show(frame.raw)}")


@case("C02a")
def _unknown_ref(ctx: Context) -> None:
    ref = {"type": "ref/prompt", "name": "no-such-prompt"}
    frame = complete(ctx, ref, {"name": "x", "value": ""})
    need(frame.kind == "error", f"an unknown prompt was completed: {show(frame.raw)}")
    need(frame.code == -32602, f"an unknown prompt gave {frame.code!r}, which is not -32602")


@case("C02b")
def _context(ctx: Context) -> None:
    completion(ctx, context={"arguments": {"other": "value"}})


def malformed(ctx: Context, params: dict[str, Any]) -> None:
    if ctx.revision != revisions.A:
        ctx.require("completions")
    frame = ctx.peer.call("completion/complete", params)
    if ctx.revision == revisions.A and frame.code == -32601:
        raise NotApplicable("the server offers no completion")
    need(frame.kind == "error", f"{params} was answered with {show(frame.raw)}")
    need(frame.code == -32602, f"{params} gave {frame.code!r}, which is not -32602")


cases_of(
    (
        ("C03a", {"ref": {"type": "ref/nonsense"}, "argument": {"name": "x", "value": ""}}),
        ("C03b", {"argument": {"name": "x", "value": ""}}),
        ("C03c", {"ref": {"type": "ref/prompt", "name": "test_prompt_with_arguments"}}),
    ),
    malformed,
)

"""T: the list of tools and tool calls."""

from __future__ import annotations

import re
from typing import Any

from conformance import json_schema, revisions
from conformance.check import NotApplicable, case, cases_of, need
from conformance.client.frames import Frame, show
from conformance.client.results import result_of
from conformance.context import Context
from conformance.discovery import walk

NO_TOOL = "mcp-conform-no-such-tool"
NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")


def tools(ctx: Context) -> list[dict[str, Any]]:
    ctx.require("tools")
    return [tool for page in walk(ctx.peer, "tools/list", "tools") for tool in page]


@case("T01")
def _list_answers(ctx: Context) -> None:
    ctx.require("tools")
    listed = ctx.peer.result("tools/list", {}).get("tools")
    need(isinstance(listed, list), f"tools is {listed!r}")


@case("T01b")
def _list_without_params(ctx: Context) -> None:
    ctx.require("tools")
    frame = ctx.peer.call("tools/list")
    need(frame.kind == "result", f"tools/list without params: {show(frame.raw)}")


@case("T02a")
def _names(ctx: Context) -> None:
    for tool in tools(ctx):
        name = tool.get("name")
        need(isinstance(name, str) and NAME.fullmatch(name), f"a tool is named {name!r}")


@case("T02b")
def _unique_names(ctx: Context) -> None:
    names = [str(tool.get("name")) for tool in tools(ctx)]
    twice = sorted({name for name in names if names.count(name) > 1})
    need(not twice, f"more than one tool is named {twice}")


@case("T03a")
def _input_schemas(ctx: Context) -> None:
    for tool in tools(ctx):
        found = tool.get("inputSchema")
        kind = found.get("type") if isinstance(found, dict) else None
        need(kind == "object", f"the input schema of {tool.get('name')!r} has type {kind!r}")


@case("T03b")
def _input_schemas_valid(ctx: Context) -> None:
    for tool in tools(ctx):
        wrong = json_schema.check_schema(tool.get("inputSchema"))
        need(wrong is None, f"the input schema of {tool.get('name')!r}: {wrong}")


@case("T03c")
def _no_arguments(ctx: Context) -> None:
    bare = [t for t in tools(ctx) if not (t.get("inputSchema") or {}).get("properties")]
    if not bare:
        raise NotApplicable("every tool takes arguments")
    for tool in bare:
        closed = (tool.get("inputSchema") or {}).get("additionalProperties")
        need(closed is False, f"{tool.get('name')!r} takes no arguments but does not forbid them")


def _output_schemas(ctx: Context) -> list[tuple[Any, Any]]:
    found = [(t.get("name"), t["outputSchema"]) for t in tools(ctx) if "outputSchema" in t]
    if not found:
        raise NotApplicable("no tool has an output schema")
    return found


@case("T04a")
def _output_schemas_valid(ctx: Context) -> None:
    for name, found in _output_schemas(ctx):
        wrong = json_schema.check_schema(found)
        need(wrong is None and isinstance(found, dict), f"the output schema of {name!r}: {wrong}")


@case("T04b")
def _output_schemas_are_objects(ctx: Context) -> None:
    for name, found in _output_schemas(ctx):
        kind = found.get("type") if isinstance(found, dict) else None
        need(kind == "object", f"the output schema of {name!r} has type {kind!r}")


@case("T13a")
def _same_order(ctx: Context) -> None:
    first, second = tools(ctx), tools(ctx)
    need([t.get("name") for t in first] == [t.get("name") for t in second], "the order changed")


@case("T13b")
def _same_order_elsewhere(ctx: Context) -> None:
    here = [t.get("name") for t in tools(ctx)]
    other = [t.get("name") for page in walk(ctx.fresh(), "tools/list", "tools") for t in page]
    need(here == other, "the order depends on the connection")


@case("T14a")
def _same_after_calls(ctx: Context) -> None:
    before = tools(ctx)
    for _ in range(3):
        ctx.peer.call("tools/call", ctx.echo("x") if ctx.has_role("echo") else {"name": NO_TOOL})
    need(tools(ctx) == before, "tools/list changed as a side effect of a call")


@case("T14b")
def _same_elsewhere(ctx: Context) -> None:
    here = tools(ctx)
    other = [tool for page in walk(ctx.fresh(), "tools/list", "tools") for tool in page]
    need(here == other, "tools/list depends on the connection")


@case("T15")
def _annotations(ctx: Context) -> None:
    found = [(t.get("name"), t["annotations"]) for t in tools(ctx) if "annotations" in t]
    if not found:
        raise NotApplicable("no tool has annotations")
    for name, hints in found:
        need(isinstance(hints, dict), f"the annotations of {name!r} are {hints!r}")
        for hint, value in hints.items():
            if hint.endswith("Hint"):
                need(isinstance(value, bool), f"{hint} of {name!r} is {value!r}")


@case("T18")
def _keywords_kept(ctx: Context) -> None:
    role = ctx.role("schema_2020")
    found = next(t for t in tools(ctx) if t.get("name") == role.tool)["inputSchema"]
    for word in ("$schema", "$defs", "additionalProperties"):
        need(word in found, f"{word} is missing from the input schema")


# -- invalid calls --------------------------------------------------------------------------------


def refused_call(frame: Frame) -> bool:
    """Whether a call failed with a protocol error or with `isError`."""
    return frame.kind == "error" or frame.result.get("isError") is True


@case("T08a")
def _unknown_tool(ctx: Context) -> None:
    ctx.require("tools")
    frame = ctx.peer.call("tools/call", {"name": NO_TOOL, "arguments": {}})
    need(refused_call(frame), f"a tool that does not exist succeeded: {show(frame.raw)}")


@case("T08b")
def _unknown_tool_is_a_protocol_error(ctx: Context) -> None:
    ctx.require("tools")
    frame = ctx.peer.call("tools/call", {"name": NO_TOOL, "arguments": {}})
    need(frame.kind == "error", f"reported as a result with isError: {show(frame.raw)}")
    # JSON-RPC leaves -32000 to -32099 to the server in the legacy revisions.
    allowed = frame.code == -32602 or (not ctx.modern and -32099 <= frame.code <= -32000)
    need(allowed, f"an unknown tool gave {frame.code!r}, which is not -32602")


@case("T08c")
def _names_are_case_sensitive(ctx: Context) -> None:
    ctx.require("tools")
    params = ctx.echo("x")
    other = str(params["name"]).swapcase()
    if other in {t.get("name") for t in ctx.facts.tools}:
        raise NotApplicable(f"there is a tool called {other!r} as well")
    frame = ctx.peer.call("tools/call", {**params, "name": other})
    need(refused_call(frame), f"{other!r} is not listed but was served: {show(frame.raw)}")


def _bad_arguments(ctx: Context) -> list[tuple[str, dict[str, Any]]]:
    """Calls whose arguments violate the schema of a tool with a role."""
    role = ctx.role("echo")
    name = next(iter(role.arguments(text="x")))
    return [
        ("missing", {"name": role.tool, "arguments": {}}),
        ("mistyped", {"name": role.tool, "arguments": {name: {"not": "text"}}}),
    ]


def bad_arguments(ctx: Context, which: int) -> None:
    what, params = _bad_arguments(ctx)[which]
    frame = ctx.peer.call("tools/call", params)
    need(refused_call(frame), f"a call with a {what} argument succeeded: {show(frame.raw)}")


cases_of((("T09a", 0), ("T09b", 1)), bad_arguments)


@case("T09c")
def _channel(ctx: Context) -> None:
    for what, params in _bad_arguments(ctx):
        frame = ctx.peer.call("tools/call", params)
        if ctx.revision < revisions.D:
            need(frame.kind == "error", f"a {what} argument is a protocol error: {show(frame.raw)}")
            need(frame.code == -32602, f"a {what} argument gave {frame.code!r}, not -32602")
        else:
            need(
                frame.kind == "result",
                f"a {what} argument must give a result with isError: {show(frame.raw)}",
            )


@case("T09d")
def _names_the_field(ctx: Context) -> None:
    role = ctx.role("echo")
    field = next(iter(role.arguments(text="x")))
    for what, params in _bad_arguments(ctx):
        raw = ctx.peer.call("tools/call", params).raw
        need(field.encode() in raw, f"the answer to a {what} argument does not name {field!r}")


@case("T10a")
def _arguments_absent(ctx: Context) -> None:
    role = ctx.role("simple")
    if role.arguments():
        raise NotApplicable(f"{role.tool!r} needs arguments")
    if ctx.peer.call("tools/call", {"name": role.tool, "arguments": {}}).kind == "error":
        raise NotApplicable(f"{role.tool!r} fails with empty arguments too")
    frame = ctx.peer.call("tools/call", {"name": role.tool})
    need(frame.kind == "result", f"a call without arguments failed: {show(frame.raw)}")


def odd_call(ctx: Context, changes: dict[str, Any]) -> None:
    """Params that violate the request's schema must be refused.

    The name is one that no server has: a server that ignores the arguments must not obey.
    """
    ctx.require("tools")
    params = {"name": NO_TOOL, "arguments": {}, **changes}
    if "name" in changes and changes["name"] is None:
        del params["name"]
    frame = ctx.peer.call("tools/call", params)
    need(refused_call(frame), f"{changes} was answered with {show(frame.raw)}")


cases_of(
    (
        ("T10b", {"arguments": [1, 2]}),
        ("T10c", {"arguments": "text"}),
        ("T10d", {"name": None}),
        ("T10e", {"name": 17}),
    ),
    odd_call,
)


@case("T10f")
def _odd_call_code(ctx: Context) -> None:
    ctx.require("tools")
    odd: tuple[dict[str, Any], ...] = (
        {"arguments": {}},
        {"name": 17},
        {"name": NO_TOOL, "arguments": [1]},
    )
    for params in odd:
        frame = ctx.peer.call("tools/call", params)
        # Over modern HTTP a call without a name has no Mcp-Name header, which is an error itself.
        allowed = (-32602, -32020) if ctx.endpoint.transport == "http" else (-32602,)
        own = not ctx.modern and frame.kind == "error" and -32099 <= frame.code <= -32000
        need(frame.code in allowed or own, f"{params} gave {frame.code!r}, which is not -32602")


@case("T10g")
def _arguments_null(ctx: Context) -> None:
    role = ctx.role("simple")
    frame = ctx.peer.call("tools/call", {"name": role.tool, "arguments": None})
    if frame.kind == "error":
        need(frame.code == -32602, f"null arguments gave {frame.code!r}, which is not -32602")


@case("T11a")
def _task_ignored(ctx: Context) -> None:
    if ctx.offers("tasks"):
        raise NotApplicable("the server offers tasks")
    frame = ctx.peer.call("tools/call", {**ctx.echo("task"), "task": {"ttl": 1000}})
    need(not refused_call(frame), f"a task parameter was not ignored: {show(frame.raw)}")


@case("T11b")
def _unknown_params(ctx: Context) -> None:
    frame = ctx.peer.call("tools/call", {**ctx.echo("more"), "conformExtra": {"a": 1}})
    need(not refused_call(frame), f"an unknown parameter was refused: {show(frame.raw)}")


@case("T21")
def _flood_of_calls(ctx: Context) -> None:
    peer = ctx.fresh()
    params = ctx.echo("again")
    ids = [peer.request("tools/call", params) for _ in range(200)]
    for id in ids:
        peer.reply(id)
    peer.marker()


@case("T23a")
def _change_told(ctx: Context) -> None:
    role = ctx.role("change_tools")
    ctx.require("tools", "listChanged")
    peer = ctx.fresh()
    result_of(
        peer.call("tools/call", {"name": role.tool, "arguments": role.arguments()}), "tools/call"
    )
    heard = peer.wait(lambda f: f.method == "notifications/tools/list_changed", 2)
    need(heard is not None, "no notification of changed tools")

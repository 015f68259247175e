"""Scans: rules for every frame, whoever asked for it; and the tour that brings frames about."""

from __future__ import annotations

import re
from typing import Any

from conformance import oracle, revisions
from conformance.check import Failed, NotApplicable, scan
from conformance.context import Context
from conformance.frames import kind_of
from conformance.peer import View
from conformance.wire import WireError

ANSWERS = ("result", "error")
MODERN_WORDS = ("resultType", "ttlMs", "cacheScope")
CLIENT_CAPABILITY = {
    "sampling/createMessage": "sampling",
    "elicitation/create": "elicitation",
    "roots/list": "roots",
}
META_KEY = re.compile(
    r"([A-Za-z]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z]([A-Za-z0-9-]*[A-Za-z0-9])?)*/)?"
    r"([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?"
)


def judged(wrong: str | None) -> str | bool:
    return True if wrong is None else wrong


def readable(view: View) -> bool:
    return view.frame.defect is None and isinstance(view.frame.value, dict)


# -- messages -----------------------------------------------------------------------------------


@scan("J01")
def _is_a_message(view: View) -> str | bool | None:
    value = view.frame.value
    if not readable(view):
        return "not a message" if view.frame.defect is None else None
    if value.get("jsonrpc") != "2.0":
        return f"jsonrpc is {value.get('jsonrpc')!r}"
    return True if kind_of(value) != "invalid" else "neither request, notification nor response"


@scan("J04")
def _one_of_result_and_error(view: View) -> str | bool | None:
    value = view.frame.value
    if not readable(view) or "method" in value:
        return None
    count = ("result" in value) + ("error" in value)
    return True if count == 1 else f"{count} of result and error"


@scan("J05")
def _error_object(view: View) -> str | bool | None:
    if not readable(view) or "error" not in view.frame.value:
        return None
    return judged(oracle.error(view.frame.value["error"]))


@scan("J05b")
def _error_message(view: View) -> str | bool | None:
    if view.frame.kind != "error" or not isinstance(view.frame.error.get("message"), str):
        return None
    message = view.frame.error["message"]
    if "\n" in message:
        return "an error message of several lines"
    return True if len(message) <= 400 else f"an error message of {len(message)} characters"


@scan("J26a")
def _reserved_codes(view: View) -> str | bool | None:
    if view.frame.kind != "error" or view.revision != revisions.E:
        return None
    code = view.frame.code
    if isinstance(code, int) and -32099 <= code <= -32020 and code not in (-32020, -32021, -32022):
        return f"code {code} is reserved and not defined"
    return True


@scan("J26b")
def _retired_codes(view: View) -> str | bool | None:
    if view.frame.kind != "error" or view.revision != revisions.E:
        return None
    return True if view.frame.code not in (-32002, -32042) else f"code {view.frame.code} is retired"


@scan("J26c")
def _discouraged_codes(view: View) -> str | bool | None:
    if view.frame.kind != "error" or view.revision != revisions.E:
        return None
    code = view.frame.code
    legacy = isinstance(code, int) and -32019 <= code <= -32000 and code != -32002
    return f"code {code} is of the range new servers should not use" if legacy else True


@scan("J31")
def _answered_once(view: View) -> str | bool | None:
    if view.frame.kind not in ANSWERS or not view.frame.has_id:
        return None
    return "a second answer to one request" if view.again else True


@scan("F02b")
def _plain_utf8(view: View) -> str | bool | None:
    defect = view.frame.defect or ""
    return defect if "UTF-8" in defect or "byte order" in defect else True


@scan("F03a")
def _nothing_else(view: View) -> str | bool | None:
    return view.frame.defect or True


@scan("F23a")
def _no_constants(view: View) -> str | bool | None:
    defect = view.frame.defect or ""
    return defect if re.match(r"-?(NaN|Infinity)", defect) else True


@scan("F31")
def _no_requests(view: View) -> str | bool | None:
    if view.revision != revisions.E or view.peer.initialized:
        return None
    return "a request from the server" if view.frame.kind == "request" else True


# -- eras ---------------------------------------------------------------------------------------


@scan("L07a")
def _declared_only(view: View) -> str | bool | None:
    needed = CLIENT_CAPABILITY.get(view.frame.method or "")
    if view.frame.kind != "request" or needed is None:
        return None if view.frame.kind != "result" else True
    declared = needed in view.peer.capabilities
    return True if declared else f"{view.frame.method}, which the client did not declare"


scan("L07b")(_declared_only)


@scan("V14a")
def _no_modern_words(view: View) -> str | bool | None:
    if view.frame.kind != "result" or view.revision == revisions.E:
        return None
    if not isinstance(view.frame.result, dict):
        return None
    meta = view.frame.result.get("_meta")
    words = [word for word in MODERN_WORDS if word in view.frame.result]
    words += [k for k in (meta if isinstance(meta, dict) else {}) if k == revisions.SERVER_INFO]
    return f"{words} in a legacy result" if words else True


@scan("V14b")
def _result_type(view: View) -> str | bool | None:
    if view.frame.kind != "result" or view.revision != revisions.E or view.sent is None:
        return None
    result = view.frame.result
    return True if isinstance(result, dict) and "resultType" in result else "no resultType"


@scan("V15")
def _names_itself(view: View) -> str | bool | None:
    if view.frame.kind != "result" or view.revision != revisions.E:
        return None
    meta = view.frame.result.get("_meta") if isinstance(view.frame.result, dict) else None
    named = isinstance(meta, dict) and revisions.SERVER_INFO in meta
    return True if named else "the result does not name the server"


@scan("V17")
def _meta_keys(view: View) -> str | bool | None:
    body = view.frame.result if view.frame.kind == "result" else view.frame.params
    meta = body.get("_meta") if isinstance(body, dict) else None
    if not isinstance(meta, dict):
        return None
    odd = [name for name in meta if not META_KEY.fullmatch(name)]
    return f"_meta keys {odd}" if odd else True


@scan("V19")
def _known_result_type(view: View) -> str | bool | None:
    if view.frame.kind != "result" or view.revision != revisions.E:
        return None
    kind = view.frame.result.get("resultType") if isinstance(view.frame.result, dict) else None
    if kind is None:
        return None
    return True if kind in ("complete", "input_required") else f"resultType {kind!r}"


@scan("K03a")
def _no_legacy_hints(view: View) -> str | bool | None:
    if view.frame.kind != "result" or view.revision == revisions.E:
        return None
    result = view.frame.result
    hints = [w for w in ("ttlMs", "cacheScope") if isinstance(result, dict) and w in result]
    return f"{hints} in a legacy result" if hints else True


@scan("K03b")
def _no_hints_on_questions(view: View) -> str | bool | None:
    result = view.frame.result
    if not isinstance(result, dict) or result.get("resultType") != "input_required":
        return None
    hints = [word for word in ("ttlMs", "cacheScope") if word in result]
    return f"{hints} on a result that asks for input" if hints else True


@scan("I01")
def _where_questions_are_allowed(view: View) -> str | bool | None:
    result = view.frame.result
    if not isinstance(result, dict) or view.sent is None or view.revision != revisions.E:
        return None
    if result.get("resultType") != "input_required":
        return True
    allowed = ("tools/call", "prompts/get", "resources/read")
    return True if view.sent.method in allowed else f"{view.sent.method} asks for input"


# -- notifications ------------------------------------------------------------------------------


@scan("G02")
def _logging_declared(view: View) -> str | bool | None:
    if view.frame.method != "notifications/message":
        return True if view.frame.kind == "notification" else None
    declared = view.peer.server_capabilities
    return "logging is not declared" if declared is not None and "logging" not in declared else True


@scan("T23b")
def _changes_declared(view: View) -> str | bool | None:
    if view.frame.method != "notifications/tools/list_changed":
        return True if view.frame.kind == "notification" else None
    tools = (view.peer.server_capabilities or {}).get("tools")
    if view.peer.server_capabilities is None:
        return None
    told = isinstance(tools, dict) and tools.get("listChanged") is True
    return True if told else "tools.listChanged is not declared"


@scan("X08")
def _server_cancels(view: View) -> str | bool | None:
    if view.frame.method != "notifications/cancelled":
        return True if view.frame.kind in ("notification", "result") else None
    id = view.frame.params.get("requestId")
    if view.revision == revisions.E:
        sent = view.peer.request_with(id)
        fine = sent is not None and sent.method == "subscriptions/listen"
        return True if fine else "the server cancels something that is no subscription"
    own = any(request.id == id for request in view.peer.server_requests)
    return True if own else "the server cancels a request it did not make"


@scan("U08")
def _listen_streams(view: View) -> str | bool | None:
    if view.revision != revisions.E or view.frame.kind != "notification":
        return None
    meta = view.frame.params.get("_meta")
    if not isinstance(meta, dict) or revisions.SUBSCRIPTION_ID not in meta:
        return None
    loose = view.frame.method in ("notifications/progress", "notifications/message")
    return f"{view.frame.method} on a subscription" if loose else True


# -- shapes -------------------------------------------------------------------------------------


def shaped(methods: tuple[str, ...]) -> Any:
    def look(view: View) -> str | bool | None:
        if view.frame.kind != "result" or view.sent is None or view.sent.method not in methods:
            return None
        return judged(oracle.result(view.revision, view.sent.method, view.frame.result))

    return look


for _id, _methods in (
    ("Z10a", ("initialize", "server/discover")),
    ("Z10b", ("tools/list",)),
    ("Z10c", ("tools/call",)),
    ("Z10d", ("resources/list", "resources/templates/list", "resources/read")),
    ("Z10e", ("prompts/list", "prompts/get")),
    ("Z10f", ("completion/complete",)),
):
    scan(_id)(shaped(_methods))


@scan("Z10g")
def _notification_shapes(view: View) -> str | bool | None:
    if view.frame.kind != "notification":
        return None
    params = view.frame.value.get("params")
    return judged(oracle.notification(view.revision, view.frame.method or "", params))


@scan("Z10h")
def _request_shapes(view: View) -> str | bool | None:
    if view.frame.kind != "request" or view.revision == revisions.E:
        return None
    params = view.frame.value.get("params")
    return judged(oracle.request(view.revision, view.frame.method or "", params))


# -- the tour -----------------------------------------------------------------------------------

ROLES = (
    "echo",
    "structured",
    "fail",
    "image",
    "audio",
    "embedded",
    "mixed",
    "progress",
    "nonfinite",
)


def tour(ctx: Context) -> None:
    """Ask for one of everything, so that the scans have something to look at.

    Nothing here is an assertion: what the server answers is judged by the scans.
    """
    for step in (_lists, _errors, _calls, _reads, _questions, _changes):
        try:
            step(ctx)
        except (Failed, NotApplicable, WireError):
            continue


def _lists(ctx: Context) -> None:
    peer = ctx.fresh()
    for capability, methods in (
        ("tools", ("tools/list",)),
        ("resources", ("resources/list", "resources/templates/list")),
        ("prompts", ("prompts/list",)),
    ):
        if ctx.offers(capability):
            for method in methods:
                peer.call(method, {})
    peer.marker()


def _errors(ctx: Context) -> None:
    peer = ctx.fresh()
    for method, params in (
        ("no/such/method", {}),
        ("tools/call", {"name": "no-such-tool", "arguments": {}}),
        ("tools/call", {"name": 17}),
        ("resources/read", {"uri": "test://no-such-resource"}),
        ("prompts/get", {"name": "no-such-prompt"}),
    ):
        peer.call(method, params)
    peer.probe(b"{broken", quiet=0.1)


def _calls(ctx: Context) -> None:
    peer = ctx.fresh()
    for name in ROLES:
        role = ctx.has_role(name)
        if role is not None:
            params = {"name": role.tool, "arguments": role.arguments(text="tour")}
            id = peer.request("tools/call", params, meta={"progressToken": f"tour-{name}"})
            peer.wait(lambda f, id=id: f.kind == "invalid" or f.id == id, ctx.timeout)  # type: ignore[misc]
    peer.marker()


def _reads(ctx: Context) -> None:
    peer = ctx.fresh()
    for resource in ctx.facts.resources[:4]:
        peer.call("resources/read", {"uri": resource.get("uri")})
    for prompt in ctx.facts.prompts[:6]:
        names = [a.get("name") for a in prompt.get("arguments") or [] if isinstance(a, dict)]
        arguments = {str(n): "test://static-text" if "ri" in str(n) else "tour" for n in names}
        peer.call("prompts/get", {"name": prompt.get("name"), "arguments": arguments})
        if names and (ctx.offers("completions") or ctx.revision == revisions.A):
            ref = {"type": "ref/prompt", "name": prompt.get("name")}
            argument = {"name": str(names[0]), "value": ""}
            peer.call("completion/complete", {"ref": ref, "argument": argument})
    if not ctx.modern and ctx.offers("logging"):
        peer.call("logging/setLevel", {"level": "debug"})
    if role := ctx.has_role("logging"):
        meta = {revisions.LOG_LEVEL: "debug"} if ctx.modern else None
        peer.call("tools/call", {"name": role.tool, "arguments": role.arguments()}, meta=meta)


def _questions(ctx: Context) -> None:
    peer = ctx.fresh(capabilities={"sampling": {}, "elicitation": {}, "roots": {}})
    for name in ("asks", "asks_state") if ctx.modern else ("sampling", "elicitation"):
        if (role := ctx.has_role(name)) is not None:
            peer.call("tools/call", {"name": role.tool, "arguments": role.arguments()})
    without = ctx.fresh(capabilities={})
    for name in ("sampling", "elicitation"):
        if not ctx.modern and (role := ctx.has_role(name)) is not None:
            without.call("tools/call", {"name": role.tool, "arguments": role.arguments()})


def _changes(ctx: Context) -> None:
    peer = ctx.fresh()
    if ctx.modern:
        filter = {"toolsListChanged": True, "promptsListChanged": True}
        peer.request("subscriptions/listen", {"notifications": filter}, id="tour-listen")
        peer.marker()
    for name in ("change_tools", "change_prompts"):
        if (role := ctx.has_role(name)) is not None:
            peer.call("tools/call", {"name": role.tool, "arguments": role.arguments()})
    peer.marker()
    peer.marker()

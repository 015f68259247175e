"""Scans and cases that try a rule wherever it applies: every message, list, method and level.

Z11 validates every message from the server with the official JSON schema of its revision.
"""

from __future__ import annotations

from typing import Any

from conformance import json_schema, official_schemas, revisions
from conformance.check import NotApplicable, case, need, scan
from conformance.client.frames import show
from conformance.client.observer import ReceivedFrame
from conformance.context import Context
from conformance.suites.scans import judged

UNDECLARED = {
    "notifications/prompts/list_changed": ("prompts", "listChanged"),
    "notifications/resources/list_changed": ("resources", "listChanged"),
    "notifications/resources/updated": ("resources", "subscribe"),
}


# -- official schemas -----------------------------------------------------------------------------


@scan("Z11a")
def _official_result(received: ReceivedFrame) -> str | bool | None:
    if received.frame.kind != "result" or received.sent is None:
        return None
    method = received.sent.method
    return judged(official_schemas.check_result(received.revision, method, received.frame.result))


@scan("Z11b")
def _official_notification(received: ReceivedFrame) -> str | bool | None:
    if received.frame.kind != "notification":
        return None
    method = received.frame.method or ""
    wrong = official_schemas.check_notification(received.revision, received.frame.value, method)
    return judged(wrong)


@scan("Z11c")
def _official_request(received: ReceivedFrame) -> str | bool | None:
    if received.frame.kind != "request" or received.revision in revisions.MODERN:
        return None
    method = received.frame.method or ""
    return judged(official_schemas.check_request(received.revision, received.frame.value, method))


@scan("Z11d")
def _official_error(received: ReceivedFrame) -> str | bool | None:
    if received.frame.kind != "error":
        return None
    return judged(official_schemas.check_error(received.revision, received.frame.value))


@scan("Z11e")
def _official_input_request(received: ReceivedFrame) -> str | bool | None:
    """The requests inside an input_required result are requests of the same schema."""
    result = received.frame.result
    if not isinstance(result, dict) or result.get("resultType") != "input_required":
        return None
    asked = result.get("inputRequests")
    if not isinstance(asked, dict) or not asked:
        return None
    for name, request in asked.items():
        method = request.get("method") if isinstance(request, dict) else None
        wrong = official_schemas.check_request(received.revision, request, str(method))
        if wrong is not None:
            return f"input request {name!r} is {wrong}"
    return True


# -- results and notifications of the whole run ---------------------------------------------------


@scan("T05b")
def _structured_everywhere(received: ReceivedFrame) -> str | bool | None:
    if received.frame.kind != "result" or received.sent is None:
        return None
    tool = received.peer.tools.get(str(received.sent.params.get("name")))
    result = received.frame.result
    if received.sent.method != "tools/call" or tool is None or "outputSchema" not in tool:
        return None
    is_answer = isinstance(result, dict) and result.get("isError") is not True
    if not is_answer or result.get("resultType", "complete") != "complete":
        return None
    if "structuredContent" not in result:
        return f"{tool.get('name')!r} has an output schema, but the result is not structured"
    wrong = json_schema.check_value(result["structuredContent"], tool["outputSchema"])
    return True if wrong is None else f"the output schema of {tool.get('name')!r}: {wrong}"


def _undeclared(method: str) -> Any:
    capability, flag = UNDECLARED[method]

    def look(received: ReceivedFrame) -> str | bool | None:
        if received.frame.method != method:
            return True if received.frame.kind == "notification" else None
        declared = received.peer.server_capabilities or received.peer.known_capabilities or {}
        found = declared.get(capability)
        told = isinstance(found, dict) and found.get(flag) is True
        return True if told else f"{capability}.{flag} is not declared"

    return look


for _id, _method in zip(("P04", "R12a", "R12b"), UNDECLARED, strict=True):
    scan(_id)(_undeclared(_method))


@scan("G05")
def _no_unwanted_logs(received: ReceivedFrame) -> str | bool | None:
    if received.revision not in revisions.MODERN or received.peer.initialized:
        return None
    if received.frame.method != "notifications/message":
        return True if received.frame.kind in ("notification", "result") else None
    return True if received.peer.asked_for_logs else "no request asked for log messages"


@scan("O08")
def _no_late_progress(received: ReceivedFrame) -> str | bool | None:
    if received.frame.method != "notifications/progress":
        return True if received.frame.kind == "notification" else None
    if received.peer.over_http and received.revision not in revisions.MODERN:
        return None  # it may travel on another stream than the response
    late = received.peer.is_finished(received.frame.params.get("progressToken"))
    return "progress after the response" if late else True


def _asked_of_client(received: ReceivedFrame, method: str) -> list[dict[str, Any]]:
    """The parameters of requests to the client: on their own, or in an input_required result."""
    if received.frame.kind == "request" and received.frame.method == method:
        return [received.frame.params]
    result = received.frame.result
    asked = result.get("inputRequests") if isinstance(result, dict) else None
    requests = asked.values() if isinstance(asked, dict) else ()
    return [
        request.get("params") or {}
        for request in requests
        if isinstance(request, dict) and request.get("method") == method
    ]


def _declares(received: ReceivedFrame, capability: str, member: str) -> bool:
    declared = received.peer.capabilities
    if received.sent is not None and received.revision in revisions.MODERN:
        declared = received.sent.params.get("_meta", {}).get(revisions.CLIENT_CAPABILITIES, {})
    found = declared.get(capability)
    return isinstance(found, dict) and member in found


@scan("I08")
def _elicitation_modes(received: ReceivedFrame) -> str | bool | None:
    asked = _asked_of_client(received, "elicitation/create")
    if not asked:
        return None
    by_url = any(params.get("mode") == "url" for params in asked)
    wrong = by_url and not _declares(received, "elicitation", "url")
    return "the client did not declare elicitation.url" if wrong else True


@scan("I09")
def _sampling_with_tools(received: ReceivedFrame) -> str | bool | None:
    asked = _asked_of_client(received, "sampling/createMessage")
    if not asked:
        return None
    with_tools = any("tools" in params or "toolChoice" in params for params in asked)
    wrong = with_tools and not _declares(received, "sampling", "tools")
    return "the client did not declare sampling.tools" if wrong else True


# -- every level, method and list -----------------------------------------------------------------


@case("G01h")
def _every_level(ctx: Context) -> None:
    ctx.require("logging")
    role = ctx.role("logging")
    params = {"name": role.tool, "arguments": role.arguments()}
    peer = ctx.fresh()
    heard_any = False
    for least in revisions.LEVELS:
        peer.result("logging/setLevel", {"level": least})
        peer.call("tools/call", params)
        heard = [*peer.marker(), *peer.inbox]
        peer.discard_inbox()
        for frame in heard:
            level = frame.params.get("level")
            if frame.method == "notifications/message" and level in revisions.LEVELS:
                heard_any = True
                low = revisions.LEVELS.index(level) < revisions.LEVELS.index(least)
                need(not low, f"a message of level {level} although {least} was set")
    if not heard_any:
        raise NotApplicable(f"{role.tool!r} sends no log messages")


def _methods(ctx: Context) -> list[tuple[str, dict[str, Any]]]:
    """A request of each method that the server offers; none of them changes anything."""
    found: list[tuple[str, dict[str, Any]]] = [("server/discover", {})]
    if ctx.offers("tools"):
        found += [("tools/list", {}), ("tools/call", {"name": "mcp-conform-no-such-tool"})]
    if ctx.offers("resources"):
        found += [("resources/list", {}), ("resources/read", {"uri": "test://conform/nothing"})]
        found.append(("resources/templates/list", {}))
    if ctx.offers("prompts"):
        found += [("prompts/list", {}), ("prompts/get", {"name": "mcp-conform-no-such-prompt"})]
    if ctx.offers("completions"):
        ref = {"type": "ref/prompt", "name": "mcp-conform-no-such-prompt"}
        found.append(("completion/complete", {"ref": ref, "argument": {"name": "x", "value": ""}}))
    return found


@case("V03f")
def _required_everywhere(ctx: Context) -> None:
    for missing in (revisions.PROTOCOL_VERSION, revisions.CLIENT_CAPABILITIES):
        for method, params in _methods(ctx):
            meta = {name: value for name, value in revisions.meta({}).items() if name != missing}
            message = ctx.peer.build(method, params)
            message["params"]["_meta"] = meta
            ctx.peer.send(message)
            frame = ctx.peer.reply(message["id"])
            need(frame.kind == "error", f"{method} without {missing}: {show(frame.raw, 160)}")


@case("V06f")
def _version_everywhere(ctx: Context) -> None:
    for method, params in _methods(ctx):
        meta = {revisions.PROTOCOL_VERSION: "2099-01-01"}
        frame = ctx.peer.call(method, {**params, "_meta": meta})
        need(frame.code == -32022, f"{method} in version 2099-01-01: {show(frame.raw, 160)}")

"""I: input from the client: `input_required` results and requests from the server."""

from __future__ import annotations

from typing import Any

from conformance import revisions
from conformance.check import NotApplicable, case, cases_of, need
from conformance.client.frames import Frame, show
from conformance.client.peer import Peer
from conformance.client.results import result_of
from conformance.context import Context
from conformance.suites.jsonrpc import answer_questions, fill

EVERYTHING: dict[str, Any] = {"sampling": {}, "elicitation": {"form": {}}, "roots": {}}
NEEDS = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}


def ask(
    ctx: Context, role: str, capabilities: dict[str, Any] | None = None, **params: Any
) -> Frame:
    part = ctx.role(role)
    call = {"name": part.tool, "arguments": part.arguments(), **params}
    declared = EVERYTHING if capabilities is None else capabilities
    return ctx.peer.call("tools/call", call, capabilities=declared)


def asking(ctx: Context, role: str) -> dict[str, Any]:
    result = result_of(ask(ctx, role), "tools/call")
    kind = result.get("resultType")
    need(kind == "input_required", f"the tool requires no input: resultType {kind!r}")
    return result


def answers(result: dict[str, Any]) -> dict[str, Any]:
    """A response to every input request."""
    given: dict[str, Any] = {}
    for name, request in (result.get("inputRequests") or {}).items():
        method = request.get("method")
        if method == "elicitation/create":
            schema = request.get("params", {}).get("requestedSchema")
            given[name] = {"action": "accept", "content": fill(schema)}
        elif method == "sampling/createMessage":
            text = {"type": "text", "text": "something"}
            given[name] = {"role": "assistant", "content": text, "model": "none"}
        else:
            given[name] = {"roots": [{"uri": "file:///tmp", "name": "tmp"}]}
    return given


def retry(result: dict[str, Any], given: dict[str, Any] | None = None) -> dict[str, Any]:
    params: dict[str, Any] = {"inputResponses": answers(result) if given is None else given}
    if "requestState" in result:
        params["requestState"] = result["requestState"]
    return params


@case("I02a")
def _says_what(ctx: Context) -> None:
    result = asking(ctx, "asks")
    need(
        "inputRequests" in result or "requestState" in result,
        "the result has neither inputRequests nor requestState",
    )


@case("I02b")
def _known_requests(ctx: Context) -> None:
    for name, request in (asking(ctx, "asks").get("inputRequests") or {}).items():
        method = request.get("method") if isinstance(request, dict) else None
        need(method in NEEDS, f"input request {name!r} is {method!r}")


@case("I02c")
def _only_declared(ctx: Context) -> None:
    some: tuple[dict[str, Any], ...] = ({"sampling": {}}, {"elicitation": {"form": {}}})
    for capabilities in some:
        frame = ask(ctx, "asks_capable", capabilities)
        if frame.kind == "error":
            continue
        for request in (frame.result.get("inputRequests") or {}).values():
            needed = NEEDS.get(request.get("method"), "?")
            need(needed in capabilities, f"{request.get('method')} although only {capabilities}")


@case("I02d")
def _undeclared(ctx: Context) -> None:
    frame = ask(ctx, "asks", {})
    asked = frame.result.get("inputRequests") if frame.kind == "result" else None
    need(not asked, f"a client without capabilities got an input request: {show(frame.raw)}")


@case("I03")
def _tampered(ctx: Context) -> None:
    result = asking(ctx, "asks_signed")
    state = result.get("requestState")
    need(isinstance(state, str), "the tool uses no requestState")
    params = retry(result)
    middle = len(str(state)) // 2
    other = "A" if str(state)[middle] != "A" else "B"
    params["requestState"] = f"{str(state)[:middle]}{other}{str(state)[middle + 1 :]}"
    frame = ask(ctx, "asks_signed", **params)
    refused = frame.kind == "error" or frame.result.get("isError") is True
    need(refused, f"a modified requestState was accepted: {show(frame.raw)}")


@case("I04a")
def _completes(ctx: Context) -> None:
    result = asking(ctx, "asks")
    done = result_of(ask(ctx, "asks", **retry(result)), "tools/call")
    need(
        done.get("resultType") == "complete",
        f"all input responses were sent, but the call did not complete: {done}",
    )


@case("I04b")
def _asks_again(ctx: Context) -> None:
    result = asking(ctx, "asks")
    again = result_of(ask(ctx, "asks", **retry(result, {})), "tools/call")
    need(
        again.get("resultType") == "input_required",
        f"an input response is missing, but the result is {again}",
    )


@case("I04c")
def _extra_answers(ctx: Context) -> None:
    result = asking(ctx, "asks")
    given = {**answers(result), "nobody_asked": {"action": "decline"}}
    done = result_of(ask(ctx, "asks", **retry(result, given)), "tools/call")
    need(
        done.get("resultType") == "complete", f"an extra input response changed the result: {done}"
    )


@case("I04d")
def _state_carried(ctx: Context) -> None:
    result = asking(ctx, "asks_state")
    need(isinstance(result.get("requestState"), str), "the tool uses no requestState")
    done = result_of(ask(ctx, "asks_state", **retry(result)), "tools/call")
    need(
        done.get("resultType") == "complete",
        f"all input responses were sent, but the call did not complete: {done}",
    )


def malformed(ctx: Context, value: Any) -> None:
    part = ctx.role("asks")
    params = {"name": part.tool, "arguments": part.arguments(), "inputResponses": value}
    frame = ctx.peer.call("tools/call", params, capabilities=EVERYTHING)
    if frame.kind == "result":
        kind = frame.result.get("resultType")
        fine = kind == "input_required" or frame.result.get("isError") is True
        need(fine, f"malformed input responses were accepted: {show(frame.raw)}")


cases_of((("I04e", "yes"), ("I04f", [1])), malformed)


# -- legacy requests ------------------------------------------------------------------------------

LEGACY = {
    "elicitation": ("elicitation/create", revisions.C),
    "sampling": ("sampling/createMessage", revisions.A),
}


def _part(ctx: Context, role: str) -> tuple[str, dict[str, Any]]:
    method, since = LEGACY[role]
    if ctx.revision < since:
        raise NotApplicable(f"{role} came with {since}")
    part = ctx.role(role)
    return method, {"name": part.tool, "arguments": part.arguments()}


def _asked(peer: Peer, method: str) -> list[Frame]:
    return [frame for frame in peer.server_requests if frame.method == method]


def not_declared(ctx: Context, role: str) -> None:
    method, params = _part(ctx, role)
    peer = ctx.fresh(capabilities={})
    peer.call("tools/call", params)
    need(not _asked(peer, method), f"{method} to a client that declared nothing")


cases_of((("I05a", "elicitation"), ("I07a", "sampling")), not_declared)


def declared(ctx: Context, role: str) -> None:
    method, params = _part(ctx, role)
    peer = ctx.fresh(capabilities={role: {}})
    answer_questions(peer)
    result = result_of(peer.call("tools/call", params), "tools/call")
    need(_asked(peer, method), f"the client declared {role} but got no request")
    need(result.get("isError") is not True, f"the request was answered, but the result is {result}")


cases_of((("I05b", "elicitation"), ("I07b", "sampling")), declared)


def turned_down(ctx: Context, action: str) -> None:
    method, params = _part(ctx, "elicitation")
    peer = ctx.fresh(capabilities={"elicitation": {}})
    peer.answerers[method] = lambda _: {"action": action}
    peer.call("tools/call", params)
    need(_asked(peer, method), "the client declared elicitation but got no request")
    peer.marker()


cases_of((("I05c", "decline"), ("I05d", "cancel")), turned_down)


@case("I05e")
def _refused(ctx: Context) -> None:
    _, params = _part(ctx, "elicitation")
    peer = ctx.fresh(capabilities={"elicitation": {}})
    peer.call("tools/call", params)
    peer.marker()


@case("I06")
def _never_answers(ctx: Context) -> None:
    role = "elicitation" if ctx.revision >= revisions.C else "sampling"
    method, params = _part(ctx, role)
    peer = ctx.fresh(capabilities={role: {}})
    peer.answerers[method] = None
    peer.request("tools/call", params)
    peer.wait(lambda f: f.method == method, 2)
    peer.marker()

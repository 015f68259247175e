"""E: the tasks extension (SEP-2663), for servers that declare it."""

from __future__ import annotations

import time
from typing import Any

from conformance.check import NotApplicable, case, cases_of, fail, need
from conformance.client.frames import Frame, show
from conformance.client.peer import Peer
from conformance.client.results import result_of
from conformance.context import Context
from conformance.suites.http_requests import post
from conformance.suites.input_requests import answers
from conformance.suites.subscriptions import ACK, sid

EXTENSION = "io.modelcontextprotocol/tasks"
DECLARED: dict[str, Any] = {
    "elicitation": {"form": {}},
    "sampling": {},
    "extensions": {EXTENSION: {}},
}
STATUSES = ("working", "input_required", "completed", "failed", "cancelled")
ENDED = STATUSES[2:]
MISSING_CAPABILITY = -32021
UNKNOWN = "mcp-conform-no-such-task"


def client(ctx: Context) -> Peer:
    """A connection that declares the extension, to a server that declares it."""
    extensions = ctx.facts.capabilities.get("extensions")
    if not isinstance(extensions, dict) or EXTENSION not in extensions:
        raise NotApplicable("the server does not declare the tasks extension")
    peer = ctx.fresh(capabilities=DECLARED)
    peer.scanned = False  # the scans know the results of the core protocol only
    return peer


def start(ctx: Context, peer: Peer, role: str, **values: Any) -> dict[str, Any]:
    """The result of a call that creates a task."""
    played = ctx.role(role)
    call = {"name": played.tool, "arguments": played.arguments(**values)}
    result = result_of(peer.call("tools/call", call), "tools/call")
    if result.get("resultType") != "task" and "taskId" not in result:
        raise NotApplicable("the server answered the call at once")
    return result


def identifier(created: dict[str, Any]) -> str:
    id = created.get("taskId")
    if not isinstance(id, str):
        fail(f"taskId is {id!r}")
    return id


def state(peer: Peer, id: str) -> dict[str, Any]:
    return result_of(peer.call("tasks/get", {"taskId": id}), "tasks/get")


def wait_for(ctx: Context, peer: Peer, id: str, *wanted: str) -> dict[str, Any]:
    """The task once it has one of these states."""
    until = time.monotonic() + 2 * ctx.timeout
    while True:
        task = state(peer, id)
        if task.get("status") in wanted:
            return task
        if task.get("status") in ENDED or time.monotonic() > until:
            fail(f"the task is {task.get('status')!r}, expected {' or '.join(wanted)}")
        time.sleep(0.05)


def end(peer: Peer, id: str) -> None:
    """Cancel a task that the case no longer needs."""
    peer.call("tasks/cancel", {"taskId": id})


def require_code(frame: Frame, code: int, what: str) -> None:
    need(frame.kind == "error", f"{what} was accepted: {show(frame.raw)}")
    need(frame.code == code, f"{what} got code {frame.code}, expected {code}")


# -- creation -------------------------------------------------------------------------------------


@case("E01a")
def _not_undeclared(ctx: Context) -> None:
    peer = client(ctx)
    played = ctx.role("lasting")
    call = {"name": played.tool, "arguments": played.arguments(seconds=0.1)}
    frame = peer.call("tools/call", call, capabilities={})
    if frame.kind == "error":
        return
    is_task = frame.result.get("resultType") == "task" or "taskId" in frame.result
    need(not is_task, f"a client without the extension got a task: {show(frame.raw)}")


@case("E01b")
def _required(ctx: Context) -> None:
    peer = client(ctx)
    played = ctx.role("lasting_fails")
    call = {"name": played.tool, "arguments": played.arguments()}
    frame = peer.call("tools/call", call, capabilities={})
    if frame.kind == "result":
        raise NotApplicable("the server serves this tool without a task")
    require_code(frame, MISSING_CAPABILITY, "a call that needs the extension")


@case("E02a")
def _result_type(ctx: Context) -> None:
    peer = client(ctx)
    created = start(ctx, peer, "lasting", seconds=5)
    end(peer, identifier(created))
    kind = created.get("resultType")
    need(kind == "task", f"the result with a taskId has resultType {kind!r}")


@case("E02b")
def _shape(ctx: Context) -> None:
    peer = client(ctx)
    created = start(ctx, peer, "lasting", seconds=5)
    end(peer, identifier(created))
    need(created.get("status") in STATUSES, f"status is {created.get('status')!r}")
    for name in ("createdAt", "lastUpdatedAt"):
        need(isinstance(created.get(name), str), f"{name} is {created.get(name)!r}")
    for name, optional in (("ttlMs", None), ("pollIntervalMs", 1)):
        value = created.get(name, optional)
        whole = isinstance(value, int) and not isinstance(value, bool) and value >= 0
        need(whole or (name == "ttlMs" and value is None), f"{name} is {value!r}")
    need("ttlMs" in created, "ttlMs is missing")


@case("E03")
def _at_once(ctx: Context) -> None:
    peer = client(ctx)
    id = identifier(start(ctx, peer, "lasting", seconds=5))
    task = state(peer, id)
    end(peer, id)
    need(task.get("taskId") == id, f"tasks/get returned the task {task.get('taskId')!r}")


@case("E13")
def _unguessable(ctx: Context) -> None:
    peer = client(ctx)
    ids = [identifier(start(ctx, peer, "lasting", seconds=5)) for _ in range(3)]
    for id in ids:
        end(peer, id)
    need(len(set(ids)) == len(ids), f"an id was given twice: {ids}")
    short = [id for id in ids if len(id) < 16]
    need(not short, f"the ids {short} have less than 16 characters")


# -- tasks/get ------------------------------------------------------------------------------------


@case("E04a")
def _complete_type(ctx: Context) -> None:
    peer = client(ctx)
    id = identifier(start(ctx, peer, "lasting", seconds=5))
    kind = state(peer, id).get("resultType")
    end(peer, id)
    need(kind == "complete", f"the result of tasks/get has resultType {kind!r}")


@case("E04b")
def _completed(ctx: Context) -> None:
    peer = client(ctx)
    task = wait_for(ctx, peer, identifier(start(ctx, peer, "lasting", seconds=0.1)), "completed")
    result = task.get("result")
    need(isinstance(result, dict), f"the completed task has the result {result!r}")
    need("content" in (result or {}), f"the result is not that of a tool: {result}")


@case("E04c")
def _tool_error(ctx: Context) -> None:
    peer = client(ctx)
    id = identifier(start(ctx, peer, "lasting_fails"))
    task = wait_for(ctx, peer, id, "completed", "failed")
    need(task["status"] == "completed", "the failure of a tool ended the task as failed")
    result = task.get("result")
    is_error = isinstance(result, dict) and result.get("isError") is True
    need(is_error, f"the result has no isError: {result}")


@case("E04d")
def _failed(ctx: Context) -> None:
    peer = client(ctx)
    id = identifier(start(ctx, peer, "lasting_breaks"))
    task = wait_for(ctx, peer, id, "failed", "completed")
    need(task["status"] == "failed", "a JSON-RPC error ended the task as completed")
    error = task.get("error")
    shaped = isinstance(error, dict) and isinstance(error.get("code"), int)
    need(shaped, f"the error of the failed task is {error!r}")


@case("E09")
def _unknown(ctx: Context) -> None:
    frame = client(ctx).call("tasks/get", {"taskId": UNKNOWN})
    require_code(frame, -32602, "tasks/get with an unknown taskId")


# -- input ----------------------------------------------------------------------------------------


@case("E05")
def _asks(ctx: Context) -> None:
    peer = client(ctx)
    id = identifier(start(ctx, peer, "lasting_asks"))
    task = wait_for(ctx, peer, id, "input_required")
    end(peer, id)
    asked = task.get("inputRequests")
    need(isinstance(asked, dict) and asked, f"inputRequests is {asked!r}")
    for name, request in (asked or {}).items():
        named = isinstance(request, dict) and isinstance(request.get("method"), str)
        need(named, f"the input request {name!r} has no method: {request!r}")


@case("E06")
def _keys(ctx: Context) -> None:
    peer = client(ctx)
    id = identifier(start(ctx, peer, "lasting_asks_twice"))
    answered: set[str] = set()
    until = time.monotonic() + 2 * ctx.timeout
    while (task := state(peer, id)).get("status") not in ENDED:
        need(time.monotonic() < until, f"the task is still {task.get('status')!r}")
        asked = task.get("inputRequests") or {}
        again = answered & set(asked)
        need(not again, f"{sorted(again)} was answered, and is asked again")
        for key in list(asked)[:1]:
            given = {key: answers({"inputRequests": {key: asked[key]}})[key]}
            update = {"taskId": id, "inputResponses": given}
            result_of(peer.call("tasks/update", update), "tasks/update")
            answered.add(key)
        time.sleep(0.05)
    need(len(answered) >= 2, f"the tool asked {len(answered)} questions, expected two")


def _acknowledges(ctx: Context, method: str) -> dict[str, Any]:
    peer = client(ctx)
    if method == "tasks/update":
        id = identifier(start(ctx, peer, "lasting_asks"))
        task = wait_for(ctx, peer, id, "input_required")
        given = answers({"inputRequests": task.get("inputRequests")})
        result = result_of(peer.call(method, {"taskId": id, "inputResponses": given}), method)
        wait_for(ctx, peer, id, "completed")
        return result
    id = identifier(start(ctx, peer, "lasting", seconds=5))
    return result_of(peer.call(method, {"taskId": id}), method)


def _empty(ctx: Context, method: str) -> None:
    result = _acknowledges(ctx, method)
    more = set(result) - {"resultType", "_meta"}
    need(not more, f"the acknowledgement of {method} has the members {sorted(more)}")


def _is_complete(ctx: Context, method: str) -> None:
    kind = _acknowledges(ctx, method).get("resultType")
    need(kind == "complete", f"the acknowledgement of {method} has resultType {kind!r}")


cases_of((("E07a", "tasks/update"), ("E08a", "tasks/cancel")), _empty)
cases_of((("E07d", "tasks/update"), ("E08c", "tasks/cancel")), _is_complete)


@case("E07b")
def _ignores(ctx: Context) -> None:
    peer = client(ctx)
    id = identifier(start(ctx, peer, "lasting_asks"))
    wait_for(ctx, peer, id, "input_required")
    given = {"mcp-conform-no-such-question": {"action": "accept", "content": {}}}
    frame = peer.call("tasks/update", {"taskId": id, "inputResponses": given})
    task = state(peer, id)
    end(peer, id)
    need(frame.kind == "result", f"an unknown key was refused: {show(frame.raw)}")
    need(task.get("status") == "input_required", f"an unknown key made it {task.get('status')!r}")


def _refuses_unknown(ctx: Context, method: str) -> None:
    params: dict[str, Any] = {"taskId": UNKNOWN}
    if method == "tasks/update":
        params["inputResponses"] = {}
    frame = client(ctx).call(method, params)
    need(frame.kind == "error", f"{method} accepted an unknown taskId: {show(frame.raw)}")


cases_of((("E07c", "tasks/update"), ("E08b", "tasks/cancel")), _refuses_unknown)


# -- clients without the extension ----------------------------------------------------------------


def _needs_extension(ctx: Context, method: str) -> None:
    peer = client(ctx)
    id = identifier(start(ctx, peer, "lasting", seconds=5))
    params: dict[str, Any] = {"taskId": id}
    if method == "tasks/update":
        params["inputResponses"] = {}
    frame = peer.call(method, params, capabilities={})
    end(peer, id)
    require_code(frame, MISSING_CAPABILITY, f"{method} of a client without the extension")


cases_of(
    (("E10a", "tasks/get"), ("E10b", "tasks/update"), ("E10c", "tasks/cancel")), _needs_extension
)


# -- notifications --------------------------------------------------------------------------------


@case("E11a")
def _listen_needs_extension(ctx: Context) -> None:
    peer = client(ctx)
    id = identifier(start(ctx, peer, "lasting", seconds=5))
    wants = {"notifications": {"taskIds": [id]}}
    asked = peer.request("subscriptions/listen", wants, id="tasks-1", capabilities={})
    frame = peer.wait(lambda f: f.method == ACK or f.id == asked, ctx.timeout)
    end(peer, id)
    if frame is None:
        fail("no answer to a subscription to a task")
    require_code(frame, MISSING_CAPABILITY, "a subscription to a task without the extension")


def _heard(ctx: Context) -> tuple[list[Frame], dict[str, Any]]:
    """The frames of a subscription to a task until the task has ended, and the ended task."""
    peer = client(ctx)
    id = identifier(start(ctx, peer, "lasting_asks"))
    task = wait_for(ctx, peer, id, "input_required")
    listener = client(ctx)
    listener.request("subscriptions/listen", {"notifications": {"taskIds": [id]}}, id="tasks-2")
    first = listener.wait(lambda f: f.method == ACK or f.id == "tasks-2", ctx.timeout)
    if first is None or first.kind == "error":
        raise NotApplicable("the server sends no notifications of tasks")
    granted = first.params.get("notifications")
    if not isinstance(granted, dict) or id not in (granted.get("taskIds") or []):
        raise NotApplicable("the server did not grant a subscription to the task")
    given = answers({"inputRequests": task.get("inputRequests")})
    peer.call("tasks/update", {"taskId": id, "inputResponses": given})
    ended = wait_for(ctx, peer, id, *ENDED)
    frames: list[Frame] = []
    while (frame := listener.next(ctx.settings.quiet_seconds)) is not None:
        frames.append(frame)
    return frames, ended


@case("E11b")
def _told_the_whole(ctx: Context) -> None:
    frames, ended = _heard(ctx)
    told = [frame for frame in frames if frame.method == "notifications/tasks"]
    if not told:
        raise NotApplicable("the server sent no notification of the task")
    for frame in told:
        need(sid(frame) == "tasks-2", f"the notification has no subscription id: {show(frame.raw)}")
    last = told[-1].params
    for name in ("taskId", "status", "result"):
        need(last.get(name) == ended.get(name), f"{name} differs from tasks/get: {last.get(name)}")


@case("E11c")
def _no_progress(ctx: Context) -> None:
    frames, _ = _heard(ctx)
    for frame in frames:
        wrong = frame.method in ("notifications/progress", "notifications/message")
        need(not wrong, f"{frame.method} came on the stream of a task")


@case("E12")
def _mirrored(ctx: Context) -> None:
    peer = client(ctx)
    id = identifier(start(ctx, peer, "lasting", seconds=5))
    message = peer.build("tasks/get", {"taskId": id})
    answer = post(ctx, message, {"Mcp-Name": UNKNOWN})
    end(peer, id)
    need(answer.status == 400, f"a wrong Mcp-Name got status {answer.status}, expected 400")

"""Defects of the tasks extension."""

from __future__ import annotations

from typing import Any

from conformance.broken.defects.helpers import (
    failure,
    in_notification,
    in_result,
    method,
    params,
    success,
)
from conformance.broken.defects.registry import on_notification, on_reply, quirk

quirk("tasks-for-anybody", "E01a", "clients without the extension get tasks")
quirk("task-created-late", "E03", "a task is unknown when its creation is answered")
quirk("task-ids-count", "E13", "task ids are counted")
quirk("task-error-fails", "E04c", "the failure of a tool fails its task")
quirk("task-keys-repeat", "E06", "a task uses the same key for two questions")
quirk("tasks-get-for-anybody", "E10a", "tasks/get needs no extension")
quirk("tasks-update-for-anybody", "E10b", "tasks/update needs no extension")
quirk("tasks-cancel-for-anybody", "E10c", "tasks/cancel needs no extension")
quirk("tasks-listen-for-anybody", "E11a", "a subscription to a task needs no extension")


@on_reply("task-required-as-invalid", "E01b", "a tool that needs tasks answers with -32602")
def _(connection: Any, request: Any, reply: Any) -> Any:
    is_missing = method(request) == "tools/call" and reply.get("error", {}).get("code") == -32021
    return failure(reply, -32602) if is_missing else reply


def created(name: str, cases: str, about: str, change: Any) -> None:
    on_reply(name, cases, about)(in_result("!slow_compute", change))


def got(name: str, cases: str, about: str, change: Any) -> None:
    on_reply(name, cases, about)(in_result("tasks/get", change))


created(
    "task-as-complete", "E02a", "a task is announced as complete",
    lambda r: r.update(resultType="complete"),
)  # fmt: skip
created("task-without-ttl", "E02b", "a task has no ttlMs", lambda r: r.pop("ttlMs", None))
got(
    "task-got-as-task", "E04a", "tasks/get answers with resultType task",
    lambda r: r.update(resultType="task"),
)  # fmt: skip
got("task-without-result", "E04b", "a completed task has no result", lambda r: r.pop("result", 0))
got("task-without-error", "E04d", "a failed task has no error", lambda r: r.pop("error", 0))
got(
    "task-asks-nothing", "E05", "a task that needs input has no requests",
    lambda r: r.pop("inputRequests", 0),
)  # fmt: skip

for _method, _cases in (("tasks/update", ("E07a", "E07d")), ("tasks/cancel", ("E08a", "E08c"))):
    _name = _method.replace("/", "-")
    on_reply(f"{_name}-tells-state", _cases[0], f"{_method} is answered with the state")(
        in_result(_method, lambda r: r.update(taskId="x", status="working"))
    )
    on_reply(f"{_name}-as-task", _cases[1], f"{_method} is answered as a task")(
        in_result(_method, lambda r: r.update(resultType="task"))
    )


@on_reply("unknown-keys-refused", "E07b", "an answer with an unknown key is refused")
def _(connection: Any, request: Any, reply: Any) -> Any:
    given = params(request).get("inputResponses") or {}
    wrong = any("no-such" in key for key in given)
    return failure(reply, -32602) if method(request) == "tasks/update" and wrong else reply


@on_reply("unknown-tasks-accepted", "E07c E08b", "updates of unknown tasks are acknowledged")
def _(connection: Any, request: Any, reply: Any) -> Any:
    changes = method(request) in ("tasks/update", "tasks/cancel")
    if changes and reply.get("error", {}).get("code") == -32602:
        return success(reply, resultType="complete")
    return reply


@on_reply("unknown-task-internal", "E09", "an unknown task is an internal error")
def _(connection: Any, request: Any, reply: Any) -> Any:
    is_unknown = reply.get("error", {}).get("code") == -32602
    return failure(reply, -32603) if method(request) == "tasks/get" and is_unknown else reply


on_notification("task-notified-in-part", "E11b", "a notification lacks the result")(
    in_notification("notifications/tasks", lambda p: p.pop("result", None))
)


@on_notification("progress-on-task-stream", "E11c", "progress comes on the stream of a task")
def _(connection: Any, note: Any) -> Any:
    if note.get("method") != "notifications/tasks":
        return note
    told = {"progressToken": 1, "progress": 1, "_meta": note["params"]["_meta"]}
    return [{"jsonrpc": "2.0", "method": "notifications/progress", "params": told}, note]


quirk("tasks-any-name", "E12", "Mcp-Name may differ on tasks/get", http_any_task_name=True)

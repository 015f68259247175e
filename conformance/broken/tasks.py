"""The tasks extension of the reference server."""

from __future__ import annotations

import itertools
import threading
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from conformance.broken.errors import RpcError
from conformance.revisions import SUBSCRIPTION_ID

if TYPE_CHECKING:
    from conformance.broken.reference import Call, Server

EXTENSION = "io.modelcontextprotocol/tasks"
Work = Callable[["Task", dict[str, Any]], dict[str, Any]]
MOMENT = "2026-11-17T00:00:00Z"
ENDED = ("completed", "failed", "cancelled")
_numbers = itertools.count(1)


class Task:
    """One call that goes on after its answer."""

    def __init__(self, server: Server) -> None:
        self.server = server
        counted = server.quirk("task_ids_count")
        self.id = f"task-{next(_numbers)}" if counted else uuid.uuid4().hex
        self.status = "working"
        self.detail: dict[str, Any] = {}
        self.cancelled = threading.Event()
        self.questions: dict[str, Any] = {}
        self._asked = 0
        self._changed = threading.Condition()

    def summary(self) -> dict[str, Any]:
        times = {"createdAt": MOMENT, "lastUpdatedAt": MOMENT}
        return {"taskId": self.id, "status": self.status, **times, "ttlMs": 60_000}

    def shown(self) -> dict[str, Any]:
        asked = {"inputRequests": dict(self.questions)} if self.status == "input_required" else {}
        return {**self.summary(), **self.detail, **asked}

    def run(self, work: Work, arguments: dict[str, Any]) -> None:
        try:
            self.move("completed", {"result": {**work(self, arguments), "resultType": "complete"}})
        except RpcError as error:
            if self.cancelled.is_set():
                self.move("cancelled", {})
            else:
                self.move("failed", {"error": error.as_error()})

    def move(self, status: str, detail: dict[str, Any]) -> None:
        self.status, self.detail = status, detail
        for connection in list(self.server.connections):
            for id, filter in list(connection.listens.values()):
                if self.id in filter.get("taskIds", ()):
                    told = {**self.shown(), "_meta": {SUBSCRIPTION_ID: id}}
                    connection.notify("notifications/tasks", told)

    def ask(self, *requests: dict[str, Any]) -> None:
        """Ask the client, and wait until everything is answered."""
        with self._changed:
            for request in requests:
                self._asked += 1
                same = self.server.quirk("task_keys_repeat")
                self.questions["question" if same else f"question-{self._asked}"] = request
            self.move("input_required", {})
            while self.questions and not self.cancelled.is_set():
                self._changed.wait(0.05)
            if self.cancelled.is_set():
                raise RpcError(-32603, "cancelled")
            self.move("working", {})

    def answer(self, responses: dict[str, Any]) -> None:
        with self._changed:
            for key in responses:
                self.questions.pop(key, None)
            self._changed.notify_all()


def declared(call: Call) -> bool:
    return EXTENSION in call.capabilities.get("extensions", {})


def require(call: Call, quirk: str) -> None:
    if not declared(call) and not call.connection.quirk(quirk):
        needed: dict[str, Any] = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
        raise RpcError(-32021, "the tasks extension is needed", needed)


def begin(call: Call, work: Work, arguments: dict[str, Any], *, required: bool) -> None:
    """Answer a call with a task, or with its result if the client has no tasks."""
    server = call.connection.server
    task = Task(server)
    if required:
        require(call, "tasks_for_anybody")
    if not call.modern or not (declared(call) or call.connection.quirk("tasks_for_anybody")):
        call.answer({"result": work(task, arguments)})
        return
    if not call.connection.quirk("task_created_late"):
        server.tasks[task.id] = task
    threading.Thread(target=task.run, args=(work, arguments), daemon=True).start()
    call.answer({"result": {"resultType": "task", **task.summary()}})


def _found(call: Call) -> Task:
    task = call.connection.server.tasks.get(call.params.get("taskId"))
    if task is None:
        raise RpcError(-32602, "no such task")
    return task


def get(call: Call) -> None:
    require(call, "tasks_get_for_anybody")
    call.answer({"result": _found(call).shown()})


def update(call: Call) -> None:
    require(call, "tasks_update_for_anybody")
    responses = call.params.get("inputResponses")
    if not isinstance(responses, dict):
        raise RpcError(-32602, "inputResponses is not an object")
    _found(call).answer(responses)
    call.answer({"result": {}})


def cancel(call: Call) -> None:
    require(call, "tasks_cancel_for_anybody")
    _found(call).cancelled.set()
    call.answer({"result": {}})


# -- the work of the tools ------------------------------------------------------------------------

QUESTION = {
    "method": "elicitation/create",
    "params": {
        "mode": "form",
        "message": "go on?",
        "requestedSchema": {
            "type": "object",
            "properties": {"ok": {"type": "boolean"}},
            "required": ["ok"],
        },
    },
}


def _text(words: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}], **more}


def compute(task: Task, arguments: dict[str, Any]) -> dict[str, Any]:
    if task.cancelled.wait(arguments["seconds"]):
        raise RpcError(-32603, "cancelled")
    return _text("computed")


def fail(task: Task, arguments: dict[str, Any]) -> dict[str, Any]:
    if task.server.quirk("task_error_fails"):
        raise RpcError(-32603, "the tool failed")
    return _text("it failed", isError=True)


def break_off(task: Task, arguments: dict[str, Any]) -> dict[str, Any]:
    raise RpcError(-32603, "internal error")


def confirm(task: Task, arguments: dict[str, Any]) -> dict[str, Any]:
    task.ask(QUESTION)
    return _text("confirmed")


def ask_twice(task: Task, arguments: dict[str, Any]) -> dict[str, Any]:
    task.ask(QUESTION)
    task.ask(QUESTION)
    return _text("both were answered")


METHODS = {"tasks/get": get, "tasks/update": update, "tasks/cancel": cancel}
LASTING: dict[str, tuple[Work, bool]] = {
    "slow_compute": (compute, False),
    "failing_job": (fail, True),
    "protocol_error_job": (break_off, True),
    "confirm_delete": (confirm, True),
    "multi_input": (ask_twice, True),
}

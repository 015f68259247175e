"""Tasks: calls that go on after their request was answered (SEP-2663).

A client that declares the tasks extension can receive a task in place of a tool's result. It asks
for the state with `tasks/get`, or subscribes to it; it answers questions with `tasks/update` and
ends the work with `tasks/cancel`.

    call ─► runs in the daemon's task group ─► done within `task_after` seconds: an ordinary result
                                     └──────► otherwise, or if it asks something: a task

Tasks are in the memory of the process. A restart ends them, and their ids are unknown afterwards.
A task belongs to the principal that made the call; its id is unknown to all others.
"""

import secrets
from collections.abc import Awaitable, Callable
from typing import Any, Final, Literal

import anyio
from anyio.abc import TaskGroup
from msgspec import Raw

from daemon.rpc.failures import error_for
from daemon.rpc.gate import contained
from daemon.tools.authority import Principal
from daemon.tools.errors import ToolFailure
from daemon.tools.toolkit import iso
from protocol.errors import ErrorObject, Fault, ProtocolError
from protocol.revisions import MODERN

#: Tasks that are kept, in all states. At the limit, a call is answered when it is done.
MAX_TASKS: Final = 256
#: How long a task is kept after its last change.
TTL_MS: Final = 3_600_000
POLL_MS: Final = 500
#: How long a task waits for an answer of the client.
ANSWER_SECONDS: Final = 3600.0

Status = Literal["working", "input_required", "completed", "failed", "cancelled"]
ENDED: Final = frozenset({"completed", "failed", "cancelled"})


class Task:
    """One call and its state. `changed` is called after each change that a client can see."""

    def __init__(
        self, principal: Principal, now: Callable[[], int], changed: Callable[["Task"], None]
    ) -> None:
        self.id = secrets.token_urlsafe(24)
        self.principal = principal
        self.status: Status = "working"
        self.scope = anyio.CancelScope()
        #: Set when the work is done or waits for the client.
        self.settled = anyio.Event()
        self.result = b""
        self.failure: Exception | None = None
        #: Whether the client knows this task.
        self.is_open = False
        self._now = now
        self._changed = changed
        self._created = self._updated = now()
        self._message = ""
        self._error: ErrorObject | None = None
        self._questions: dict[str, _Question] = {}
        self._asked = 0

    @property
    def is_over(self) -> bool:
        return self.status in ENDED

    @property
    def is_expired(self) -> bool:
        return self.is_over and self._now() > self._updated + TTL_MS

    def summary(self) -> dict[str, Any]:
        """The members of every form of a task."""
        shown: dict[str, Any] = {"taskId": self.id, "status": self.status}
        if self._message:
            shown["statusMessage"] = self._message
        return shown | {
            "createdAt": iso(self._created),
            "lastUpdatedAt": iso(self._updated),
            # The time to live counts from the creation, and each change extends it.
            "ttlMs": self._updated - self._created + TTL_MS,
            "pollIntervalMs": POLL_MS,
        }

    def detail(self) -> dict[str, Any]:
        """The state with the result, the error or the open questions."""
        shown = self.summary()
        if self.status == "completed":
            shown["result"] = Raw(self.result)
        elif self.status == "failed":
            shown["error"] = self._error
        elif self.status == "input_required":
            shown["inputRequests"] = {key: q.request for key, q in self._questions.items()}
        return shown

    def report(self, message: str) -> None:
        """Progress of the work, as the status message."""
        self._message = message
        self._note(self.status)

    async def ask(self, method: str, params: dict[str, Any]) -> Any:
        """Ask the client something; `ToolFailure` if it does not answer."""
        self._asked += 1
        key = f"question-{self._asked}"
        question = self._questions[key] = _Question({"method": method, "params": params})
        self._note("input_required")
        self.settled.set()
        with anyio.move_on_after(ANSWER_SECONDS):
            await question.answered.wait()
            return question.answer
        self._questions.pop(key, None)
        raise ToolFailure(f"the client did not answer {method} in {ANSWER_SECONDS:g} s")

    def answer(self, responses: dict[str, Any]) -> None:
        """Take the client's answers; an answer without an open question is ignored."""
        for key in responses.keys() & self._questions.keys():
            question = self._questions.pop(key)
            question.answer = responses[key]
            question.answered.set()
        if self.status == "input_required":
            self._note("input_required" if self._questions else "working")

    def end(self, status: Status) -> None:
        """The work is over; a failure is logged here, if it is a crash."""
        if status == "failed" and self.failure is not None and self.is_open:
            self._error = error_for(self.failure, MODERN, method="tools/call")
        self._questions.clear()
        self._message = ""
        self._note(status)
        self.settled.set()

    def _note(self, status: Status) -> None:
        self.status = status
        self._updated = self._now()
        if self.is_open:
            self._changed(self)


class _Question:
    __slots__ = ("answer", "answered", "request")

    def __init__(self, request: dict[str, Any]) -> None:
        self.request = request
        self.answer: Any = None
        self.answered = anyio.Event()


class TaskKeeper:
    """The tasks of this process."""

    def __init__(
        self, group: TaskGroup, now: Callable[[], int], changed: Callable[[Task], None]
    ) -> None:
        self._group = group
        self._now = now
        self._changed = changed
        self._tasks: dict[str, Task] = {}

    @property
    def is_busy(self) -> bool:
        return any(not task.is_over for task in self._tasks.values())

    def create(self, principal: Principal) -> Task | None:
        """A task for a call that is about to start; None if too many are kept."""
        for task in [task for task in self._tasks.values() if task.is_expired]:
            del self._tasks[task.id]
        if len(self._tasks) >= MAX_TASKS:
            return None
        return Task(principal, self._now, self._changed)

    async def run(self, task: Task, work: Awaitable[bytes], seconds: float) -> bytes | None:
        """The result if the work is done within this time; None if it goes on as a task."""
        self._group.start_soon(self._drive, task, work)
        if seconds > 0:
            try:
                with anyio.move_on_after(seconds):
                    await task.settled.wait()
            except anyio.get_cancelled_exc_class():
                task.scope.cancel()
                raise
        if not task.is_over:
            self._tasks[task.id] = task
            task.is_open = True
            return None
        if task.failure is not None:
            raise task.failure
        return task.result

    async def _drive(self, task: Task, work: Awaitable[bytes]) -> None:
        async def finish() -> None:
            task.result = await work

        with task.scope:
            task.failure = await contained(finish())
            task.end("completed" if task.failure is None else "failed")
        if not task.is_over:
            task.end("cancelled")

    def find(self, id: str, principal: Principal) -> Task:
        """A task of this principal; `ProtocolError` if it is unknown."""
        task = self._tasks.get(id)
        if task is None or task.is_expired or task.principal != principal:
            raise ProtocolError(Fault.INVALID_PARAMS, "taskId: no task has this id")
        return task

    def known(self, ids: list[str], principal: Principal) -> list[str]:
        """Those of these ids that are tasks of this principal."""
        return [id for id in ids if id in self._tasks and self._tasks[id].principal == principal]

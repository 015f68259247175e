"""`tasks/get`, `tasks/update` and `tasks/cancel`."""

from typing import Final

import msgspec

from daemon.rpc.caller import Caller
from daemon.rpc.gate import Method
from daemon.rpc.methods.common import require_tasks, revision_of
from daemon.rpc.tasks.keeper import TaskKeeper
from protocol import mcp
from protocol.connection import Call
from protocol.lifecycle import decode_params
from protocol.shape import Shaper

_task: Final = msgspec.json.Decoder(mcp.TaskParams)
_update: Final = msgspec.json.Decoder(mcp.UpdateTaskParams)


class TaskMethods:
    def __init__(self, shaper: Shaper, tasks: TaskKeeper) -> None:
        self._shaper = shaper
        self._tasks = tasks

    def table(self) -> dict[str, Method]:
        return {
            "tasks/get": Method(self._get),
            "tasks/update": Method(self._update),
            "tasks/cancel": Method(self._cancel),
        }

    def _get(self, call: Call, caller: Caller) -> bytes:
        require_tasks(call)
        task = self._tasks.find(decode_params(_task, call.params).task_id, caller.principal)
        return self._shaper.result(task.detail(), revision_of(call))

    def _update(self, call: Call, caller: Caller) -> bytes:
        require_tasks(call)
        params = decode_params(_update, call.params)
        self._tasks.find(params.task_id, caller.principal).answer(params.input_responses)
        return self._shaper.result({}, revision_of(call))

    def _cancel(self, call: Call, caller: Caller) -> bytes:
        require_tasks(call)
        task = self._tasks.find(decode_params(_task, call.params).task_id, caller.principal)
        task.scope.cancel()
        return self._shaper.result({}, revision_of(call))

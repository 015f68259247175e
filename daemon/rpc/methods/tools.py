"""`tools/list` and `tools/call`."""

from collections.abc import Awaitable, Coroutine
from typing import Any, Final

import msgspec

from daemon.rpc.caller import Caller
from daemon.rpc.context import CallContext
from daemon.rpc.failures import refusal
from daemon.rpc.gate import Method
from daemon.rpc.methods.common import (
    STEADY,
    declares_tasks,
    require_first_page,
    require_tasks,
    revision_of,
)
from daemon.rpc.subscriptions import Subscriptions
from daemon.rpc.tasks.keeper import TaskKeeper
from daemon.tools.authority import Forbidden
from daemon.tools.bound_tool import Answer, BoundTool
from daemon.tools.confirmation import DECLINED, can_confirm, confirmed
from daemon.tools.errors import ArgumentsRefused, ToolFailure
from protocol import mcp
from protocol.connection import Call
from protocol.errors import Fault, ProtocolError
from protocol.headers import check_arguments
from protocol.lifecycle import decode_params
from protocol.mcp import CallToolResult, InputRequired
from protocol.revisions import Revision
from protocol.shape import Shaper
from store.errors import StoreError

_call_tool: Final = msgspec.json.Decoder(mcp.CallToolParams)

#: The exceptions a tool reports as a result; any other exception is a crash.
REPORTED: Final = (ToolFailure, ArgumentsRefused, Forbidden, StoreError)


class ToolMethods:
    def __init__(self, shaper: Shaper, subscriptions: Subscriptions, tasks: TaskKeeper) -> None:
        self._shaper = shaper
        self._subscriptions = subscriptions
        self._tasks = tasks

    def table(self) -> dict[str, Method]:
        return {
            "tools/list": Method(self._list),
            "tools/call": Method(self._call, waits_for_engine=True),
        }

    def _list(self, call: Call, caller: Caller) -> bytes:
        require_first_page(call)
        revision = revision_of(call)
        return self._shaper.result(caller.surface.tools.listing(revision), revision, STEADY)

    def _call(self, call: Call, caller: Caller) -> bytes | Awaitable[bytes]:
        params = decode_params(_call_tool, call.params)
        tool = caller.surface.tools.find(params.name)
        if tool is None:
            raise ProtocolError(Fault.TOOL_NOT_FOUND, params.name, tool=params.name)
        call.tool = tool.spec.name
        if bytes(params.arguments)[:1] != b"{":
            raise ProtocolError(Fault.INVALID_PARAMS, "arguments: must be an object")
        _check_needs(tool, call)
        if tool.mirrored and caller.headers is not None:
            check_arguments(caller.headers, tool.mirrored, bytes(params.arguments))
        context = CallContext(
            call, caller, self._subscriptions, params.input_responses, params.request_state
        )
        revision = revision_of(call)
        try:
            typed = tool.admit(params.arguments, context)
            if tool.spec.destructive and tool.spec.would_destroy(typed) and can_confirm(context):
                return self._confirm_first(tool, typed, context)
            answer = tool.run(typed, context)
        except REPORTED as failure:
            return self._shape(refusal(tool, failure, revision), revision)
        if not isinstance(answer, Awaitable):
            return self._shape(answer, revision)
        work = self._finish(tool, answer, revision)
        seconds = tool.spec.task_after
        if seconds is not None and declares_tasks(call):
            return self._follow(work, seconds, context)
        return work

    async def _follow(
        self, work: Coroutine[None, None, bytes], seconds: float, context: CallContext
    ) -> bytes:
        """The result of the work, or a task if it takes longer."""
        task = self._tasks.create(context.principal)
        if task is None:
            return await work
        context.task = task
        result = await self._tasks.run(task, work, seconds)
        return result if result is not None else self._shaper.created_task(task.summary())

    async def _finish(
        self, tool: BoundTool, pending: Awaitable[Answer], revision: Revision
    ) -> bytes:
        try:
            answer = await pending
        except REPORTED as failure:
            answer = refusal(tool, failure, revision)
        return self._shape(answer, revision)

    async def _confirm_first(self, tool: BoundTool, typed: Any, context: CallContext) -> bytes:
        """Ask the user before a destructive call that is otherwise allowed."""
        revision = context.revision
        try:
            consent = await confirmed(tool.spec, context)
            if isinstance(consent, InputRequired):
                return self._shape(consent, revision)
            if not consent:
                raise ToolFailure(DECLINED)
            result = tool.run(typed, context)
            answer = await result if isinstance(result, Awaitable) else result
        except REPORTED as failure:
            answer = refusal(tool, failure, revision)
        return self._shape(answer, revision)

    def _shape(self, answer: Answer, revision: Revision) -> bytes:
        if isinstance(answer, CallToolResult):
            return self._shaper.tool_result(answer, revision)
        return self._shaper.result(answer, revision)


def _check_needs(tool: BoundTool, call: Call) -> None:
    """A modern request must declare the client capabilities that the tool will use."""
    if tool.spec.requires_task and revision_of(call).modern:
        require_tasks(call)
    if not tool.spec.needs or not revision_of(call).modern:
        return
    declared = call.meta.capabilities
    missing = [name for name in tool.spec.needs if declared is None or not declared.has(name)]
    if missing:
        raise ProtocolError(
            Fault.MISSING_CAPABILITY,
            ", ".join(missing),
            requiredCapabilities={name: {} for name in missing},
        )

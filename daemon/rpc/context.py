"""The context of an MCP call: the implementation of `daemon.tools.context.Context`."""

from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw

from daemon.rpc.caller import Caller
from daemon.rpc.subscriptions import Subscriptions
from daemon.rpc.tasks.keeper import Task
from daemon.tools.authority import Principal
from daemon.tools.errors import ToolFailure
from protocol.connection import Call
from protocol.errors import Fault, ProtocolError
from protocol.headers import Headers
from protocol.jsonrpc import notification
from protocol.lifecycle import LOG_LEVELS, ClientCapabilities, Implementation
from protocol.mcp import MessageParams, ProgressParams
from protocol.revisions import LATEST_LEGACY, Revision

_encoder: Final = msgspec.json.Encoder()
_NO_CAPABILITIES: Final = ClientCapabilities()


class CallContext:
    """One call, as its tool sees it."""

    __slots__ = (
        "_call",
        "_caller",
        "_last_progress",
        "_responses",
        "_state",
        "_subscriptions",
        "task",
    )

    def __init__(
        self,
        call: Call,
        caller: Caller,
        subscriptions: Subscriptions,
        responses: Raw | None = None,
        state: Raw | None = None,
    ) -> None:
        self._call = call
        self._caller = caller
        self._subscriptions = subscriptions
        self._responses = responses
        self._state = state
        self._last_progress = float("-inf")
        #: The task of this call, if it may go on as one.
        self.task: Task | None = None

    @property
    def revision(self) -> Revision:
        return self._call.revision or LATEST_LEGACY

    @property
    def client(self) -> Implementation | None:
        if self.revision.modern:
            return self._call.meta.client
        handshake = self._caller.handshake
        return handshake.client if handshake else None

    @property
    def capabilities(self) -> ClientCapabilities:
        if self.revision.modern:
            return self._call.meta.capabilities or _NO_CAPABILITIES
        handshake = self._caller.handshake
        return handshake.capabilities if handshake else _NO_CAPABILITIES

    @property
    def transport(self) -> str:
        return self._caller.transport

    @property
    def principal(self) -> Principal:
        return self._caller.principal

    @property
    def bank(self) -> str:
        return self._caller.bank

    @property
    def headers(self) -> Headers | None:
        return self._caller.headers

    @property
    def inputs(self) -> dict[str, Any]:
        if self._responses is None or not bytes(self._responses):
            return {}
        try:
            return msgspec.json.decode(self._responses, type=dict[str, Any])
        except msgspec.MsgspecError:
            raise ProtocolError(Fault.INVALID_PARAMS, "inputResponses: must be an object") from None

    @property
    def state(self) -> str | None:
        if self._state is None or not bytes(self._state):
            return None
        try:
            return msgspec.json.decode(self._state, type=str)
        except msgspec.MsgspecError:
            raise ProtocolError(Fault.INVALID_PARAMS, "requestState: must be a string") from None

    async def session(self) -> str:
        return await self._caller.session()

    async def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Report progress if the client gave a token and the value has grown.

        A task has no progress notifications; its status message has the progress.
        """
        if self.task is not None and self.task.is_open:
            of = "" if total is None else f" of {total:g}"
            self.task.report(message or f"{progress:g}{of}")
            return
        token = self._call.meta.progress_token
        if not token or progress <= self._last_progress:
            return
        self._last_progress = progress
        has_message = message is not None and self.revision.progress_message
        params = ProgressParams(
            progress_token=Raw(token),
            progress=progress,
            total=UNSET if total is None else total,
            message=message if has_message and message is not None else UNSET,
        )
        await self._notify("notifications/progress", params)

    async def log(self, level: str, data: Any) -> None:
        """Send a log message if the client asked for that level and still waits for the answer."""
        if self.task is not None and self.task.is_open:
            return
        wanted = self._call.meta.log_level if self.revision.modern else self._caller.log_level
        if not self._caller.surface.logging or wanted is None:
            return
        if LOG_LEVELS.index(level) < LOG_LEVELS.index(wanted):
            return
        await self._notify("notifications/message", MessageParams(level=level, data=data))

    async def _notify(self, method: str, params: object) -> None:
        self._caller.send_for(self._call, notification(method, _encoder.encode(params)))
        await self._caller.room()

    async def ask(self, method: str, params: dict[str, Any]) -> Any:
        if self.task is not None:
            return await self.task.ask(method, params)
        if self.revision.modern:
            raise ToolFailure("2026-07-28 has no requests from server to client")
        return await self._caller.ask(method, _encoder.encode(params))

    def announce(self, change: str, uri: str | None = None) -> None:
        self._subscriptions.announce(self._caller.surface, change, uri)

    def changed(self, bank: str) -> None:
        self._subscriptions.bank_changed(bank)

    def detach(self) -> None:
        self._caller.detach()

"""What a tool sees of the call it serves; the implementation of `tools.Context`."""

from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET, Raw

from daemon.tools import ToolFailure
from protocol.connection import Call
from protocol.errors import Fault, ProtocolError
from protocol.jsonrpc import notification
from protocol.lifecycle import LOG_LEVELS, ClientCapabilities, Implementation
from protocol.mcp import MessageParams, ProgressParams
from protocol.revisions import LATEST_LEGACY, Revision

if TYPE_CHECKING:
    from daemon.peer import Peer

_encoder: Final = msgspec.json.Encoder()
_NO_CAPABILITIES: Final = ClientCapabilities()


class CallContext:
    """One call, from a tool's side."""

    __slots__ = ("_call", "_last_progress", "_peer", "_responses", "_state")

    def __init__(
        self, call: Call, peer: "Peer", responses: Raw | None = None, state: Raw | None = None
    ) -> None:
        self._call = call
        self._peer = peer
        self._responses = responses
        self._state = state
        self._last_progress = float("-inf")

    @property
    def revision(self) -> Revision:
        return self._call.revision or LATEST_LEGACY

    @property
    def client(self) -> Implementation | None:
        if self.revision.modern:
            return self._call.meta.client
        handshake = self._peer.connection.lifecycle.handshake
        return handshake.client if handshake else None

    @property
    def capabilities(self) -> ClientCapabilities:
        if self.revision.modern:
            return self._call.meta.capabilities or _NO_CAPABILITIES
        handshake = self._peer.connection.lifecycle.handshake
        return handshake.capabilities if handshake else _NO_CAPABILITIES

    @property
    def transport(self) -> str:
        return self._peer.transport

    @property
    def bank(self) -> str:
        return self._peer.bank

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
        return await self._peer.session()

    async def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Sent only when a token was given, only upwards, and never past the answer."""
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
        await self._tell("notifications/progress", params)

    async def log(self, level: str, data: Any) -> None:
        """A log message to the client, if it asked for that level."""
        wanted = self._call.meta.log_level if self.revision.modern else self._peer.log_level
        if not self._peer.surface.logging or wanted is None:
            return
        if LOG_LEVELS.index(level) < LOG_LEVELS.index(wanted):
            return
        await self._tell("notifications/message", MessageParams(level=level, data=data))

    async def _tell(self, method: str, params: object) -> None:
        if self._call.key in self._peer.connection.inflight:
            self._peer.send(notification(method, _encoder.encode(params)))
            await self._peer.room()

    async def ask(self, method: str, params: dict[str, Any]) -> Any:
        if self.revision.modern:
            raise ToolFailure("2026-07-28 has no requests from server to client")
        return await self._peer.ask(method, _encoder.encode(params))

    def announce(self, change: str, uri: str | None = None) -> None:
        self._peer.hub.changes.announce(self._peer.surface, change, uri)

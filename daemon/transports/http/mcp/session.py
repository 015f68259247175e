"""A legacy MCP session over HTTP: one `initialize`, then many concurrent requests."""

import re
import secrets
from collections import OrderedDict
from typing import Any, Final

import msgspec
from msgspec import Struct

from daemon.rpc.client_requests import ClientRequests
from daemon.rpc.gate import Pending
from daemon.rpc.limiter import SlidingWindow
from daemon.rpc.sessions import SessionKeeper
from daemon.rpc.subscriptions import Follower, Subscriptions
from daemon.tools.authority import Principal
from daemon.tools.surface import Surface
from daemon.transports.http.mcp.event_stream import Stream
from daemon.transports.http.mcp.refusals import EndReason
from daemon.transports.http.mcp.visitor import Visitor
from protocol.connection import Call, Connection
from protocol.errors import ErrorObject, Fault, error_object
from protocol.jsonrpc import Response
from protocol.lifecycle import ClientCapabilities, Handshake, Implementation

#: Finished streams a session keeps for a client that lost the connection.
KEPT_STREAMS: Final = 16

_CALL_EVENT: Final = re.compile(r"[0-9a-f]{8}-c[0-9]{1,12}\.[0-9]{1,12}")


class SessionState(Struct, frozen=True, kw_only=True):
    """The part of a session that outlives the daemon."""

    revision: str
    principal: str
    dialects: str
    client: Implementation
    capabilities: ClientCapabilities
    log_level: str | None = "debug"
    uris: list[str] = []


class Running(Struct, frozen=True, eq=False):
    """A call of a session and the stream its answer goes to."""

    call: Call
    stream: Stream
    pending: Pending


class HttpSession(Visitor):
    """`digest` identifies the session; its handle is known to the client only."""

    def __init__(
        self,
        principal: Principal,
        connection: Connection,
        surface: Surface,
        *,
        digest: bytes,
        dialects: str,
        window: SlidingWindow | None,
        bank: str,
        seen_at: float,
        output_bytes: int,
        keeper: SessionKeeper,
        subscriptions: Subscriptions,
    ) -> None:
        handshake = connection.lifecycle.handshake
        assert handshake is not None
        super().__init__(
            principal,
            handshake.client.name,
            key=digest.hex(),
            window=window,
            bank=bank,
            keeper=keeper,
        )
        self.connection = connection
        self.handshake: Handshake = handshake
        self.surface = surface
        self.digest = digest
        self.dialects = dialects
        self.seen_at = seen_at
        self.log_level = "debug"
        self.follower = Follower(self._is_ready, self._publish, surface, set())
        self.standalone: Stream | None = None
        self.streams: OrderedDict[str, Stream] = OrderedDict()
        self.running: dict[int, Running] = {}
        self._output_bytes = output_bytes
        self._subscriptions = subscriptions
        self._streams_made = 0
        self._label = secrets.token_hex(4)
        self._client_requests = ClientRequests(self._label)
        subscriptions.follow(self.follower)

    def describe(self) -> dict[str, Any]:
        version = self.handshake.client.version
        return {**super().describe(), "version": version, "dialects": self.dialects}

    # --- streams -----------------------------------------------------------------------------

    def stream(self, kind: str = "c") -> Stream:
        """A new stream for one response. Its label contains its kind: c for a call's stream.

        The kind is recognised even after the stream itself is forgotten (`is_of_a_call`).
        """
        self._streams_made += 1
        return Stream(
            limit=self._output_bytes,
            label=f"{self._label}-{kind}{self._streams_made}",
            priming=self.handshake.revision.priming,
        )

    def keep(self, stream: Stream) -> None:
        """Keep a stream, so that its client can resume it."""
        self.streams[stream.label] = stream
        self.forget_streams()

    def forget_streams(self) -> None:
        """Delete the oldest finished streams beyond the limits on number and size."""
        limit = 4 * self._output_bytes
        finished = [s for s in self.streams.values() if s.is_done and not s.has_reader]
        size = sum(stream.size for stream in finished)
        while finished and (len(finished) > KEPT_STREAMS or size > limit):
            oldest = finished.pop(0)
            size -= oldest.size
            del self.streams[oldest.label]

    def listen(self) -> Stream | None:
        """The stream of a GET; None while another GET reads it."""
        if self.standalone is None or self.standalone.is_done:
            self.standalone = self.stream("s")
            self.streams[self.standalone.label] = self.standalone
        return None if self.standalone.has_reader else self.standalone

    def find_stream(self, last_event: str) -> tuple[Stream, int] | None:
        """The stream an event id belongs to, and the number of that event."""
        label, _, number = last_event.rpartition(".")
        found = self.streams.get(label)
        if found is None or not number.isascii() or not number.isdigit() or len(number) > 12:
            return None
        return found, int(number)

    def _publish(self, frame: bytes) -> None:
        """Messages that belong to no call go to the standalone stream, if there is one."""
        if self.standalone is not None:
            self.standalone.send(frame)

    def _is_ready(self) -> bool:
        return self.connection.lifecycle.initialized

    # --- requests to the client --------------------------------------------------------------

    async def ask(self, stream: Stream, method: str, params: bytes) -> object:
        """Send a request to the client, on the stream of the call that needs the answer."""
        return await self._client_requests.ask(stream.send, method, params)

    def answered(self, response: Response) -> None:
        self._client_requests.answered(response)

    @property
    def is_busy(self) -> bool:
        """Whether a call is running or a client is reading one of the streams."""
        return bool(self.running) or any(stream.has_reader for stream in self.streams.values())

    # --- the end -----------------------------------------------------------------------------

    def cancel(self, call: Call) -> None:
        """The client cancelled a call: its open response ends with an error.

        In a batch the call gets no entry, unless the batch would then be empty.
        """
        running = self.running.get(id(call))
        if running is None:
            return
        if call.batch is None or (call.batch.pending == 1 and not call.batch.answers):
            self._refuse(running, error_object(Fault.CANCELLED, "by the client", call.revision))
            return
        running.pending.cancel()
        frame = self.connection.drop(call)
        if frame:
            running.stream.finish(frame)

    def close(self, end: EndReason) -> None:
        """Cancel every call with an error and end every stream."""
        for running in list(self.running.values()):
            self._refuse(running, end.error(running.call, self.surface))
        self._client_requests.close()
        for stream in self.streams.values():
            stream.finish()
        self._subscriptions.unfollow(self.follower)

    def _refuse(self, running: Running, error: ErrorObject) -> None:
        """End a call with an error; the last one of a batch sends the whole batch."""
        running.pending.cancel()
        frame = self.connection.refuse(running.call, error)
        if frame:
            running.stream.finish(frame)

    async def save(self) -> None:
        """Store the state, so that the session outlives the daemon."""
        state = SessionState(
            revision=self.handshake.revision.date,
            principal=self.principal.name,
            dialects=self.dialects,
            client=self.handshake.client,
            capabilities=self.handshake.capabilities,
            log_level=self.log_level,
            uris=sorted(self.follower.uris),
        )
        text = msgspec.json.encode(state).decode()
        await self._keeper.keep(self.digest, await self.session(), text)


def is_of_a_call(last_event: str) -> bool:
    """Whether an unknown event id once belonged to the stream of a call."""
    return _CALL_EVENT.fullmatch(last_event) is not None

"""One peer on a byte stream (stdio or unix socket): chunks in, answers out.

A transport feeds bytes and provides a `Wire` to write to. Calls that finish at once are answered in
place, with one write for all the answers of a chunk. Calls that wait run in the daemon's task
group.

Everything is bounded. If more than `limits.output_bytes` of answers wait for a slow reader, no
further request is read (the rest of the chunk stays in `receive`'s generator) and finished calls
wait with their answers. A large answer beyond `limits.unsent_bytes` is replaced by an error. A call
too many in flight is answered with an error. The transport closes a client that does not read.
"""

import asyncio
import secrets
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Protocol

import anyio
import msgspec
from anyio.abc import TaskGroup
from msgspec import Meta, Raw, Struct

from daemon.config import Settings
from daemon.dialect_names import DEFAULT_DIALECTS
from daemon.rpc.caller import Surfaces
from daemon.rpc.client_requests import ClientRequests
from daemon.rpc.connections import Connections
from daemon.rpc.failures import AnswerDiscarded, Overloaded, failure_for
from daemon.rpc.gate import SMALL_ANSWER, Gate, Method, Outcome, Pending
from daemon.rpc.limiter import Limiter
from daemon.rpc.sessions import SessionKeeper
from daemon.rpc.subscriptions import MAX_SUBSCRIPTIONS, Follower, Subscriptions
from daemon.tools.authority import OWNER, Principal
from daemon.version import VERSION
from protocol import jsonrpc, mcp
from protocol.connection import Call, Cancelled, Connection, Event, Refused
from protocol.errors import Fault, ProtocolError
from protocol.headers import Headers
from protocol.jsonrpc import Notification, Response
from protocol.lifecycle import Handshake
from store.validate import bank_name

#: Events handled before the event loop gets a turn, so that one flood does not starve other peers.
TURN: Final = 256
DEFAULT_BANK: Final = "default"
#: Probes and private methods do not start a session.
WITHOUT_SESSION: Final = frozenset(
    {
        "ping",
        "health/check",
        "recalld/attach",
        "recalld/status",
        "recalld/stop",
        "recalld/bank",
    }
)
#: The methods of a connection beyond `limits.connections`.
PROBES: Final = frozenset({"ping", "health/check", "recalld/status", "recalld/stop"})
#: The private methods left to a bridge of another version: it may ask an old daemon to stop.
_OTHER_VERSION: Final = frozenset({"recalld/attach", "recalld/stop"})


class Wire(Protocol):
    """The output side and the flow control of a transport."""

    def write(self, data: bytes) -> None: ...
    def unsent(self) -> int: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def close(self) -> None: ...


class PeerServices(Struct, frozen=True, kw_only=True, eq=False):
    """The services that peers and their transports use."""

    settings: Settings
    tasks: TaskGroup
    gate: Gate
    methods: Mapping[str, Method]
    surfaces: Surfaces
    connections: Connections
    limiter: Limiter
    sessions: SessionKeeper
    subscriptions: Subscriptions


class AttachParams(Struct, frozen=True, kw_only=True, rename="camel"):
    """The first message of a bridge. After a restart it carries the state of its client.

    The state comes in this message, so that restoring it takes none of the client's rate limit.
    """

    version: str
    session: str | None = None
    #: The name of the client, if its first message says it.
    client: str | None = None
    dialects: str = ""
    bank: str = ""
    fixtures: bool = False
    log_level: mcp.LogLevel | None = None
    uris: Annotated[list[str], Meta(max_length=MAX_SUBSCRIPTIONS)] = []
    #: Requests per minute of this session; None for the limit of the daemon.
    rate_limit: Annotated[int, Meta(ge=0)] | None = None


class Peer:
    """The daemon's side of one connection."""

    def __init__(
        self,
        services: PeerServices,
        wire: Wire,
        *,
        transport: str,
        private: frozenset[str] = frozenset(),
        is_probe: bool = False,
    ) -> None:
        self._services = services
        #: Whether only `PROBES` are admitted.
        self._is_probe = is_probe
        self._gate = services.gate
        self._methods = services.methods
        self._tasks = services.tasks
        self._output_limit = services.settings.output_bytes
        self._unsent_limit = services.settings.unsent_bytes
        self._held = 0  # bytes of finished answers that wait for room
        self._loop = asyncio.get_running_loop()
        self.transport = transport
        #: Byte streams are opened by the owner's own processes only.
        self.principal: Principal = OWNER
        self.headers: Headers | None = None
        self.surface = services.surfaces()
        self._private = private
        self.connection = Connection(
            self.surface.offered(private), frame_limit=services.settings.frame_bytes
        )
        self.name = f"{transport}-{secrets.token_hex(4)}"
        self.window = services.limiter.window(self.name)
        self.session_id: str | None = None
        self.bank = services.settings.bank or DEFAULT_BANK
        self.log_level: str | None = "debug"
        self.listens = 0
        self.follower = Follower(self._is_ready, self.send, self.surface, set())
        services.subscriptions.follow(self.follower)
        self._wire = wire
        self._chunks: deque[bytes] = deque()
        self._events: Iterator[Event] = iter(())
        self._has_session = False
        self._is_paused = False
        self._is_ended = False
        self._is_closed = False
        self._room = anyio.Event()
        self.leaving = anyio.Event()
        self._pending: dict[int, Pending] = {}
        self._client_requests = ClientRequests()
        self._resume: str | None = None
        self._client_name: str | None = None
        self._rate_limit: int | None = None
        self._session_ready: anyio.Event | None = None
        services.connections.join(self)

    # --- input -------------------------------------------------------------------------------

    def feed(self, chunk: bytes) -> None:
        """Take bytes from the transport and answer all that can be answered now; never raises."""
        self._chunks.append(chunk)
        self._pump()

    def end_input(self) -> None:
        """The peer sends no more; calls that are running are still answered."""
        self._is_ended = True
        self._chunks.append(b"")
        self._pump()
        self.leaving.set()

    def resume(self) -> None:
        """The transport has room for output again."""
        if self._is_closed:
            return
        room, self._room = self._room, anyio.Event()
        room.set()
        if self._is_paused:
            self._is_paused = False
            self._wire.resume()
            self._pump()

    def _pump(self) -> None:
        out: list[bytes] = []
        waiting = self._wire.unsent()
        limit = self._output_limit
        turns = TURN
        while not self._is_paused and not self._is_closed:
            event = next(self._events, None)
            if event is None:
                if not self._chunks:
                    break
                chunk = self._chunks.popleft()
                last = self._is_ended and not self._chunks and not chunk
                self._events = self.connection.end() if last else self.connection.receive(chunk)
                continue
            answer = self._handle(event)
            if answer:
                out.append(answer)
                waiting += len(answer)
            turns -= 1
            if waiting > limit:
                self._pause()
            elif turns == 0:
                self._pause()
                self._loop.call_soon(self.resume)
        if out:
            self._wire.write(b"".join(out))
            if self._is_paused and self._wire.unsent() <= limit:
                self._loop.call_soon(self.resume)
        if self._is_ended:
            self._close_if_done()

    def _pause(self) -> None:
        self._is_paused = True
        self._wire.pause()

    def _handle(self, event: Event) -> bytes:
        match event:
            case Call():
                return self._begin(event)
            case Refused():
                return event.frame
            case Cancelled():
                return self._cancel(event.call)
            case Response():
                self._client_requests.answered(event)
                return b""
            case Notification():
                return b""

    def _begin(self, call: Call) -> bytes:
        if self._is_probe and call.method not in PROBES:
            limit = self._services.settings.connections
            reason = Overloaded(f"at most {limit} connections; this one is for health checks")
            return self._answer(call, failure_for(reason, call.revision))
        if not self._has_session and call.method not in WITHOUT_SESSION:
            self._has_session = True
            self._tasks.start_soon(self._start_session)
        concurrent = len(self.connection.inflight)
        outcome = self._gate.begin(self._methods[call.method], call, self, concurrent)
        if isinstance(outcome, Pending):
            self._pending[id(call)] = outcome
            self._tasks.start_soon(self._answer_later, call, outcome)
            return b""
        return self._answer(call, outcome)

    def _answer(self, call: Call, outcome: Outcome) -> bytes:
        if isinstance(outcome, bytes):
            return self.connection.reply(call, outcome)
        return self.connection.refuse(call, outcome.error)

    async def _answer_later(self, call: Call, pending: Pending) -> None:
        try:
            with pending:
                outcome = await pending.outcome
                if self._wire.unsent() > self._output_limit:
                    outcome = await self._hold(call, outcome)
                self.send(self._answer(call, outcome))
        finally:
            self._pending.pop(id(call), None)
            if self._is_ended:
                self._close_if_done()

    async def _hold(self, call: Call, outcome: Outcome) -> Outcome:
        """Keep a finished answer until there is room; a large one too many becomes an error."""
        size = len(outcome) if isinstance(outcome, bytes) else 0
        if size > SMALL_ANSWER and self.unsent() + size > self._unsent_limit:
            discarded = AnswerDiscarded(size, self._unsent_limit, "limits.unsent_bytes")
            outcome, size = failure_for(discarded, call.revision), 0
        self._held += size
        try:
            await self.room()
        finally:
            self._held -= size
        return outcome

    def unsent(self) -> int:
        """The bytes of finished answers that the reader has not taken."""
        return self._wire.unsent() + self._held

    def _cancel(self, call: Call) -> bytes:
        pending = self._pending.get(id(call))
        if pending is not None:
            pending.cancel()
        return self.connection.drop(call)

    # --- output ------------------------------------------------------------------------------

    def send(self, frame: bytes) -> None:
        """Write a finished frame; empty frames and frames for a closed peer are dropped."""
        if frame and not self._is_closed:
            self._wire.write(frame)

    def send_for(self, call: Call, frame: bytes) -> None:
        """Write a message that belongs to a call, unless the call is answered or cancelled."""
        if call.key in self.connection.inflight:
            self.send(frame)

    async def room(self) -> None:
        """Wait until the reader has taken enough of the queued output."""
        while not self._is_closed and self._wire.unsent() > self._output_limit:
            await self._room.wait()

    async def ask(self, method: str, params: bytes) -> Any:
        """Send a request to a legacy client and wait for its answer, for a limited time."""
        return await self._client_requests.ask(self.send, method, params)

    def detach(self) -> None:
        """Nothing to do: on a byte stream an answer finds its request by id."""

    def end_listening(self, call: Call) -> None:
        """Cancel the subscription explicitly before its result, as 2026-07-28 wants on stdio."""
        ending = msgspec.json.encode({"requestId": Raw(call.id), "reason": "the server is leaving"})
        self.send(jsonrpc.notification("notifications/cancelled", ending))

    # --- identity ----------------------------------------------------------------------------

    @property
    def handshake(self) -> Handshake | None:
        return self.connection.lifecycle.handshake

    def attach(self, params: AttachParams) -> None:
        """A bridge attaches for its client; once, and before anything else."""
        if self.session_id is not None or self._session_ready is not None:
            raise ProtocolError(Fault.INVALID_REQUEST, "recalld/attach comes first, once")
        try:
            self.surface = self._services.surfaces(params.dialects, fixtures=params.fixtures)
        except LookupError as error:
            raise ProtocolError(Fault.INVALID_PARAMS, str(error.args[0])) from None
        if params.bank:
            self.bank = bank_name(params.bank)
        self.follower.surface = self.surface
        # From here on the lines come from a client, and clients may not call private methods.
        left = {"recalld/attach"} if params.version == VERSION else _OTHER_VERSION
        self.connection.lifecycle.offered = self.surface.offered(self._private & left)
        self._resume = params.session
        self._client_name = params.client
        self._rate_limit = params.rate_limit
        self.window = self._services.limiter.window(self.name, self._rate_limit)
        self.log_level = params.log_level or self.log_level
        self.follower.uris.update(params.uris)

    async def _start_session(self) -> None:
        """Start the session on first contact, without delaying the answer."""
        handshake = self.connection.lifecycle.handshake
        is_older = self.session_id is not None
        session = await self.session()
        if is_older and handshake is not None:
            await self._services.sessions.describe(
                session, handshake.client.name, handshake.client.version
            )

    async def session(self) -> str:
        """The id of this peer's session; created or resumed, and committed, when first needed."""
        services = self._services
        if self._session_ready is None:
            self._session_ready = anyio.Event()
            handshake = self.connection.lifecycle.handshake
            with anyio.CancelScope(shield=True):
                self.session_id = await services.sessions.open(
                    resume=self._resume,
                    transport=self.transport,
                    client_name=handshake.client.name if handshake else self._client_name,
                    client_version=handshake.client.version if handshake else None,
                    bank=self.bank,
                )
                if self._is_closed:
                    services.sessions.release(self.session_id)
                self.window = services.limiter.rename(self.name, self.session_id, self._rate_limit)
                self._session_ready.set()
        await self._session_ready.wait()
        assert self.session_id is not None
        services.sessions.mark_seen(self.session_id)
        return self.session_id

    def _is_ready(self) -> bool:
        return self.connection.lifecycle.initialized

    def describe(self) -> dict[str, Any] | None:
        """The client of this connection, for `recalld status`."""
        handshake = self.connection.lifecycle.handshake
        if handshake is None and self.session_id is None:
            return None
        return {
            "client": handshake.client.name if handshake else self._client_name,
            "version": handshake.client.version if handshake else None,
            "bank": self.bank,
            "dialects": self.surface.name or ",".join(DEFAULT_DIALECTS),
            "transport": self.transport,
            "session": self.session_id,
        }

    # --- the end -----------------------------------------------------------------------------

    def lost(self) -> None:
        """The connection is gone: cancel its calls and write nothing more."""
        if self._is_closed:
            return
        self._is_closed = True
        for pending in list(self._pending.values()):
            pending.cancel()
        self._client_requests.close()
        self._room.set()
        self._services.subscriptions.unfollow(self.follower)
        if self.session_id is not None:
            self._services.sessions.release(self.session_id)
        self._services.connections.leave(self)

    def cancel_all(self) -> None:
        """Cancel the running calls; finished answers have been written already."""
        for call in self.connection.inflight.values():
            self._cancel(call)

    def dismiss(self) -> None:
        """The daemon is leaving: cancel the running calls, send queued output, then close."""
        self.cancel_all()
        self._wire.close()

    def _close_if_done(self) -> None:
        """Close once the input has ended and every call is answered."""
        if not (self._pending or self._chunks or self._is_paused or self._is_closed):
            self._wire.close()

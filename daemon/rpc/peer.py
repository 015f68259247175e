"""One peer on a byte stream: chunks in, answers out, nothing without a bound.

Transports feed bytes and lend a way to write; everything else is here. Calls that finish at once
are answered in place, one write for all the answers of a chunk. Calls that wait run in the daemon's
task group, each in a cancel scope found by its request.

Bounds: when the answers waiting for a slow reader pass `output_bytes`, no further request is taken
off the wire (the rest of the chunk stays unread in `receive`'s generator) and calls that finish
wait with their answer. One call too many in flight is an error, not a loss.
"""

import secrets
from collections import deque
from collections.abc import Awaitable, Iterator
from typing import TYPE_CHECKING, Any, Final, Protocol

import anyio
import msgspec
import structlog
from msgspec import Raw

from daemon.rpc.client_requests import Questions
from daemon.rpc.dispatcher import Outcome
from daemon.rpc.failures import Overloaded, error_for
from daemon.rpc.subscriptions import Follower
from daemon.tools.authority import OWNER, Principal
from protocol import jsonrpc
from protocol.connection import Call, Cancelled, Connection, Event, Refused
from protocol.errors import Fault, ProtocolError
from protocol.headers import Headers
from protocol.jsonrpc import Notification, Response
from protocol.lifecycle import Handshake
from store.validate import bank_name

if TYPE_CHECKING:
    from daemon.rpc.hub import Hub
    from daemon.rpc.methods import AttachParams

log: Final = structlog.get_logger()

#: Events handled before the loop gets a turn, so that one flood does not starve other peers.
TURN: Final = 256
DEFAULT_BANK: Final = "default"
#: A probe that only asks whether we live is nobody's first contact.
QUIET: Final = frozenset(
    {
        "ping",
        "health/check",
        "recalld/attach",
        "recalld/status",
        "recalld/stop",
        "recalld/bank",
    }
)
_GREETING: Final = frozenset({"recalld/attach", "recalld/stop"})


class Wire(Protocol):
    """What a transport lends to its peer."""

    def write(self, data: bytes) -> None: ...
    def unsent(self) -> int: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def close(self) -> None: ...


class Peer:
    """The daemon's side of one connection."""

    def __init__(
        self, hub: "Hub", wire: Wire, *, transport: str, private: frozenset[str] = frozenset()
    ) -> None:
        self.hub = hub
        self.transport = transport
        #: Byte streams are opened by the owner's own processes only.
        self.principal: Principal = OWNER
        self.headers: Headers | None = None
        self.surface = hub.surface_for("")
        self._private = private
        self.connection = Connection(
            self.surface.offered(private), frame_limit=hub.settings.frame_bytes
        )
        self.name = f"{transport}-{secrets.token_hex(4)}"
        self.window = hub.limiter.window(self.name)
        self.session_id: str | None = None
        self.bank = hub.settings.bank or DEFAULT_BANK
        self.log_level: str | None = "debug"
        self.listens = 0
        self.follower = Follower(self._is_ready, self.send, self.surface, set())
        hub.changes.follow(self.follower)
        self._wire = wire
        self._chunks: deque[bytes] = deque()
        self._events: Iterator[Event] = iter(())
        self._is_known = False
        self._is_paused = False
        self._is_ended = False
        self._is_closed = False
        self._room = anyio.Event()
        self.leaving = anyio.Event()
        self._scopes: dict[int, anyio.CancelScope] = {}
        self._questions = Questions()
        self._resume: str | None = None
        self._rate_limit: int | None = None
        self._session_ready: anyio.Event | None = None
        hub.join(self)

    # --- bytes in ----------------------------------------------------------------------------

    def feed(self, chunk: bytes) -> None:
        """Bytes arrived. Answers what can be answered now; never blocks, never raises."""
        self._chunks.append(chunk)
        self._pump()

    def end_input(self) -> None:
        """The peer will send no more; what it asked is still answered."""
        self._is_ended = True
        self._chunks.append(b"")
        self._pump()
        self.leaving.set()

    def resume(self) -> None:
        """The transport has room again."""
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
        limit = self.hub.settings.output_bytes
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
                self.hub.soon(self.resume)
        if out:
            self._wire.write(b"".join(out))
            if self._is_paused and self._wire.unsent() <= limit:
                self.hub.soon(self.resume)
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
                self._questions.answered(event)
                return b""
            case Notification():
                return b""

    def _begin(self, call: Call) -> bytes:
        hub = self.hub
        inflight = len(self.connection.inflight)
        if inflight > hub.settings.in_flight or hub.in_flight >= hub.settings.in_flight_total:
            limit = hub.settings.in_flight
            error = error_for(Overloaded(f"at most {limit} calls at once"), call.revision)
            return self.connection.refuse(call, error)
        if not self._is_known and call.method not in QUIET:
            self._is_known = True
            hub.tasks.start_soon(self._introduce)
        outcome = hub.dispatcher.begin(call, self)
        if isinstance(outcome, Awaitable):
            scope = anyio.CancelScope()
            self._scopes[id(call)] = scope
            hub.begin()
            hub.tasks.start_soon(self._answer_later, call, outcome, scope)
            return b""
        return self._answer(call, outcome)

    def _answer(self, call: Call, outcome: Outcome) -> bytes:
        if isinstance(outcome, bytes):
            return self.connection.reply(call, outcome)
        return self.connection.refuse(call, outcome)

    async def _answer_later(
        self, call: Call, pending: Awaitable[Outcome], scope: anyio.CancelScope
    ) -> None:
        try:
            with scope:
                outcome = await pending
                await self.room()
                self.send(self._answer(call, outcome))
        finally:
            self.hub.finish()
            self._scopes.pop(id(call), None)
            if self._is_ended:
                self._close_if_done()

    def _cancel(self, call: Call) -> bytes:
        scope = self._scopes.get(id(call))
        if scope is not None:
            scope.cancel()
        return self.connection.drop(call)

    # --- bytes out ---------------------------------------------------------------------------

    def send(self, frame: bytes) -> None:
        """Write a finished frame; empty ones and those for a closed peer are nothing."""
        if frame and not self._is_closed:
            self._wire.write(frame)

    def tell(self, call: Call, frame: bytes) -> None:
        """Write what belongs to a call, unless that is answered or cancelled."""
        if call.key in self.connection.inflight:
            self.send(frame)

    async def room(self) -> None:
        """Wait until the reader has taken enough of what is waiting for it."""
        while not self._is_closed and self._wire.unsent() > self.hub.settings.output_bytes:
            await self._room.wait()

    async def ask(self, method: str, params: bytes) -> Any:
        """A request of ours to a legacy client; bounded in time."""
        return await self._questions.ask(self.send, method, params)

    def detach(self) -> None:
        """A byte stream has nothing to let go of: answers find their way by id."""

    def end_listening(self, call: Call) -> None:
        """On a pipe the listener is told in so many words, before its result (D32)."""
        ending = msgspec.json.encode({"requestId": Raw(call.id), "reason": "the server is leaving"})
        self.send(jsonrpc.notification("notifications/cancelled", ending))

    # --- who it is ---------------------------------------------------------------------------

    @property
    def handshake(self) -> Handshake | None:
        return self.connection.lifecycle.handshake

    def adopt(self, params: "AttachParams") -> None:
        """A bridge says for whom it speaks; once, and before anything else."""
        if self.session_id is not None or self._session_ready is not None:
            raise ProtocolError(Fault.INVALID_REQUEST, "recalld/attach comes first, once")
        try:
            self.surface = self.hub.surface_for(params.dialects, fixtures=params.fixtures)
        except LookupError as error:
            raise ProtocolError(Fault.INVALID_PARAMS, str(error.args[0])) from None
        if params.bank:
            self.bank = bank_name(params.bank)
        self.follower.surface = self.surface
        # From here on the lines are a client's, and what is private is not for clients. Only a
        # bridge of another version has one thing left to say: that we should make room.
        left = {"recalld/attach"} if params.version == self.hub.version else _GREETING
        self.connection.lifecycle.offered = self.surface.offered(self._private & left)
        self._resume = params.session
        self._rate_limit = params.rate_limit
        self.window = self.hub.limiter.window(self.name, self._rate_limit)
        self.log_level = params.log_level or self.log_level
        self.follower.uris.update(params.uris)

    async def _introduce(self) -> None:
        """First contact: the session starts, without holding up the answer."""
        handshake = self.connection.lifecycle.handshake
        is_older = self.session_id is not None
        session = await self.session()
        if is_older and handshake is not None:
            await self.hub.sessions.describe(
                session, handshake.client.name, handshake.client.version
            )

    async def session(self) -> str:
        """The id of this peer's session, minted (or resumed) and committed at first need."""
        if self._session_ready is None:
            self._session_ready = anyio.Event()
            handshake = self.connection.lifecycle.handshake
            with anyio.CancelScope(shield=True):
                self.session_id = await self.hub.sessions.open(
                    resume=self._resume,
                    transport=self.transport,
                    client_name=handshake.client.name if handshake else None,
                    client_version=handshake.client.version if handshake else None,
                    bank=self.bank,
                )
                self.window = self.hub.limiter.rename(self.name, self.session_id, self._rate_limit)
                self._session_ready.set()
        await self._session_ready.wait()
        assert self.session_id is not None
        self.hub.sessions.saw(self.session_id)
        return self.session_id

    def _is_ready(self) -> bool:
        return self.connection.lifecycle.initialized

    # --- the end -----------------------------------------------------------------------------

    def lost(self) -> None:
        """The connection is gone: its calls are cancelled, nothing more is written."""
        if self._is_closed:
            return
        self._is_closed = True
        for scope in list(self._scopes.values()):
            scope.cancel()
        self._questions.close()
        self._room.set()
        self.hub.changes.unfollow(self.follower)
        self.hub.leave(self)

    def cancel_all(self) -> None:
        """Stop what is still running; answers that are finished have been written."""
        for call in self.connection.inflight.values():
            self._cancel(call)

    def dismiss(self) -> None:
        """We are leaving: what still runs is cancelled, what is written goes out, then the end."""
        self.cancel_all()
        self._wire.close()

    def _close_if_done(self) -> None:
        """Input is over; when all of it is answered too, so is the connection."""
        if not (self._scopes or self._chunks or self._is_paused or self._is_closed):
            self._wire.close()

"""Legacy sessions over HTTP: what `initialize` agreed, found again by a secret handle.

A client proves its session with the `Mcp-Session-Id` we gave it. The catalogue keeps a digest of
it and what was agreed, so that a session outlives the daemon; who it belongs to is part of that, so
that a handle is worth nothing with another token: it is unknown, like any other (S15).

Modern requests and REST have no session of their own. They come from a visitor: a principal and
the client it says it is, for the limiter and as the origin of what is stored.
"""

import re
import secrets
from collections import OrderedDict
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

import anyio
import msgspec
from msgspec import Struct

from daemon.memory.resources import may_follow
from daemon.rpc.client_requests import Questions
from daemon.rpc.failures import Overloaded
from daemon.rpc.peer import DEFAULT_BANK
from daemon.rpc.subscriptions import Follower
from daemon.tools.authority import Principal
from daemon.tools.surface import Surface
from daemon.transports.http.mcp.event_stream import Stream
from daemon.transports.http.mcp.refusals import End
from protocol.connection import Call, Connection
from protocol.errors import ErrorObject, Fault, error_object
from protocol.jsonrpc import Response
from protocol.lifecycle import ClientCapabilities, Handshake, Implementation
from protocol.revisions import negotiate

if TYPE_CHECKING:
    from daemon.rpc.hub import Hub

#: Finished streams a session keeps for a client that lost the connection.
KEPT_STREAMS: Final = 16
#: Sessions and visitors held in memory; sessions beyond that are read again when needed.
HELD: Final = 1024
_HANDLE_BYTES: Final = 32
_HANDLE_LENGTH: Final = 43


class Agreed(Struct, frozen=True, kw_only=True):
    """What a session remembers across restarts."""

    revision: str
    principal: str
    dialects: str
    client: Implementation
    capabilities: ClientCapabilities
    log_level: str | None = "debug"
    uris: list[str] = []


_agreed: Final = msgspec.json.Decoder(Agreed)


class Visitor:
    """Somebody without a session of the protocol's: a principal and its client's name."""

    def __init__(self, hub: "Hub", principal: Principal, client: str, key: str) -> None:
        self.hub = hub
        self.principal = principal
        self.client = client
        #: What the limiter knows it by.
        self.key = key
        self.window = hub.limiter.window(key)
        self.log_level: str | None = None
        self.listens = 0
        self.session_id: str | None = None
        self.bank = principal.bank(hub.settings.bank or DEFAULT_BANK)
        self._opening = anyio.Lock()

    async def session(self) -> str:
        """A session of the engine's: the origin of what this visitor stores."""
        async with self._opening:
            if self.session_id is None:
                with anyio.CancelScope(shield=True):
                    await self._open()
        assert self.session_id is not None
        self.hub.sessions.saw(self.session_id)
        return self.session_id

    async def _open(self) -> None:
        self.session_id = await self.hub.sessions.open(
            resume=None,
            transport="http",
            client_name=self.client or None,
            client_version=None,
            bank=self.bank,
        )


class Running(Struct, frozen=True, eq=False):
    """A call of a session, where it is heard of, and how to end it."""

    call: Call
    stream: Stream
    scope: anyio.CancelScope


class HttpSession(Visitor):
    """A legacy session: one `initialize`, then many requests, in any order and at once."""

    def __init__(
        self,
        hub: "Hub",
        principal: Principal,
        connection: Connection,
        surface: Surface,
        *,
        digest: bytes,
        dialects: str,
    ) -> None:
        handshake = connection.lifecycle.handshake
        assert handshake is not None
        super().__init__(hub, principal, handshake.client.name, digest.hex())
        self.connection = connection
        self.handshake: Handshake = handshake
        self.surface = surface
        self.digest = digest
        self.dialects = dialects
        self.seen_at = hub.clock()
        self.log_level = "debug"
        self.follower = Follower(self._is_ready, self._publish, surface, set())
        self.standalone: Stream | None = None
        self.streams: OrderedDict[str, Stream] = OrderedDict()
        self.running: dict[int, Running] = {}
        self._streams_made = 0
        self._label = secrets.token_hex(4)
        self._questions = Questions(self._label)
        hub.changes.follow(self.follower)

    # --- streams -----------------------------------------------------------------------------

    def stream(self, kind: str = "c") -> Stream:
        """A stream for one response; kept from when its client may want to resume it.

        Its label says whose it is, so that we know it even when we know no more: a call's.
        """
        self._streams_made += 1
        return Stream(
            limit=self.hub.settings.output_bytes,
            label=f"{self._label}-{kind}{self._streams_made}",
            priming=self.handshake.revision.priming,
        )

    def keep(self, stream: Stream) -> None:
        self.streams[stream.label] = stream
        self.forget_streams()

    def forget_streams(self) -> None:
        """Let the oldest finished streams go, by number and by size."""
        limit = 4 * self.hub.settings.output_bytes
        finished = [s for s in self.streams.values() if s.is_done and not s.has_reader]
        size = sum(stream.size for stream in finished)
        while finished and (len(finished) > KEPT_STREAMS or size > limit):
            oldest = finished.pop(0)
            size -= oldest.size
            del self.streams[oldest.label]

    def listen(self) -> Stream | None:
        """The stream of a GET; None while another one is being read (D24)."""
        if self.standalone is None or self.standalone.is_done:
            self.standalone = self.stream("s")
            self.streams[self.standalone.label] = self.standalone
        return None if self.standalone.has_reader else self.standalone

    def find_stream(self, last_event: str) -> tuple[Stream, int] | None:
        """The stream an event id belongs to, and how far its client got."""
        label, _, number = last_event.rpartition(".")
        found = self.streams.get(label)
        if found is None or not number.isascii() or not number.isdigit() or len(number) > 12:
            return None
        return found, int(number)

    def _publish(self, frame: bytes) -> None:
        """What belongs to no call goes to the standalone stream, if there ever was one."""
        if self.standalone is not None:
            self.standalone.send(frame)

    def _is_ready(self) -> bool:
        return self.connection.lifecycle.initialized

    # --- questions to the client -------------------------------------------------------------

    async def ask(self, stream: Stream, method: str, params: bytes) -> object:
        """A request of ours, on the stream of the call that wants to know (S09)."""
        return await self._questions.ask(stream.send, method, params)

    def answered(self, response: Response) -> None:
        self._questions.answered(response)

    @property
    def is_busy(self) -> bool:
        """Whether something runs for it, or somebody reads one of its streams."""
        return bool(self.running) or any(stream.has_reader for stream in self.streams.values())

    # --- the end -----------------------------------------------------------------------------

    def cancel(self, call: Call) -> None:
        """The client no longer wants an answer: the open response ends with an error (D16).

        In a batch it has no entry, unless the batch would then have none at all.
        """
        running = self.running.get(id(call))
        if running is None:
            return
        if call.batch is None or (call.batch.pending == 1 and not call.batch.answers):
            self._refuse(running, error_object(Fault.CANCELLED, "by the client", call.revision))
            return
        running.scope.cancel()
        frame = self.connection.drop(call)
        if frame:
            running.stream.finish(frame)

    def close(self, end: End) -> None:
        """Nothing runs on, and nothing more is said on any stream but that."""
        for running in list(self.running.values()):
            self._refuse(running, end.error(running.call, self.surface))
        self._questions.close()
        for stream in self.streams.values():
            stream.finish()
        self.hub.changes.unfollow(self.follower)

    def _refuse(self, running: Running, error: ErrorObject) -> None:
        """End a call with an error; in a batch the last one brings the answers of all."""
        running.scope.cancel()
        frame = self.connection.refuse(running.call, error)
        if frame:
            running.stream.finish(frame)

    def agreed(self) -> Agreed:
        return Agreed(
            revision=self.handshake.revision.date,
            principal=self.principal.name,
            dialects=self.dialects,
            client=self.handshake.client,
            capabilities=self.handshake.capabilities,
            log_level=self.log_level,
            uris=sorted(self.follower.uris),
        )

    async def save(self) -> None:
        """Write down what is agreed now."""
        state = msgspec.json.encode(self.agreed()).decode()
        await self.hub.sessions.keep(self.digest, await self.session(), state)


class HttpSessions:
    """The legacy sessions of this daemon, and its visitors."""

    def __init__(self, hub: "Hub") -> None:
        self._hub = hub
        self._sessions: OrderedDict[bytes, HttpSession] = OrderedDict()
        self._visitors: OrderedDict[tuple[str, str], Visitor] = OrderedDict()
        #: All sessions of each principal, those asleep in the catalogue too; longest unseen first.
        self._known: dict[str, OrderedDict[bytes, None]] = {}

    async def load(self) -> None:
        """Learn of the sessions that were before us, so that they count."""
        for digest, handle in await self._hub.sessions.handles():
            self._note(_agreed.decode(handle.state).principal, digest)

    def __len__(self) -> int:
        return len(self._sessions)

    def keys(self) -> list[str]:
        """The windows of the limiter that are held here."""
        return [held.key for held in [*self._sessions.values(), *self._visitors.values()]]

    def visitor(self, principal: Principal, client: str) -> Visitor:
        """The owner's clients are told apart; a token is one visitor whatever it says it is."""
        key = (principal.name, client[:100] if principal.is_owner else "")
        found = self._visitors.get(key)
        if found is None:
            window = f"http:{principal.name}:{key[1]}"
            found = self._visitors[key] = Visitor(self._hub, principal, key[1], window)
            while len(self._visitors) > HELD:
                self._hub.limiter.drop(self._visitors.popitem(last=False)[1].key)
        else:
            self._visitors.move_to_end(key)
        return found

    async def open(
        self, principal: Principal, connection: Connection, surface: Surface, dialects: str
    ) -> tuple[HttpSession, str]:
        """A new session and its handle, written down before anybody is told.

        A principal that has as many as it may loses the one it used longest ago; nobody else's.
        """
        await self._make_room(principal.name)
        handle = secrets.token_urlsafe(_HANDLE_BYTES)
        session = HttpSession(
            self._hub,
            principal,
            connection,
            surface,
            digest=_digest(handle),
            dialects=dialects,
        )
        self._hold(session)
        await session.save()
        return session, handle

    async def find(self, handle: str, principal: Principal, dialects: str) -> HttpSession | None:
        """The session a handle leads to; None alike for unknown, ended and somebody else's."""
        if len(handle) != _HANDLE_LENGTH or not handle.isascii():
            return None
        digest = _digest(handle)
        session = self._sessions.get(digest) or await self._wake_up(digest, principal)
        if session is None or session.principal.name != principal.name:
            return None
        if session.dialects != dialects:
            return None
        if self._is_over(session):
            await self._end(principal.name, digest)
            return None
        session.seen_at = self._hub.clock()
        self._sessions.move_to_end(digest)
        self._note(principal.name, digest)
        if session.session_id is not None:
            self._hub.sessions.saw(session.session_id)
        return session

    async def end(self, session: HttpSession) -> None:
        await self._end(session.principal.name, session.digest)

    async def _end(self, name: str, digest: bytes) -> None:
        session = self._sessions.pop(digest, None)
        if session is not None:
            session.close(End.SESSION)
        known = self._known.get(name)
        if known is not None:
            known.pop(digest, None)
            if not known:
                del self._known[name]
        self._hub.limiter.drop(digest.hex())
        await self._hub.sessions.drop(digest)

    async def _make_room(self, name: str) -> None:
        limit = self._hub.settings.http_sessions
        while len(self._known.get(name, ())) >= limit:
            idle = next((each for each in self._known[name] if not self._is_busy(each)), None)
            if idle is None:
                raise Overloaded(f"at most {limit} sessions, and all of them are in use")
            await self._end(name, idle)

    def _is_over(self, session: HttpSession) -> bool:
        """Whether it was not seen for so long that the catalogue has forgotten it too."""
        idle = self._hub.clock() - session.seen_at
        return not session.is_busy and idle > self._hub.settings.session_idle_days * 86_400

    def _is_busy(self, digest: bytes) -> bool:
        held = self._sessions.get(digest)
        return held is not None and held.is_busy

    def _note(self, name: str, digest: bytes) -> None:
        """This session was seen now."""
        known = self._known.setdefault(name, OrderedDict())
        known[digest] = None
        known.move_to_end(digest)

    def dismiss(self, names: frozenset[str]) -> None:
        """These tokens are not what they were: nothing runs on, nobody is known by old rights.

        A token that still is one finds its sessions again, with the rights it has now.
        """
        for digest, session in list(self._sessions.items()):
            if session.principal.name in names:
                session.close(End.RIGHTS)
                del self._sessions[digest]
        for key in [key for key in self._visitors if key[0] in names]:
            del self._visitors[key]

    def close(self) -> None:
        """The daemon is leaving."""
        for session in self._sessions.values():
            session.close(End.DAEMON)

    async def _wake_up(self, digest: bytes, principal: Principal) -> HttpSession | None:
        """A session from before a restart, as far as it was written down."""
        found = await self._hub.sessions.find(digest)
        if found is None:
            return None
        if digest in self._sessions:
            return self._sessions[digest]  # somebody else asked at the same time
        agreed = _agreed.decode(found.state)
        if agreed.principal != principal.name:
            return None
        try:
            surface = self._hub.surface_for(agreed.dialects)
        except LookupError:
            return None
        connection = Connection(surface.offered(), null_ids=False)
        connection.lifecycle.handshake = Handshake(
            revision=negotiate(agreed.revision),
            client=agreed.client,
            capabilities=agreed.capabilities,
        )
        connection.lifecycle.initialized = True
        session = HttpSession(
            self._hub, principal, connection, surface, digest=digest, dialects=agreed.dialects
        )
        session.session_id = found.session
        session.log_level = agreed.log_level
        # What the token was granted may have become less since.
        session.follower.uris.update(uri for uri in agreed.uris if may_follow(principal, uri))
        self._hold(session)
        return session

    def _hold(self, session: HttpSession) -> None:
        self._sessions[session.digest] = session
        self._note(session.principal.name, session.digest)
        if len(self._sessions) <= HELD:
            return
        for digest, held in list(self._sessions.items()):
            if not held.is_busy and held is not session:
                held.close(End.SESSION)  # which has nothing running
                del self._sessions[digest]
                return


def is_of_a_call(last_event: str) -> bool:
    """Whether an event id that leads nowhere (any more) was one of a call's stream."""
    return _CALL_EVENT.fullmatch(last_event) is not None


_CALL_EVENT: Final = re.compile(r"[0-9a-f]{8}-c[0-9]{1,12}\.[0-9]{1,12}")


def _digest(handle: str) -> bytes:
    return blake2b(handle.encode(), digest_size=32).digest()

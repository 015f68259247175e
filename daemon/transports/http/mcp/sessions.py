"""The legacy MCP sessions over HTTP, found by a secret handle, and the visitors.

A client proves its session with the `Mcp-Session-Id` it was given. The catalogue stores a digest of
that handle and the state of the session, so that a session outlives the daemon. A session belongs
to one principal: with another token its handle is unknown, like any other wrong handle.
"""

import secrets
from collections import OrderedDict
from hashlib import blake2b
from typing import Any, Final

import msgspec

from daemon.config import Settings
from daemon.memory.resources import may_follow
from daemon.rpc.caller import Surfaces
from daemon.rpc.failures import Overloaded
from daemon.rpc.limiter import Clock, Limiter
from daemon.rpc.peer import DEFAULT_BANK
from daemon.rpc.sessions import SessionKeeper
from daemon.rpc.subscriptions import Subscriptions
from daemon.tools.authority import Principal
from daemon.tools.surface import Surface
from daemon.transports.http.mcp.refusals import EndReason
from daemon.transports.http.mcp.session import HttpSession, SessionState
from daemon.transports.http.mcp.visitor import Visitor
from protocol.connection import Connection
from protocol.lifecycle import Handshake
from protocol.revisions import negotiate

#: Sessions and visitors held in memory; other sessions are loaded again when they are used.
HELD: Final = 1024
_HANDLE_BYTES: Final = 32
_HANDLE_LENGTH: Final = 43

_state: Final = msgspec.json.Decoder(SessionState)


class HttpSessions:
    """The sessions and visitors of this daemon."""

    def __init__(
        self,
        settings: Settings,
        *,
        keeper: SessionKeeper,
        limiter: Limiter,
        subscriptions: Subscriptions,
        surfaces: Surfaces,
        clock: Clock,
    ) -> None:
        self._settings = settings
        self._keeper = keeper
        self._limiter = limiter
        self._subscriptions = subscriptions
        self._surfaces = surfaces
        self._clock = clock
        self._sessions: OrderedDict[bytes, HttpSession] = OrderedDict()
        self._visitors: OrderedDict[tuple[str, str], Visitor] = OrderedDict()
        #: All sessions of each principal, in memory or not; least recently seen first.
        self._known: dict[str, OrderedDict[bytes, None]] = {}
        limiter.add_holder(self._limiter_keys)

    async def load(self) -> None:
        """Read the handles of sessions from before a restart, so that they count."""
        for digest, handle in await self._keeper.handles():
            self._note(_state.decode(handle.state).principal, digest)

    def __len__(self) -> int:
        return len(self._sessions)

    def describe(self) -> list[dict[str, Any]]:
        """The clients with a session or a call, as `Connected.describe` describes them."""
        held = [*self._sessions.values(), *self._visitors.values()]
        return [each.describe() for each in held]

    def _limiter_keys(self) -> list[str]:
        return [held.key for held in [*self._sessions.values(), *self._visitors.values()]]

    def visitor(self, principal: Principal, client: str) -> Visitor:
        """The visitor of a principal. The owner has one per client name, a token just one."""
        key = (principal.name, client[:100] if principal.is_owner else "")
        found = self._visitors.get(key)
        if found is None:
            limiter_key = f"http:{principal.name}:{key[1]}"
            found = self._visitors[key] = Visitor(
                principal,
                key[1],
                key=limiter_key,
                window=self._limiter.window(limiter_key),
                bank=self._bank_of(principal),
                keeper=self._keeper,
            )
            while len(self._visitors) > HELD:
                self._limiter.drop(self._visitors.popitem(last=False)[1].key)
        else:
            self._visitors.move_to_end(key)
        return found

    async def open(
        self, principal: Principal, connection: Connection, surface: Surface, dialects: str
    ) -> tuple[HttpSession, str]:
        """A new session and its handle, stored before the handle is given out.

        A principal at its limit loses its least recently used idle session, never another's.
        """
        await self._make_room(principal.name)
        handle = secrets.token_urlsafe(_HANDLE_BYTES)
        session = self._make(principal, connection, surface, _digest(handle), dialects)
        self._hold(session)
        await session.save()
        return session, handle

    async def find(self, handle: str, principal: Principal, dialects: str) -> HttpSession | None:
        """The session of a handle; None if it is unknown, ended or another principal's."""
        if len(handle) != _HANDLE_LENGTH or not handle.isascii():
            return None
        digest = _digest(handle)
        session = self._sessions.get(digest) or await self._restore(digest, principal)
        if session is None or session.principal.name != principal.name:
            return None
        if session.dialects != dialects:
            return None
        if self._is_expired(session):
            await self._end(principal.name, digest)
            return None
        session.seen_at = self._clock()
        self._sessions.move_to_end(digest)
        self._note(principal.name, digest)
        if session.session_id is not None:
            self._keeper.mark_seen(session.session_id)
        return session

    async def end(self, session: HttpSession) -> None:
        await self._end(session.principal.name, session.digest)

    async def _end(self, name: str, digest: bytes) -> None:
        session = self._sessions.pop(digest, None)
        if session is not None:
            session.close(EndReason.SESSION)
        known = self._known.get(name)
        if known is not None:
            known.pop(digest, None)
            if not known:
                del self._known[name]
        self._limiter.drop(digest.hex())
        await self._keeper.drop(digest)

    async def _make_room(self, name: str) -> None:
        limit = self._settings.http_sessions
        while len(self._known.get(name, ())) >= limit:
            idle = next((each for each in self._known[name] if not self._is_busy(each)), None)
            if idle is None:
                raise Overloaded(f"at most {limit} sessions, and all of them are in use")
            await self._end(name, idle)

    def _is_expired(self, session: HttpSession) -> bool:
        """Whether it was idle for so long that the catalogue has deleted it too."""
        idle = self._clock() - session.seen_at
        return not session.is_busy and idle > self._settings.session_idle_days * 86_400

    def _is_busy(self, digest: bytes) -> bool:
        held = self._sessions.get(digest)
        return held is not None and held.is_busy

    def _note(self, name: str, digest: bytes) -> None:
        """Record that this session was seen now."""
        known = self._known.setdefault(name, OrderedDict())
        known[digest] = None
        known.move_to_end(digest)

    def dismiss(self, names: frozenset[str]) -> None:
        """End the calls and forget the rights of tokens that have changed.

        A token that still exists finds its sessions again, with its new rights.
        """
        for digest, session in list(self._sessions.items()):
            if session.principal.name in names:
                session.close(EndReason.RIGHTS)
                del self._sessions[digest]
        for key in [key for key in self._visitors if key[0] in names]:
            del self._visitors[key]

    def close(self) -> None:
        """The daemon is leaving: answer every running call with an error."""
        for session in self._sessions.values():
            session.close(EndReason.DAEMON)

    async def _restore(self, digest: bytes, principal: Principal) -> HttpSession | None:
        """Load a session from before a restart, or one that was dropped from memory."""
        found = await self._keeper.find(digest)
        if found is None:
            return None
        if digest in self._sessions:
            return self._sessions[digest]  # another request has restored it meanwhile
        state = _state.decode(found.state)
        if state.principal != principal.name:
            return None
        try:
            surface = self._surfaces(state.dialects)
        except LookupError:
            return None
        connection = Connection(surface.offered(), null_ids=False)
        connection.lifecycle.handshake = Handshake(
            revision=negotiate(state.revision),
            client=state.client,
            capabilities=state.capabilities,
        )
        connection.lifecycle.initialized = True
        session = self._make(principal, connection, surface, digest, state.dialects)
        session.session_id = found.session
        session.log_level = state.log_level
        # The token may have lost access to some banks since.
        session.follower.uris.update(uri for uri in state.uris if may_follow(principal, uri))
        self._hold(session)
        return session

    def _make(
        self,
        principal: Principal,
        connection: Connection,
        surface: Surface,
        digest: bytes,
        dialects: str,
    ) -> HttpSession:
        return HttpSession(
            principal,
            connection,
            surface,
            digest=digest,
            dialects=dialects,
            window=self._limiter.window(digest.hex()),
            bank=self._bank_of(principal),
            seen_at=self._clock(),
            output_bytes=self._settings.output_bytes,
            keeper=self._keeper,
            subscriptions=self._subscriptions,
        )

    def _bank_of(self, principal: Principal) -> str:
        return principal.bank(self._settings.bank or DEFAULT_BANK)

    def _hold(self, session: HttpSession) -> None:
        self._sessions[session.digest] = session
        self._note(session.principal.name, session.digest)
        if len(self._sessions) <= HELD:
            return
        for digest, held in list(self._sessions.items()):
            if not held.is_busy and held is not session:
                held.close(EndReason.SESSION)  # it has no running calls
                del self._sessions[digest]
                return


def _digest(handle: str) -> bytes:
    return blake2b(handle.encode(), digest_size=32).digest()

"""Sessions of the daemon: created on first contact, stored in the catalogue, resumed by id.

A session is committed before its id is given to anyone. If the store cannot write (a full disk),
the session lives in memory only and health reports it, because storing memories matters more than
storing sessions. It is saved as soon as the store works again.

An editor that restarts opens a new connection without knowing its old session id. A client on a
byte stream therefore resumes the last session of the same client name and bank if that session
was seen at most `sessions.resume_seconds` ago and no connection uses it.
"""

import secrets
from typing import Final, NamedTuple

import structlog

from store.errors import StoreError
from store.model import Handle, Session
from store.sessions import Sessions

log: Final = structlog.get_logger()

#: Transports whose clients cannot name their session. HTTP clients have a session handle.
_BYTE_STREAMS: Final = ("stdio", "unix")


class _Unsaved(NamedTuple):
    """The fields of a session that the store could not write."""

    transport: str
    client_name: str | None
    client_version: str | None
    bank: str | None


class SessionKeeper:
    """Creates, resumes, touches and expires sessions; a store failure never fails a call."""

    def __init__(
        self, sessions: Sessions, *, idle_days: float, keep: int, resume_seconds: float = 0.0
    ) -> None:
        self._sessions = sessions
        self._handles = sessions.handles
        self._idle_seconds = idle_days * 86_400.0
        self._keep = keep
        self._resume_seconds = resume_seconds
        self._seen: set[str] = set()
        #: Sessions of open connections on byte streams, with the number of connections.
        self._held: dict[str, int] = {}
        #: Sessions that live in memory only, until the store works again.
        self._unsaved: dict[str, _Unsaved] = {}
        #: The problem that health reports; empty while sessions are saved.
        self.trouble = ""

    async def open(
        self,
        *,
        resume: str | None,
        transport: str,
        client_name: str | None,
        client_version: str | None,
        bank: str | None,
    ) -> str:
        """The id of a session: `resume` if it is known, else the client's last one, or a new one.

        A session on a byte stream is held for its connection until `release`.
        """
        id = await self._open(resume, transport, client_name, client_version, bank)
        if transport in _BYTE_STREAMS:
            self._held[id] = self._held.get(id, 0) + 1
        return id

    async def _open(
        self,
        resume: str | None,
        transport: str,
        client_name: str | None,
        client_version: str | None,
        bank: str | None,
    ) -> str:
        try:
            if resume is not None:
                known = await self._sessions.resume(resume)
                if known is not None:
                    return known.id
            elif client_name and transport in _BYTE_STREAMS:
                last = await self._last_of(client_name, bank)
                if last is not None:
                    return last
            session = await self._sessions.mint(
                client_name=client_name,
                client_version=client_version,
                transport=transport,
                bank=bank,
            )
        except StoreError as failure:
            self._note(failure)
            id = resume or f"session_{secrets.token_hex(16)}"
            self._unsaved[id] = _Unsaved(transport, client_name, client_version, bank)
            if len(self._unsaved) > self._keep:
                del self._unsaved[next(iter(self._unsaved))]
            return id
        if not self._unsaved:
            self.trouble = ""
        log.info("session.minted", session=session.id, transport=transport)
        return session.id

    async def _last_of(self, client_name: str, bank: str | None) -> str | None:
        """The session that a client without a session id continues; None if there is none."""
        if not self._resume_seconds:
            return None
        seen, self._seen = self._seen, set()
        try:
            await self._sessions.touch(seen)  # the stored times lag behind
        except StoreError:
            self._seen |= seen
            raise
        last = await self._sessions.last_of(
            client_name,
            bank=bank,
            transports=_BYTE_STREAMS,
            seen_within_seconds=self._resume_seconds,
            except_ids=tuple(self._held),
        )
        if last is None or await self._sessions.resume(last.id) is None:
            return None
        if last.id in self._held:
            return None  # another connection was faster
        log.info("session.resumed", session=last.id)
        return last.id

    def release(self, session: str) -> None:
        """The connection that held the session is closed."""
        left = self._held.get(session, 0) - 1
        if left > 0:
            self._held[session] = left
        else:
            self._held.pop(session, None)
        self.mark_seen(session)

    async def describe(self, session: str, client_name: str, client_version: str) -> None:
        try:
            await self._sessions.describe(
                session, client_name=client_name, client_version=client_version
            )
        except StoreError as failure:
            self._note(failure)

    async def keep(self, digest: bytes, session: str, state: str) -> None:
        """Save an HTTP session handle and the state agreed with its client."""
        try:
            await self._handles.keep(digest, session, state)
        except StoreError as failure:
            self._note(failure)

    async def find(self, digest: bytes) -> Handle | None:
        """The saved handle; None if it is unknown or the store cannot read."""
        try:
            return await self._handles.find(digest)
        except StoreError as failure:
            self._note(failure)
            return None

    async def handles(self) -> list[tuple[bytes, Handle]]:
        """All saved handles, least recently seen first; empty if the store cannot read."""
        try:
            return await self._handles.all()
        except StoreError as failure:
            self._note(failure)
            return []

    async def drop(self, digest: bytes) -> None:
        try:
            await self._handles.drop(digest)
        except StoreError as failure:
            self._note(failure)

    def mark_seen(self, session: str) -> None:
        self._seen.add(session)

    async def flush(self) -> None:
        """Save unsaved sessions, update the times of those seen, and delete the expired ones."""
        seen, self._seen = self._seen, set()
        try:
            await self._save_late()
            await self._sessions.touch(seen)
            await self._sessions.expire(max_idle_seconds=self._idle_seconds, max_count=self._keep)
        except StoreError as failure:
            self._seen |= seen
            self._note(failure)
        else:
            self.trouble = ""

    async def _save_late(self) -> None:
        for id in list(self._unsaved):
            session = self._unsaved.pop(id, None)
            if session is None:
                continue  # another flush is saving it
            try:
                if await self._sessions.get(id) is None:
                    await self._sessions.mint(id=id, **session._asdict())
            except StoreError:
                self._unsaved[id] = session
                raise

    async def get(self, session: str) -> Session | None:
        """A stored session; None if there is none, or if the store cannot read."""
        try:
            return await self._sessions.get(session)
        except StoreError as failure:
            self._note(failure)
            return None

    async def total(self) -> int:
        """The number of stored sessions; 0 if the store cannot read."""
        try:
            total, _ = await self._sessions.counts(active_within_seconds=0.0)
        except StoreError as failure:
            self._note(failure)
            return 0
        return total

    def _note(self, failure: StoreError) -> None:
        if not self.trouble:
            log.warning("sessions.unsaved", reason=type(failure).__name__)
        self.trouble = f"sessions are not being saved: {failure}"

"""Sessions as the daemon holds them: minted on first contact, kept in the store, resumed by id.

The store commits a session before its id is told to anybody. When it cannot (a full disk), the
session still works, in memory only, and health says so: memories matter more than book-keeping.
It is written down as soon as the store can.
"""

import secrets
from typing import Final, NamedTuple

import structlog

from store.errors import StoreError
from store.sqlite.handles import Handle
from store.sqlite.sessions import Sessions

log: Final = structlog.get_logger()


class _Unsaved(NamedTuple):
    """What is known of a session that the store would not take."""

    transport: str
    client_name: str | None
    client_version: str | None
    bank: str | None


class SessionKeeper:
    """Mints, resumes, touches and expires; never fails a call."""

    def __init__(self, sessions: Sessions, *, idle_days: float, keep: int) -> None:
        self._sessions = sessions
        self._handles = sessions.handles
        self._idle_seconds = idle_days * 86_400.0
        self._keep = keep
        self._seen: set[str] = set()
        #: Sessions that live in memory only; they are written down as soon as that works.
        self._unsaved: dict[str, _Unsaved] = {}
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
        """The id of a session: `resume` if it is known, else a new one."""
        try:
            if resume is not None:
                known = await self._sessions.resume(resume)
                if known is not None:
                    return known.id
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

    async def describe(self, session: str, client_name: str, client_version: str) -> None:
        try:
            await self._sessions.describe(
                session, client_name=client_name, client_version=client_version
            )
        except StoreError as failure:
            self._note(failure)

    async def keep(self, digest: bytes, session: str, state: str) -> None:
        """Write down a handle and what was agreed with its client."""
        try:
            await self._handles.keep(digest, session, state)
        except StoreError as failure:
            self._note(failure)

    async def find(self, digest: bytes) -> Handle | None:
        """What a handle leads to; None when it leads nowhere, or the store cannot say."""
        try:
            return await self._handles.find(digest)
        except StoreError as failure:
            self._note(failure)
            return None

    async def handles(self) -> list[tuple[bytes, Handle]]:
        """Every handle on record, the longest unseen first; none when the store cannot say."""
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

    def saw(self, session: str) -> None:
        self._seen.add(session)

    async def flush(self) -> None:
        """Write down who was seen since the last time; drop who was not seen for too long.

        What could not be saved is saved now; when all of it is, the trouble is over.
        """
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
                continue  # somebody else is at it
            try:
                if await self._sessions.get(id) is None:
                    await self._sessions.mint(id=id, **session._asdict())
            except StoreError:
                self._unsaved[id] = session
                raise

    async def total(self) -> int:
        """How many sessions are on record; 0 when the store cannot say."""
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

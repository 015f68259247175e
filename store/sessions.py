"""The interface to stored sessions: the clients of the daemon, across restarts.

`store.operations.sessions` and `store.operations.handles` implement it. Every operation may raise
`StoreError`; its effect is on stable storage when it returns.
"""

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Protocol

from store.model import Handle, Session


class Handles(Protocol):
    """Secrets with which a client that keeps no connection returns to its session, by digest."""

    async def keep(self, digest: bytes, session: str, state: str) -> None:
        """Store a handle, or update its state."""
        ...

    async def find(self, digest: bytes) -> Handle | None:
        """The handle with this digest; None if it is unknown or its session has ended."""
        ...

    async def all(self) -> list[tuple[bytes, Handle]]:
        """All handles of open sessions, the least recently seen first."""
        ...

    async def drop(self, digest: bytes) -> None:
        """Delete a handle and end its session."""
        ...


class Sessions(Protocol):
    """The sessions of all clients."""

    @property
    def handles(self) -> Handles:
        """For clients that keep no connection."""
        ...

    async def mint(
        self,
        *,
        transport: str,
        client_name: str | None = None,
        client_version: str | None = None,
        bank: str | None = None,
        source: str | None = None,
        agent_role: str | None = None,
        id: str | None = None,
    ) -> Session:
        """Create a session. Callers may choose the `id` themselves."""
        ...

    async def resume(self, id: str) -> Session | None:
        """Mark a session as seen and return it; None if it is unknown, expired or ended."""
        ...

    async def get(self, id: str) -> Session | None:
        """The stored session, ended or not."""
        ...

    async def recent(self, *, bank: str | None = None, limit: int = 100) -> list[Session]:
        """Sessions of one bank or of all, most recently seen first."""
        ...

    async def last_of(
        self,
        client_name: str,
        *,
        bank: str | None,
        transports: Sequence[str],
        seen_within_seconds: float,
        except_ids: Collection[str] = (),
    ) -> Session | None:
        """The session of this client and bank that was seen last; None if it is too long ago."""
        ...

    async def touch(self, ids: Iterable[str], *, calls: int = 0) -> None:
        """Mark sessions as seen now, each with `calls` more calls."""
        ...

    async def describe(
        self, id: str, *, client_name: str | None, client_version: str | None
    ) -> None:
        """Store the client's name and version. An unknown id may have expired and is ignored."""
        ...

    async def end(self, id: str) -> None:
        """End a session; it cannot be resumed any more."""
        ...

    async def expire(self, *, max_idle_seconds: float, max_count: int) -> int:
        """Delete sessions that were idle for longer, and the longest idle ones beyond `max_count`.

        Sessions with a handle do not count.
        """
        ...

    async def counts(self, *, active_within_seconds: float) -> tuple[int, int]:
        """The number of sessions, and of those that were seen recently."""
        ...

    async def import_json(self, path: Path) -> int:
        """Import a Claude Recall `sessions.json`; sessions that exist already are not changed."""
        ...

    async def export_json(self, path: Path) -> int:
        """Write all sessions as a Claude Recall `sessions.json`, replacing the file atomically."""
        ...

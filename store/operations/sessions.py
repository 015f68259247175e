"""Sessions: the clients of the daemon, across restarts.

A session is stored in the catalogue before its id is sent to the client, so an id either resumes
its session or is unknown. `seen_at` is updated lazily and in batches: a crash loses some minutes of
it, but never a session.
"""

import secrets
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import anyio
import msgspec
from msgspec import Struct

from store.arguments import bank_argument, optional_text, path_argument, texts
from store.database import Connection, Database
from store.errors import ImportRefused, InvalidInput
from store.files import file_error, replace_file
from store.model import Session
from store.operations.handles import Handles
from store.validate import TIME_LIMIT, finite_float, integer, storable_text

ALL: Final = 2**63 - 1  # no limit
COLUMNS: Final = (
    "id, created_at, seen_at, ended_at, transport, client_name, client_version, bank, source,"
    " agent_role, calls"
)


class RecallSession(Struct, frozen=True, kw_only=True, rename="camel"):
    """A session in Claude Recall's `sessions.json`, which is an array of [id, session]."""

    id: str
    start_time: int
    last_activity: int
    tool_calls: int = 0
    memories: list[str] = []
    metadata: dict[str, Any] = {}


class Sessions:
    """The sessions of a catalogue. `now` gives unix milliseconds."""

    def __init__(self, database: Database, now: Callable[[], int]) -> None:
        self._database = database
        self._now = now
        #: For clients that keep no connection.
        self.handles = Handles(database)

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
        """Create a session; committed on return. Callers may choose the `id` themselves."""
        transport = storable_text("transport", transport)
        client_name = optional_text("client_name", client_name)
        client_version = optional_text("client_version", client_version)
        bank = None if bank is None else bank_argument(bank)
        source = optional_text("source", source)
        agent_role = optional_text("agent_role", agent_role)
        id = optional_text("id", id)
        now = self._now()
        session = Session(
            id=id or f"session_{secrets.token_hex(16)}",
            created_at=now,
            seen_at=now,
            transport=transport,
            client_name=client_name,
            client_version=client_version,
            bank=bank,
            source=source,
            agent_role=agent_role,
        )

        def insert(connection: Connection) -> None:
            known = connection.execute("SELECT 1 FROM sessions WHERE id = ?", (session.id,))
            if known.fetchone() is not None:
                raise InvalidInput("id", "is the id of another session already")
            _insert(connection, session)

        await self._database.write(insert)
        return session

    async def resume(self, id: str) -> Session | None:
        """Mark a session as seen and return it; None if it is unknown, expired or ended."""
        id = storable_text("id", id)
        now = self._now()

        def mark(connection: Connection) -> Session | None:
            row = connection.execute(
                "UPDATE sessions SET seen_at = CASE WHEN seen_at < ? THEN ? ELSE seen_at END"
                f" WHERE id = ? AND ended_at IS NULL RETURNING {COLUMNS}",
                (now, now, id),
            ).fetchone()
            return None if row is None else _session(row)

        return await self._database.write(mark)

    async def get(self, id: str) -> Session | None:
        """The stored session, ended or not."""
        id = storable_text("id", id)

        def find(connection: Connection) -> Session | None:
            row = connection.execute(
                f"SELECT {COLUMNS} FROM sessions WHERE id = ?", (id,)
            ).fetchone()
            return None if row is None else _session(row)

        return await self._database.read(find)

    async def recent(self, *, bank: str | None = None, limit: int = 100) -> list[Session]:
        """Sessions of one bank or of all, most recently seen first."""
        bank = None if bank is None else bank_argument(bank)
        limit = integer("limit", limit)

        def select(connection: Connection) -> list[Session]:
            condition, values = ("TRUE", ()) if bank is None else ("bank = ?", (bank,))
            rows = connection.execute(
                f"SELECT {COLUMNS} FROM sessions WHERE {condition}"
                " ORDER BY seen_at DESC, id LIMIT ?",
                (*values, limit),
            )
            return [_session(row) for row in rows]

        return await self._database.read(select)

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
        client_name = storable_text("client_name", client_name)
        bank = None if bank is None else bank_argument(bank)
        transports = texts("transports", transports)
        since = self._ago(finite_float("seen_within_seconds", seen_within_seconds))
        left_out = frozenset(texts("except_ids", except_ids))

        def find(connection: Connection) -> Session | None:
            condition, values = ("bank IS NULL", ()) if bank is None else ("bank = ?", (bank,))
            rows = connection.execute(
                f"SELECT {COLUMNS} FROM sessions WHERE seen_at >= ? AND client_name = ?"
                f" AND {condition} AND ended_at IS NULL ORDER BY seen_at DESC, id",
                (since, client_name, *values),
            )
            sessions = (_session(row) for row in rows)
            return next(
                (s for s in sessions if s.transport in transports and s.id not in left_out), None
            )

        return await self._database.read(find)

    async def touch(self, ids: Iterable[str], *, calls: int = 0) -> None:
        """Mark sessions as seen now, each with `calls` more calls."""
        ids, calls = texts("ids", ids), integer("calls", calls)
        now = self._now()
        rows = [(now, now, calls, id) for id in sorted(ids)]
        if not rows:
            return

        def mark(connection: Connection) -> None:
            connection.executemany(
                "UPDATE sessions SET seen_at = CASE WHEN seen_at < ? THEN ? ELSE seen_at END,"
                " calls = calls + ? WHERE id = ?",
                rows,
            )

        await self._database.write(mark)

    async def describe(
        self, id: str, *, client_name: str | None, client_version: str | None
    ) -> None:
        """Store the client's name and version. An unknown id may have expired and is ignored."""
        id = storable_text("id", id)
        client_name = optional_text("client_name", client_name)
        client_version = optional_text("client_version", client_version)

        def update(connection: Connection) -> None:
            connection.execute(
                "UPDATE sessions SET client_name = ?, client_version = ? WHERE id = ?",
                (client_name, client_version, id),
            )

        await self._database.write(update)

    async def end(self, id: str) -> None:
        """End a session; it cannot be resumed any more."""
        id = storable_text("id", id)
        now = self._now()

        def update(connection: Connection) -> None:
            connection.execute(
                "UPDATE sessions SET ended_at = ? WHERE id = ? AND ended_at IS NULL", (now, id)
            )

        await self._database.write(update)

    async def expire(self, *, max_idle_seconds: float, max_count: int) -> int:
        """Delete sessions that were idle for longer, and the longest idle ones beyond `max_count`.

        Sessions with a handle do not count: the code that issues handles limits their number, so
        that many sessions of one client never displace those of another.
        """
        max_idle_seconds = finite_float("max_idle_seconds", max_idle_seconds)
        max_count = integer("max_count", max_count)
        oldest = self._ago(max_idle_seconds)

        def delete(connection: Connection) -> int:
            idle = connection.execute("DELETE FROM sessions WHERE seen_at < ?", (oldest,)).rowcount
            over = connection.execute(
                "DELETE FROM sessions WHERE id IN ("
                " SELECT id FROM sessions"
                " WHERE ended_at IS NOT NULL OR id NOT IN (SELECT session FROM handles)"
                f" ORDER BY seen_at DESC, id LIMIT {ALL} OFFSET ?)",
                (max_count,),
            ).rowcount
            return idle + over

        return await self._database.write(delete)

    async def counts(self, *, active_within_seconds: float) -> tuple[int, int]:
        """The number of sessions, and of those that were seen recently."""
        active_within_seconds = finite_float("active_within_seconds", active_within_seconds)
        since = self._ago(active_within_seconds)

        def count(connection: Connection) -> tuple[int, int]:
            total, active = connection.execute(
                "SELECT count(*), count(*) FILTER (WHERE seen_at >= ? AND ended_at IS NULL)"
                " FROM sessions",
                (since,),
            ).fetchone()
            return total, active

        return await self._database.read(count)

    def _ago(self, seconds: float) -> int:
        """The time so many seconds ago, limited to the range of a time column."""
        return max(self._now() - int(min(seconds, TIME_LIMIT) * 1000), -TIME_LIMIT)

    async def import_json(self, path: Path) -> int:
        """Import a Claude Recall `sessions.json`; sessions that exist already are not changed."""
        path = path_argument("path", path)
        try:
            content = await anyio.Path(path).read_bytes()
        except OSError as error:
            raise file_error(error) from error
        try:
            entries = msgspec.json.decode(content, type=list[tuple[str, RecallSession]])
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise ImportRefused("sessions", "is not a list of [id, session] in JSON") from error

        def insert(connection: Connection) -> int:
            sessions = (_from_recall(id, recall) for id, recall in entries)
            return sum(_insert(connection, session, is_new=False) for session in sessions)

        return await self._database.write(insert)

    async def export_json(self, path: Path) -> int:
        """Write all sessions as a Claude Recall `sessions.json`, replacing the file atomically."""
        path = path_argument("path", path)
        sessions = await self.recent(limit=ALL)
        content = msgspec.json.encode([(session.id, _to_recall(session)) for session in sessions])
        try:
            await anyio.to_thread.run_sync(replace_file, path, content)
        except OSError as error:
            raise file_error(error) from error
        return len(sessions)


def _insert(connection: Connection, session: Session, *, is_new: bool = True) -> int:
    """Returns the number of inserted rows: 0 for a session that exists and need not be new."""
    return connection.execute(
        f"INSERT INTO sessions ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        f"{'' if is_new else ' ON CONFLICT DO NOTHING'}",
        (
            session.id,
            session.created_at,
            session.seen_at,
            session.ended_at,
            session.transport,
            session.client_name,
            session.client_version,
            session.bank,
            session.source,
            session.agent_role,
            session.calls,
        ),
    ).rowcount


def _session(row: tuple[Any, ...]) -> Session:
    return Session(
        id=row[0],
        created_at=row[1],
        seen_at=row[2],
        ended_at=row[3],
        transport=row[4],
        client_name=row[5],
        client_version=row[6],
        bank=row[7],
        source=row[8],
        agent_role=row[9],
        calls=row[10],
    )


def _from_recall(id: str, recall: RecallSession) -> Session:
    return Session(
        id=id,
        created_at=recall.start_time,
        seen_at=max(recall.start_time, recall.last_activity),
        transport="import",
        calls=recall.tool_calls,
    )


def _to_recall(session: Session) -> RecallSession:
    return RecallSession(
        id=session.id,
        start_time=session.created_at,
        last_activity=session.seen_at,
        tool_calls=session.calls,
    )

"""Sessions: who is talking to us, across restarts.

A session is minted on first contact and is in the catalogue before its id leaves the house, so an
id that somebody holds either resumes or is unknown (invariant I7). Being seen is written down
lazily and in batches; a crash forgets some minutes of `seen_at`, never a session.
"""

import secrets
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import anyio
import msgspec
from msgspec import Struct

from store.arguments import bank_argument, optional_text, path_argument, texts
from store.errors import ImportRefused, InvalidInput
from store.sqlite.database import Connection, Database
from store.sqlite.files import replace_file
from store.sqlite.handles import Handles
from store.sqlite.storage_errors import file_error
from store.validate import TIME_LIMIT, finite_float, integer, storable_text

COLUMNS: Final = (
    "id, created_at, seen_at, ended_at, transport, client_name, client_version, bank, source,"
    " agent_role, calls"
)


class Session(Struct, frozen=True, kw_only=True):
    """One client's stay. Times are unix milliseconds, UTC."""

    id: str
    created_at: int
    seen_at: int
    transport: str
    ended_at: int | None = None
    client_name: str | None = None
    client_version: str | None = None
    bank: str | None = None
    source: str | None = None
    agent_role: str | None = None
    calls: int = 0


class SeedSession(Struct, frozen=True, kw_only=True, rename="camel"):
    """A session as seed 003's `sessions.json` writes it: an array of [id, this]."""

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
        #: By which clients without a connection come back to a session.
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
        """A new session, committed. `id` is for callers that name sessions in their own way."""
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
        """The session, seen now; None when it is unknown, expired or ended."""
        id = storable_text("id", id)
        now = self._now()

        def see(connection: Connection) -> Session | None:
            row = connection.execute(
                "UPDATE sessions SET seen_at = max(seen_at, ?) WHERE id = ? AND ended_at IS NULL"
                f" RETURNING {COLUMNS}",
                (now, id),
            ).fetchone()
            return None if row is None else _session(row)

        return await self._database.write(see)

    async def get(self, id: str) -> Session | None:
        """The session as it is on record, ended or not."""
        id = storable_text("id", id)

        def find(connection: Connection) -> Session | None:
            row = connection.execute(
                f"SELECT {COLUMNS} FROM sessions WHERE id = ?", (id,)
            ).fetchone()
            return None if row is None else _session(row)

        return await self._database.read(find)

    async def recent(self, *, bank: str | None = None, limit: int = 100) -> list[Session]:
        """Sessions seen last first, of one bank or of all."""
        bank = None if bank is None else bank_argument(bank)
        limit = integer("limit", limit)

        def select(connection: Connection) -> list[Session]:
            rows = connection.execute(
                f"SELECT {COLUMNS} FROM sessions WHERE ?1 IS NULL OR bank = ?1"
                " ORDER BY seen_at DESC, id LIMIT ?2",
                (bank, limit),
            )
            return [_session(row) for row in rows]

        return await self._database.read(select)

    async def touch(self, ids: Iterable[str], *, calls: int = 0) -> None:
        """These sessions were seen now, each with `calls` more calls."""
        ids, calls = texts("ids", ids), integer("calls", calls)
        now = self._now()
        rows = [(now, calls, id) for id in ids]
        if not rows:
            return

        def see(connection: Connection) -> None:
            connection.executemany(
                "UPDATE sessions SET seen_at = max(seen_at, ?), calls = calls + ? WHERE id = ?",
                rows,
            )

        await self._database.write(see)

    async def describe(
        self, id: str, *, client_name: str | None, client_version: str | None
    ) -> None:
        """Note what the client said about itself. An unknown id may have expired: no error."""
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
        """The client said goodbye: the session cannot be resumed any more."""
        id = storable_text("id", id)
        now = self._now()

        def update(connection: Connection) -> None:
            connection.execute(
                "UPDATE sessions SET ended_at = ? WHERE id = ? AND ended_at IS NULL", (now, id)
            )

        await self._database.write(update)

    async def expire(self, *, max_idle_seconds: float, max_count: int) -> int:
        """Drop sessions idle for longer, and the longest idle ones beyond `max_count`.

        Those that a handle leads to are not counted: whoever gives out handles bounds them, so that
        many sessions of one client never cost another its own.
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
                " ORDER BY seen_at DESC, id LIMIT -1 OFFSET ?)",
                (max_count,),
            ).rowcount
            return idle + over

        return await self._database.write(delete)

    async def counts(self, *, active_within_seconds: float) -> tuple[int, int]:
        """How many sessions there are, and how many of them were seen lately."""
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
        """That long before now, and not before what a column of times can hold."""
        return max(self._now() - int(min(seconds, TIME_LIMIT) * 1000), -TIME_LIMIT)

    async def import_json(self, path: Path) -> int:
        """Take over a seed 003 `sessions.json`; ids we know already stay as they are."""
        path = path_argument("path", path)
        try:
            content = await anyio.Path(path).read_bytes()
        except OSError as error:
            raise file_error(error) from error
        try:
            entries = msgspec.json.decode(content, type=list[tuple[str, SeedSession]])
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise ImportRefused("sessions", "is not a list of [id, session] in JSON") from error

        def insert(connection: Connection) -> int:
            before = connection.total_changes
            for id, seed in entries:
                _insert(connection, _from_seed(id, seed), verb="INSERT OR IGNORE")
            return connection.total_changes - before

        return await self._database.write(insert)

    async def export_json(self, path: Path) -> int:
        """Write all sessions in seed 003's form; the file is replaced whole."""
        path = path_argument("path", path)
        sessions = await self.recent(limit=-1)
        content = msgspec.json.encode([(session.id, _to_seed(session)) for session in sessions])
        try:
            await anyio.to_thread.run_sync(replace_file, path, content)
        except OSError as error:
            raise file_error(error) from error
        return len(sessions)


def _insert(connection: Connection, session: Session, *, verb: str = "INSERT") -> None:
    connection.execute(
        f"{verb} INTO sessions ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
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
    )


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


def _from_seed(id: str, seed: SeedSession) -> Session:
    return Session(
        id=id,
        created_at=seed.start_time,
        seen_at=max(seed.start_time, seed.last_activity),
        transport="import",
        calls=seed.tool_calls,
    )


def _to_seed(session: Session) -> SeedSession:
    return SeedSession(
        id=session.id,
        start_time=session.created_at,
        last_activity=session.seen_at,
        tool_calls=session.calls,
    )

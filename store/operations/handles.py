"""Handles: secrets with which a client that keeps no connection returns to its session.

Only digests of handles are stored, each with its session and with the state that the caller
agreed on with its client, as opaque text. When a session expires or ends, its handles are void.
"""

from store.arguments import byte_string
from store.database import Connection, Database
from store.model import Handle
from store.validate import storable_text


class Handles:
    """The handles of a catalogue, by digest."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def keep(self, digest: bytes, session: str, state: str) -> None:
        """Store a handle, or update its state; committed on return."""
        digest, session = byte_string("digest", digest), storable_text("session", session)
        state = storable_text("state", state)

        def write(connection: Connection) -> None:
            connection.execute(
                "INSERT INTO handles (digest, session, state) VALUES (?, ?, ?)"
                " ON CONFLICT (digest) DO UPDATE SET state = excluded.state",
                (digest, session, state),
            )

        await self._database.write(write)

    async def find(self, digest: bytes) -> Handle | None:
        """The handle with this digest; None if it is unknown or its session has ended."""
        digest = byte_string("digest", digest)

        def read(connection: Connection) -> Handle | None:
            row = connection.execute(
                "SELECT session, state FROM handles JOIN sessions ON sessions.id = session"
                " WHERE digest = ? AND ended_at IS NULL",
                (digest,),
            ).fetchone()
            return None if row is None else Handle(session=row[0], state=row[1])

        return await self._database.read(read)

    async def all(self) -> list[tuple[bytes, Handle]]:
        """All handles of open sessions, the least recently seen first."""

        def read(connection: Connection) -> list[tuple[bytes, Handle]]:
            rows = connection.execute(
                "SELECT digest, session, state FROM handles JOIN sessions ON sessions.id = session"
                " WHERE ended_at IS NULL ORDER BY seen_at, session"
            )
            return [(row[0], Handle(session=row[1], state=row[2])) for row in rows]

        return await self._database.read(read)

    async def drop(self, digest: bytes) -> None:
        """Delete a handle and end its session."""
        digest = byte_string("digest", digest)

        def delete(connection: Connection) -> None:
            connection.execute(
                "UPDATE sessions SET ended_at ="
                " CASE WHEN seen_at > created_at THEN seen_at ELSE created_at END"
                " WHERE ended_at IS NULL AND id = (SELECT session FROM handles WHERE digest = ?)",
                (digest,),
            )
            connection.execute("DELETE FROM handles WHERE digest = ?", (digest,))

        await self._database.write(delete)

"""The records of document sources in the catalogue: definitions and states, as JSON texts."""

from store.database import Connection, Database
from store.model import SourceRecord
from store.validate import storable_text


class SourceRecords:
    """See `store.engine.SourceRecords`, which this implements."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def all(self) -> list[SourceRecord]:
        def read(connection: Connection) -> list[SourceRecord]:
            rows = connection.execute("SELECT name, definition, state FROM sources ORDER BY name")
            return [SourceRecord(name=row[0], definition=row[1], state=row[2]) for row in rows]

        return await self._database.read(read)

    async def save(self, name: str, *, definition: str | None, state: str) -> None:
        """Create or replace a record; committed on return."""
        name, state = storable_text("name", name), storable_text("state", state)
        if definition is not None:
            definition = storable_text("definition", definition)

        def write(connection: Connection) -> None:
            connection.execute(
                "INSERT INTO sources (name, definition, state) VALUES (?, ?, ?)"
                " ON CONFLICT (name) DO UPDATE"
                " SET definition = excluded.definition, state = excluded.state",
                (name, definition, state),
            )

        await self._database.write(write)

    async def remove(self, name: str) -> None:
        name = storable_text("name", name)

        def write(connection: Connection) -> None:
            connection.execute("DELETE FROM sources WHERE name = ?", (name,))

        await self._database.write(write)

"""The catalogue: the small database beside the banks, with the sessions in it.

Importing this module is cheap (no NumPy, no index, no model), because a daemon without memory
calls needs nothing else.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import anyio

from store.sqlite.connection import Connection
from store.sqlite.database import Database
from store.sqlite.files import make_private_directory
from store.sqlite.migrate import migrate
from store.sqlite.sessions import Sessions
from store.sqlite.storage_errors import file_error

FILE: Final = "catalogue.db"


def wall_clock() -> int:
    """Unix milliseconds, UTC."""
    return time.time_ns() // 1_000_000


class Catalogue:
    """The catalogue of one data directory."""

    def __init__(self, directory: Path, database: Database, now: Callable[[], int]) -> None:
        self.directory = directory
        self.database = database
        self.now = now
        self.sessions = Sessions(database, now)

    @classmethod
    async def open(cls, directory: Path, *, now: Callable[[], int] = wall_clock) -> "Catalogue":
        """Open or create the catalogue, and its private directory if necessary."""
        path = directory / FILE

        def prepare(connection: Connection) -> None:
            migrate(connection, "catalogue", path=path)

        try:
            await anyio.to_thread.run_sync(make_private_directory, directory)
        except OSError as error:
            raise file_error(error) from error
        return cls(directory, await Database.open(path, prepare=prepare), now)

    async def close(self) -> None:
        await self.database.close()

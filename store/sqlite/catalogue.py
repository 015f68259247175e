"""The catalogue: the small database beside the banks, with the sessions in it.

It has a backup beside it, which replaces it when it is lost or damaged (`maintenance/recovery.py`).

Importing this module is cheap (no NumPy, no index, no model), because a daemon without memory
calls needs nothing else.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import anyio

from store import log
from store.clock import wall_clock
from store.errors import StorageDamaged, StoreError
from store.files import file_error, make_private_directory
from store.operations.sessions import Sessions
from store.sqlite.connection import Connection
from store.sqlite.database import Database
from store.sqlite.maintenance import recovery
from store.sqlite.migrate import migrate
from store.sqlite.storage_errors import BROKEN

FILE: Final = "catalogue.db"
BANKS: Final = "banks"  # the directory beside it


class Catalogue:
    """The catalogue of one data directory."""

    def __init__(self, directory: Path, database: Database, now: Callable[[], int]) -> None:
        self.directory = directory
        self.database = database
        self.now = now
        self.sessions = Sessions(database, now)
        #: True if the catalogue was lost or damaged when this process opened it.
        self.is_replaced = False

    @classmethod
    async def open(cls, directory: Path, *, now: Callable[[], int] = wall_clock) -> "Catalogue":
        """Open or create the catalogue, and its private directory if necessary."""
        path, banks = directory / FILE, directory / BANKS

        def prepare(connection: Connection) -> None:
            if connection.execute("PRAGMA user_version").fetchone() != (0,):
                recovery.check_catalogue(connection)
            migrate(connection, "catalogue", path=path)

        def replace_if_missing() -> bool:
            make_private_directory(directory)
            return recovery.replace_if_missing(path, banks)

        try:
            is_replaced = await anyio.to_thread.run_sync(replace_if_missing)
            try:
                database = await Database.open(path, prepare=prepare)
            except StorageDamaged:
                replace = partial(recovery.replace_damaged, path, banks, now())
                aside = await anyio.to_thread.run_sync(replace)
                log.warning("catalogue.damaged", set_aside=aside.name)
                database = await Database.open(path, prepare=prepare)
                is_replaced = True
        except OSError as error:
            raise file_error(error) from error
        if is_replaced:
            log.warning("catalogue.replaced")
        catalogue = cls(directory, database, now)
        catalogue.is_replaced = is_replaced
        return catalogue

    async def close(self) -> None:
        """Close the database and bring its backup up to date."""
        await self.database.close()
        with anyio.CancelScope(shield=True), suppress(OSError, StoreError, *BROKEN):
            await anyio.to_thread.run_sync(recovery.back_up, self.database.path)

    async def back_up(self) -> None:
        """Bring the backup up to date while the catalogue is in use; a failure is not an error."""
        with suppress(OSError, StoreError, *BROKEN):
            await self.database.checkpoint()
            await self.database.maintain(lambda _: recovery.back_up(self.database.path))

"""A bank whose database is open, with the locks that its users share."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

import anyio

from store.errors import StorageForeign
from store.files import file_errors
from store.model import Bank
from store.sqlite.connection import Connection
from store.sqlite.database import Database

SNAPSHOT: Final = "vectors.snapshot"


class OpenBank:
    """A bank whose database is open. Users pin it; it is only closed while it is not pinned."""

    def __init__(self, bank: Bank, directory: Path, database: Database) -> None:
        self.bank = bank
        self.directory = directory
        self.database = database
        self.snapshot = directory / SNAPSHOT
        self.pins = 0
        self.used_at = 0.0
        self.is_awaited = False
        self.unpinned = anyio.Event()
        self.degraded: set[str] = set()
        self.copying = anyio.Lock()  # held by a backup, and during all steps of an erase
        # Held by threads that write or delete files beside the database. The event loop must not
        # wait for it.
        self.files = threading.Lock()

    is_shared = False

    @property
    def name(self) -> str:
        return self.bank.name

    def disk_bytes(self) -> int:
        return sum(file.stat().st_size for file in self.directory.iterdir() if file.is_file())

    def delete_snapshot(self, *, then: Callable[[], None]) -> None:
        """Delete the vector snapshot and call `then`, which resets the cache it came from.

        Both happen while the files are held. A thread that is about to write a snapshot of the old
        cache either has written it before, or notices the reset. Runs on a thread: `files` may be
        held for as long as a snapshot takes to be written.
        """
        with self.files, file_errors():
            try:
                self.snapshot.unlink(missing_ok=True)
            finally:
                then()

    def unpin(self) -> None:
        self.pins -= 1
        if not self.pins and self.is_awaited:
            self.unpinned.set()


def claim(connection: Connection, bank: Bank) -> None:
    """Write the bank's id into its database, or refuse a file that belongs to another bank."""
    connection.execute("INSERT OR IGNORE INTO state (id, bank) VALUES (1, ?)", (bank.id,))
    (owner,) = connection.execute("SELECT bank FROM state").fetchone()
    if owner != bank.id:
        raise StorageForeign("the database in this bank's place belongs to another bank")
    describe(connection, bank)


def describe(connection: Connection, bank: Bank) -> None:
    """Write the bank's name and settings into its own database, unless they are there already."""
    values = (bank.name, bank.created_at, bank.quota_bytes)
    found = connection.execute("SELECT name, created_at, quota_bytes FROM identity").fetchone()
    if found != values:
        connection.execute("INSERT OR REPLACE INTO identity VALUES (1, ?, ?, ?)", values)

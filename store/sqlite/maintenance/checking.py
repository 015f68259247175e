"""The check of a bank on a private copy, so that no put waits for it.

FTS5's integrity check counts as a write, and a check of a large bank takes seconds. So the bank is
copied first (in one read transaction, as for a backup), and the copy is checked on a thread of its
own. The copy lies beside the bank, where an erase would delete it, and is deleted at the end.

If no copy can be made, because the disk is full or the file is too damaged, the bank itself is
checked on the writer's connection.
"""

import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import anyio

from store.engine import Progress
from store.errors import StorageDamaged, StorageFailed, StorageFull, StorageReadOnly
from store.files import file_errors
from store.model import Checked
from store.operations.bank_access import LONG_READ_SECONDS
from store.sqlite.connection import Connection, copy_database, run_on_file
from store.sqlite.maintenance import integrity
from store.sqlite.maintenance.portion import WHOLE, ignore, portion
from store.sqlite.open_bank import OpenBank
from store.sqlite.storage_errors import BROKEN, storage_error

COPY: Final = "check.copy"
CHECK_SECONDS: Final = 1_800.0
_STEPS: Final = 100_000  # virtual machine steps between two looks at the clock


async def check_copy(opened: OpenBank, progress: Progress = ignore) -> Checked:
    """Check a copy of the bank. A cancelled caller does not wait for the end of the check."""
    copy = opened.directory / COPY
    check = _Check(opened.name, _Stop(), portion(progress, 150, WHOLE))

    def make(connection: Connection) -> None:
        with file_errors():
            copy_database(connection, copy, progress=portion(progress, 0, 150))

    def examine() -> Checked:
        try:
            return run_on_file(copy, check, writable=True)
        except BROKEN as error:
            raise storage_error(error) from error
        finally:
            _delete(copy)

    try:
        await opened.database.read(make, seconds=LONG_READ_SECONDS)
    except (StorageFull, StorageReadOnly, StorageDamaged, StorageFailed):
        await anyio.to_thread.run_sync(_delete, copy)
        return await opened.database.maintain(check)
    try:
        return await anyio.to_thread.run_sync(examine, abandon_on_cancel=True)
    finally:
        check.stop.set()


class _Stop:
    """Ends a check that takes too long, or whose caller has left."""

    def __init__(self) -> None:
        self._left = threading.Event()
        self._deadline = time.monotonic() + CHECK_SECONDS

    def set(self) -> None:
        self._left.set()

    def __call__(self) -> bool:
        return self._left.is_set() or time.monotonic() > self._deadline


class _Check:
    """A unit of work: the check, interrupted when it is to stop."""

    def __init__(self, bank: str, stop: _Stop, progress: Progress) -> None:
        self._bank = bank
        self.stop = stop
        self._progress = progress

    def __call__(self, connection: Connection) -> Checked:
        connection.set_progress_handler(self.stop, _STEPS)
        try:
            return integrity.check(
                connection, self._bank, is_stopped=self.stop, progress=self._progress
            )
        finally:
            connection.set_progress_handler(None, 0)


def _delete(copy: Path) -> None:
    for end in ("", "-journal", "-wal", "-shm"):
        with suppress(OSError):  # the next check or erase deletes it
            copy.with_name(copy.name + end).unlink(missing_ok=True)

"""Erase: delete items so that none of their bytes remains in a file of the data directory.

Deleting the rows is not enough. FTS5 keeps the words of deleted rows until its segments are merged.
SQLite leaves old copies of rows that it moved between pages, even with `secure_delete`. The
write-ahead log holds old versions of pages. Snapshots and backups are copies. So an erase has these
steps:

1. One transaction (`store/operations/erasing.py`) deletes rows, words, vectors, evidence and keys,
   and inserts tombstones without content.
2. FTS5's segments are merged and the file is rewritten (VACUUM).
3. The log is checkpointed and truncated, waiting for readers that prevent it.
4. The vector snapshot, copies from before migrations, and backups that contain the items are
   deleted. So are backups made between steps 1 and 5, because deleted rows leave bytes behind.
   Directories are never created here, so they are left alone.
5. The tombstones are marked as finished.

If the process is killed between two steps, the items cannot be read any more (step 1 is atomic),
and opening the bank repeats steps 2 to 5, which are idempotent. No backup is made during an erase
(`OpenBank.copying`). Copies made by the file system, the disk or other programs, and memory, are
out of reach.

A document keeps its whole text, so a chunk cannot be erased alone: naming all chunks of a document
erases the document, and naming only some is refused.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from store.errors import EraseIncomplete
from store.files import errno_name, sync_directory
from store.sqlite.connection import Connection, checkpoint, run_on_file
from store.sqlite.storage_errors import BROKEN

WAIT_SECONDS: Final = 6.0  # a little longer than the deadline of a reader
BUSY_MILLISECONDS: Final = 250
PAUSE_SECONDS: Final = 0.05


def is_unfinished(connection: Connection) -> bool:
    row = connection.execute("SELECT 1 FROM tombstones WHERE finished_at IS NULL").fetchone()
    return row is not None


def finish(
    connection: Connection,
    directory: Path,
    backups: Path,
    now: int,
    *,
    wait_seconds: float = WAIT_SECONDS,
    pause: Callable[[float], None] = time.sleep,
) -> int:
    """Steps 2 to 5, on the writer's connection. Returns the number of deleted copies."""
    erased = [
        id
        for (id,) in connection.execute(
            "SELECT public_id FROM tombstones WHERE finished_at IS NULL"
        )
    ]
    if not erased:
        return 0
    connection.execute("INSERT INTO words (words) VALUES ('optimize')")
    connection.execute("VACUUM")
    _truncate_log(connection, wait_seconds, pause)
    try:
        copies = _delete_copies(erased, directory, backups)
    except OSError as error:
        raise EraseIncomplete(
            f"erased, but a copy could not be deleted ({errno_name(error)})"
        ) from error
    connection.execute("UPDATE tombstones SET finished_at = ? WHERE finished_at IS NULL", (now,))
    return copies


def _truncate_log(
    connection: Connection, wait_seconds: float, pause: Callable[[float], None]
) -> None:
    """Truncate the log, which still holds the erased rows; wait for readers that prevent it."""
    (before,) = connection.execute("PRAGMA busy_timeout").fetchone()
    connection.execute(f"PRAGMA busy_timeout = {BUSY_MILLISECONDS}")
    deadline = time.monotonic() + wait_seconds
    try:
        while not checkpoint(connection):
            if time.monotonic() > deadline:
                raise EraseIncomplete(
                    "erased, but a reader of the database keeps copies in its log: try again"
                )
            pause(PAUSE_SECONDS)
    finally:
        connection.execute(f"PRAGMA busy_timeout = {before}")


def _delete_copies(erased: Sequence[str], directory: Path, backups: Path) -> int:
    """Delete every file that is or may be a copy of the database; returns their number."""
    copies = [
        file
        for file in directory.iterdir()
        if file.name not in ("bank.db", "bank.db-wal", "bank.db-shm") and not file.is_dir()
    ]
    if backups.is_dir():
        copies += [
            file for file in backups.iterdir() if not file.is_dir() and _may_hold(file, erased)
        ]
    for file in copies:
        delete_copy(file)
    for place in {file.parent for file in copies}:
        sync_directory(place)
    return len(copies)


def delete_copy(file: Path) -> None:
    file.unlink(missing_ok=True)


def _may_hold(file: Path, erased: Sequence[str]) -> bool:
    """True if a backup contains one of the items or remains of deleted rows, or is unreadable."""

    def search(copy: Connection) -> bool:
        return is_unfinished(copy) or any(
            copy.execute(f"SELECT 1 FROM {table} WHERE public_id = ?", (id,)).fetchone()
            for id in erased
            for table in ("items", "documents")
        )

    try:
        return run_on_file(file, search)
    except BROKEN:
        return True

"""Erasing: so that no byte of what was erased is left in a file of ours.

Deleting a row is not that. FTS5 keeps the words of deleted rows until its segments are merged;
SQLite leaves old copies of rows that it once moved between pages, even with `secure_delete`; the
write-ahead log holds every page as it was; snapshots and backups are copies. So an erase is:

1. one transaction: rows, words, vectors, evidence and keys go, content-free tombstones come;
2. FTS5's segments are merged, and the file is written anew (VACUUM);
3. the log is folded in and cut to nothing, and a reader that prevents this is waited for;
4. the vector snapshot, copies from before upgrades, and backups that hold it are deleted, as are
   backups made after 1 and before 5 (deleted rows leave bytes); directories are not ours and stay;
5. the tombstones are marked finished.

Killed between any two steps, the erased are unreachable (1 is durable or did not happen), and
opening the bank does 2 to 5 again: each may be done twice. No backup is made while an erase is on
its way (`OpenBank.copying`). What is beyond us: copies a file system, a disk or another program
made, and memory.

A document keeps its whole text, so a chunk is erased with its document or not at all: naming all
chunks of a document erases it, naming some is refused.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from store.errors import EraseIncomplete, InvalidInput, NotFound
from store.model import Erased
from store.sqlite.connection import Connection, checkpoint, run_on_file
from store.sqlite.files import sync_directory
from store.sqlite.rows.memories import delete_rows
from store.sqlite.rows.transaction import WriteTransaction
from store.sqlite.storage_errors import BROKEN, errno_name

WAIT_SECONDS: Final = 6.0  # a little longer than any reader of ours may read
BUSY_MILLISECONDS: Final = 250
PAUSE_SECONDS: Final = 0.05


def remove(
    changes: WriteTransaction,
    ids: Sequence[str],
    *,
    reason: str,
    now: int,
    documents: Sequence[str] = (),
) -> Erased:
    """Step 1. Items may be findable or forgotten; an id that is neither is `NotFound`."""
    connection = changes.connection
    rowids: dict[int, tuple[str, str]] = {}
    parts: dict[str, str] = {}  # documents by one of their chunks
    for id in dict.fromkeys(ids):
        row = connection.execute(
            "SELECT id, kind, document FROM items WHERE public_id = ?", (id,)
        ).fetchone()
        if row is None:
            raise NotFound("item", id)
        rowids[row[0]] = (id, row[1])
        if row[2] is not None:
            parts[row[2]] = id
    for document in parts.keys() - set(documents):
        # All of them at once: a statement still in progress would keep VACUUM from its work.
        chunks = connection.execute(
            "SELECT id FROM items WHERE document = ?", (document,)
        ).fetchall()
        if any(rowid not in rowids for (rowid,) in chunks):
            raise InvalidInput(
                "ids",
                f"{parts[document]!r} is a part of document {document!r}, which keeps the whole"
                " text: erase the document",
            )
    documents = [*documents, *parts]
    for id in dict.fromkeys(documents):
        if not connection.execute("SELECT 1 FROM documents WHERE public_id = ?", (id,)).fetchone():
            raise NotFound("document", id)
        rows = connection.execute("SELECT id, public_id FROM items WHERE document = ?", (id,))
        rowids |= {rowid: (public_id, "chunk") for rowid, public_id in rows}
    delete_rows(changes, rowids)
    buried = [*rowids.values(), *((id, "document") for id in dict.fromkeys(documents))]
    for id, kind in buried:
        connection.execute("DELETE FROM documents WHERE public_id = ?", (id,))
        connection.execute("DELETE FROM evidence WHERE item = ?", (id,))
        connection.execute("DELETE FROM origins WHERE public_id = ?", (id,))
        connection.execute(
            "INSERT INTO tombstones (public_id, kind, erased_at, reason) VALUES (?, ?, ?, ?)"
            " ON CONFLICT DO UPDATE SET erased_at = excluded.erased_at, finished_at = NULL",
            (id, kind, now, reason),
        )
    return Erased(items=len(rowids), documents=len(buried) - len(rowids))


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
    """Steps 2 to 5, alone on the writer's connection. How many copies were deleted with it."""
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
    _cut_log(connection, wait_seconds, pause)
    try:
        copies = _delete_copies(erased, directory, backups)
    except OSError as error:
        raise EraseIncomplete(
            f"erased, but a copy could not be deleted ({errno_name(error)})"
        ) from error
    connection.execute("UPDATE tombstones SET finished_at = ? WHERE finished_at IS NULL", (now,))
    return copies


def _cut_log(connection: Connection, wait_seconds: float, pause: Callable[[float], None]) -> None:
    """The log still holds what was erased until it is cut; the busy flag says whether it was."""
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
    """Everything beside the database that is, or may be, a copy."""
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
    """Whether a backup holds one of these, or what a deleted row left; one we cannot ask might."""

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

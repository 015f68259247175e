"""Backups of a bank: complete copies, made while the bank is in use, and verified.

Backups are stored beside the banks and are private like them. An erase deletes backups that
contain the erased items. Restoring replaces the bank with a verified backup in one rename; the
replaced state becomes a backup itself.
"""

import shutil
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from store.engine import Progress
from store.errors import NotFound, StorageDamaged
from store.files import create_private, make_private_directory, sync_directory, sync_file
from store.model import BackedUp
from store.rows.items import SELECT
from store.rows.table import is_sound
from store.sqlite.connection import APPLICATION_ID, Connection, copy_database, run_on_file
from store.sqlite.maintenance.portion import WHOLE, ignore, portion
from store.sqlite.migrate import migrations
from store.sqlite.storage_errors import BROKEN

KEEP: Final = 5
SUFFIX: Final = ".db"
_ROWS_PER_REPORT: Final = 500


def make(
    connection: Connection,
    directory: Path,
    *,
    bank: str,
    name: str,
    now: int,
    progress: Progress = ignore,
) -> BackedUp:
    """Copy the bank of `connection` into `directory` and verify the copy."""
    make_private_directory(directory)
    target = directory / f"{name}{SUFFIX}"
    temporary = directory / f"{name}.tmp"
    try:
        copy_database(connection, temporary, progress=portion(progress, 0, 300))
        items = verify(temporary, portion(progress, 300, WHOLE))
        sync_file(temporary)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(directory)
    return BackedUp(
        bank=bank,
        name=name,
        bytes=target.stat().st_size,
        items=items,
        made_at=now,
        path=str(target),
    )


def verify(file: Path, progress: Progress = ignore) -> int:
    """Check the file, the schema and every row of a copy; returns the number of items."""
    try:
        return run_on_file(file, partial(_verified_items, progress=progress))
    except BROKEN as error:
        raise StorageDamaged("the backup is damaged") from error


def _verified_items(copy: Connection, progress: Progress) -> int:
    if copy.execute("PRAGMA application_id").fetchone() != (APPLICATION_ID,):
        raise StorageDamaged("the backup is not a copy of a bank")
    (version,) = copy.execute("PRAGMA user_version").fetchone()
    if not 0 < version <= len(migrations("bank")):
        raise StorageDamaged("the backup has a schema this version does not know")
    if copy.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
        raise StorageDamaged("the backup is damaged")
    (total,) = copy.execute("SELECT count(*) FROM items").fetchone()
    items = 0
    for row in copy.execute(SELECT):
        if not is_sound(row):
            raise StorageDamaged("the backup holds a damaged row")
        items += 1
        if items % _ROWS_PER_REPORT == 0:
            progress(items, total)
    return items


def listing(directory: Path, bank: str) -> list[BackedUp]:
    """All backups, newest first. Their items are not counted."""
    if not directory.is_dir():
        return []
    found: list[BackedUp] = []
    for file in sorted(directory.glob(f"*{SUFFIX}"), reverse=True):
        with suppress(FileNotFoundError):  # pruned or erased in the meantime
            status = file.stat()
            made_at = int(status.st_mtime * 1000)
            found.append(
                BackedUp(
                    bank=bank,
                    name=file.stem,
                    bytes=status.st_size,
                    items=-1,
                    made_at=made_at,
                    path=str(file),
                )
            )
    return found


def prune(directory: Path, keep: int, *, spare: Collection[str] = ()) -> int:
    """Delete all backups except the newest `keep` and those named in `spare`.

    The latest backup is not always the newest by name, because clocks can be set back.
    """
    names = sorted((file.stem for file in directory.glob(f"*{SUFFIX}")), reverse=True)
    old = [name for name in names[keep:] if name not in spare]
    for name in old:
        (directory / f"{name}{SUFFIX}").unlink(missing_ok=True)
    return len(old)


def put_in_place(
    source: Path,
    database: Path,
    *,
    claimed: Callable[[Connection], None],
    keep_log: bool,
    progress: Progress = ignore,
) -> None:
    """Replace the database of a closed bank with a verified copy of `source`, in one rename.

    `claimed` is called with the copy before it is used. The write-ahead log of the old database
    must be gone, because SQLite would apply it to the new one. With `keep_log` a log that is not
    empty is an error (another connection still has the old database open); without `keep_log` the
    old database is damaged, and its log is deleted.
    """
    log = database.with_name(database.name + "-wal")
    if keep_log and log.exists() and log.stat().st_size:
        raise StorageDamaged("the bank could not be closed cleanly, so nothing was restored")
    incoming = database.with_name(database.name + ".incoming")
    incoming.unlink(missing_ok=True)
    create_private(incoming)
    shutil.copyfile(source, incoming)
    try:
        run_on_file(incoming, claimed, writable=True)
        verify(incoming, progress)
        sync_file(incoming)
        for companion in ("-wal", "-shm"):
            database.with_name(database.name + companion).unlink(missing_ok=True)
        incoming.replace(database)
    finally:
        incoming.unlink(missing_ok=True)
    sync_directory(database.parent)


def find(directory: Path, name: str) -> Path:
    """The file of a backup. The name is compared with existing files and never used as a path."""
    for file in directory.glob(f"*{SUFFIX}") if directory.is_dir() else ():
        if file.stem == name:
            return file
    raise NotFound("backup", name)

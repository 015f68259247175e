"""Recovery of the catalogue, and of banks that no catalogue lists.

The catalogue is small and is copied to a file beside it (`catalogue.db.backup`) when the engine
starts and stops. A damaged catalogue is set aside, never deleted. Then the backup takes its place.
A missing or empty catalogue is replaced by the backup too.

Each bank carries its own name and settings. So a backup is brought up to date with the banks when
it is used: a bank that was renamed since has its new name, and a bank that was deleted since stays
deleted. A directory that the catalogue does not list is an orphan. Health reports it, and
`recalld bank recover` adds it to the catalogue again. A file of another program is never changed.
"""

import os
import shutil
import sqlite3
from collections.abc import Container
from pathlib import Path
from typing import Final, NamedTuple

from store.errors import StorageDamaged, StorageForeign, StoreError
from store.files import create_private, sync_directory, sync_file
from store.model import Bank
from store.sqlite.connection import APPLICATION_ID, Connection, run_on_file
from store.sqlite.storage_errors import BROKEN

DATABASE: Final = "bank.db"
#: The end of the name of a bank's directory whose files are being deleted.
DELETED: Final = ".deleted"

_LOGS: Final = ("-wal", "-shm", "-journal")
_NAME_LENGTH: Final = 200  # leaves room for the mark of a recovered bank


class Identity(NamedTuple):
    """The name and settings that a bank's own file carries."""

    id: str
    name: str | None
    created_at: int | None
    quota_bytes: int | None


# --- the catalogue ------------------------------------------------------------------------------


def backup_of(catalogue: Path) -> Path:
    return catalogue.with_name(catalogue.name + ".backup")


def back_up(catalogue: Path) -> bool:
    """Copy a closed catalogue to its backup, verified; False if the backup is current already."""
    backup = backup_of(catalogue)
    log = catalogue.with_name(catalogue.name + "-wal")
    if log.exists() and log.stat().st_size:
        return False  # the file alone is not the whole catalogue
    if backup.exists() and backup.stat().st_mtime_ns >= catalogue.stat().st_mtime_ns:
        return False
    _copy(catalogue, backup)
    return True


def replace_if_missing(catalogue: Path, banks: Path) -> bool:
    """Put the backup in the place of a missing or empty catalogue; True if it was done."""
    if catalogue.exists() and catalogue.stat().st_size:
        return False
    return _put_backup_in_place(catalogue, banks)


def replace_damaged(catalogue: Path, banks: Path, now: int) -> Path:
    """Set a damaged catalogue aside, and put its backup in its place; returns the damaged file.

    Without an intact backup the caller creates an empty catalogue.
    """
    aside = catalogue.with_name(f"{catalogue.name}.damaged-{now}")
    for end in ("", *_LOGS):
        file = catalogue.with_name(catalogue.name + end)
        if file.exists():
            file.replace(aside.with_name(aside.name + end))
    sync_directory(catalogue.parent)
    _put_backup_in_place(catalogue, banks)
    return aside


def _put_backup_in_place(catalogue: Path, banks: Path) -> bool:
    backup = backup_of(catalogue)
    if not backup.exists():
        return False
    incoming = catalogue.with_name(catalogue.name + ".incoming")
    try:
        _copy(backup, incoming)
        run_on_file(incoming, lambda connection: _follow(connection, banks), writable=True)
        sync_file(incoming)
    except (*BROKEN, StoreError):
        incoming.unlink(missing_ok=True)
        return False
    for end in _LOGS:  # SQLite would apply them to the file that takes this place
        catalogue.with_name(catalogue.name + end).unlink(missing_ok=True)
    incoming.replace(catalogue)
    sync_directory(catalogue.parent)
    return True


def _follow(connection: Connection, banks: Path) -> None:
    """Bring the copy of a catalogue up to date with the files of the banks."""
    connection.execute("BEGIN IMMEDIATE")
    rows = connection.execute("SELECT id, name FROM banks").fetchall()
    renamed: dict[str, str] = {}
    for id, name in rows:
        directory = banks / id
        if not (directory / DATABASE).exists():
            connection.execute("DELETE FROM banks WHERE id = ?", (id,))
            continue
        try:
            found = identity(directory)
        except StoreError:
            continue  # the users of this bank will get the error
        connection.execute(
            "UPDATE banks SET quota_bytes = ? WHERE id = ? AND ?",
            (found.quota_bytes, id, found.name is not None),
        )
        if found.name is not None and found.name != name:
            renamed[id] = found.name
    for id in renamed:  # first to unique names, because two banks may have exchanged theirs
        connection.execute("UPDATE banks SET name = id WHERE id = ?", (id,))
    for id, name in renamed.items():
        connection.execute("UPDATE OR IGNORE banks SET name = ? WHERE id = ?", (name, id))
    connection.execute("COMMIT")


def _copy(source: Path, target: Path) -> None:
    """Copy a database file that nothing writes to; the copy is verified and replaces `target`."""
    temporary = target.with_name(target.name + ".tmp")
    temporary.unlink(missing_ok=True)
    create_private(temporary)
    try:
        shutil.copyfile(source, temporary)
        run_on_file(temporary, check_catalogue)
        sync_file(temporary)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(target.parent)


def check_catalogue(connection: Connection) -> None:
    """Raise `StorageDamaged` unless the file is an intact database of recalld."""
    if connection.execute("PRAGMA application_id").fetchone() != (APPLICATION_ID,):
        raise StorageForeign("the catalogue belongs to another program")
    if connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
        raise StorageDamaged("the catalogue is damaged")


# --- banks --------------------------------------------------------------------------------------


def orphans(banks: Path, known: Container[str]) -> list[str]:
    """The directories of banks that the catalogue does not list, by id."""
    if not banks.is_dir():
        return []
    with os.scandir(banks) as entries:
        found = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    return sorted(
        name
        for name in found
        if name not in known and not name.endswith(DELETED) and (banks / name / DATABASE).exists()
    )


def identity(directory: Path) -> Identity:
    """The name and settings in a bank's file. Raises if it is not the file of that bank."""
    file = directory / DATABASE
    with file.open("rb") as opened:
        header = opened.read(100)
    if int.from_bytes(header[68:72], "big") != APPLICATION_ID:
        raise StorageForeign("the file belongs to another program")

    def read(connection: Connection) -> Identity:
        row = connection.execute("SELECT bank FROM state").fetchone()
        if row is None or row[0] != directory.name:
            raise StorageForeign("the file belongs to another bank")
        try:
            about = connection.execute(
                "SELECT name, created_at, quota_bytes FROM identity"
            ).fetchone()
        except sqlite3.OperationalError:  # written by a version that kept the name elsewhere
            about = None
        return Identity(directory.name, *(about or (None, None, None)))

    try:
        return run_on_file(file, read)
    except BROKEN as error:
        raise StorageDamaged("the file is damaged") from error


def as_bank(found: Identity, taken: Container[str], now: int) -> Bank:
    """The entry of the catalogue for a recovered bank; its name is changed if it is taken."""
    name = found.name or f"recovered-{found.id[:8]}"
    if name in taken:
        name = f"{name[:_NAME_LENGTH]} (recovered {found.id[:8]})"
    return Bank(
        id=found.id,
        name=name,
        created_at=now if found.created_at is None else found.created_at,
        quota_bytes=found.quota_bytes,
    )

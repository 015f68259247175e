"""Maps the errors of SQLite to the engine's own.

The messages carry no SQL, no stored text and no path.
"""

import os
import sqlite3
from pathlib import Path
from typing import Final

from store.errors import (
    StorageBusy,
    StorageDamaged,
    StorageError,
    StorageFailed,
    StorageFull,
    StorageReadOnly,
)

NO_SPACE_BYTES: Final = 65_536  # less free space than this counts as full: the log needs 32 KiB

# SQLite's primary result codes.
_FAILURES: Final[dict[int, tuple[type[StorageError], str]]] = {
    sqlite3.SQLITE_FULL: (StorageFull, "no space left on the disk"),
    sqlite3.SQLITE_READONLY: (StorageReadOnly, "the database may not be written"),
    sqlite3.SQLITE_CANTOPEN: (StorageReadOnly, "the database cannot be opened"),
    sqlite3.SQLITE_PERM: (StorageReadOnly, "the database may not be opened"),
    sqlite3.SQLITE_BUSY: (StorageBusy, "another process holds the database"),
    sqlite3.SQLITE_LOCKED: (StorageBusy, "another process holds the database"),
    sqlite3.SQLITE_INTERRUPT: (StorageBusy, "a read took longer than it may"),
    sqlite3.SQLITE_IOERR: (StorageFailed, "input or output failed on the disk"),
    sqlite3.SQLITE_CORRUPT: (StorageDamaged, "the database file is damaged"),
    sqlite3.SQLITE_NOTADB: (StorageDamaged, "the database file is damaged"),
}
# The errors that the sqlite3 module raises for a damaged file. It decodes texts, and its own
# messages (which quote a damaged schema), as strict UTF-8. A damaged length makes SQLite ask for
# more memory than there is, which is a MemoryError.
BROKEN: Final = (sqlite3.Error, UnicodeDecodeError, MemoryError, OverflowError)
# Errors of code that got a value of the wrong type or shape: of a damaged file, or a mistake.
MISREAD: Final = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError)
# After these errors the connection may see another state than the disk: close and reopen it.
SUSPECT: Final = (StorageFailed, StorageDamaged, StorageReadOnly, StorageFull)


def storage_error(error: BaseException, directory: Path | None = None) -> StorageError:
    """The engine's error for an error of SQLite.

    On a full disk SQLite reports some failures as input/output errors. Given the `directory` of
    the database, those become `StorageFull`.
    """
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    if not isinstance(error, sqlite3.Error) or "decode to UTF-8" in str(error):
        code = sqlite3.SQLITE_CORRUPT
    refused = (StorageFailed, f"the database refused the operation (code {code})")
    kind, message = _FAILURES.get(code & 0xFF, refused)
    if issubclass(kind, StorageFailed) and directory is not None and _is_full(directory):
        return StorageFull("no space left on the disk")
    return kind(message)


def _is_full(directory: Path) -> bool:
    try:
        status = os.statvfs(directory)
    except OSError:
        return False
    return status.f_bavail * status.f_frsize < NO_SPACE_BYTES

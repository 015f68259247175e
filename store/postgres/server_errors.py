"""Maps the errors of PostgreSQL to the engine's own. The messages carry no SQL and no content."""

from typing import Final

import psycopg
from psycopg import errors

from store.errors import (
    InvalidInput,
    SchemaTooNew,
    StorageBusy,
    StorageError,
    StorageFailed,
    StorageFull,
    StorageReadOnly,
    StoreError,
)

UNREACHABLE: Final = "the database server cannot be reached; try again"
#: The server undid the transaction for a reason that may not recur.
RETRIED: Final = (errors.SerializationFailure, errors.DeadlockDetected)
#: The server ended the connection on purpose, or does not accept one at present.
_LEAVING: Final = (
    errors.AdminShutdown,
    errors.CrashShutdown,
    errors.CannotConnectNow,
    errors.IdleInTransactionSessionTimeout,
)
_KINDS: Final[tuple[tuple[type[psycopg.Error], type[StorageError], str], ...]] = (
    (errors.DiskFull, StorageFull, "no space left on the database server"),
    (errors.TooManyConnections, StorageBusy, "the database server has no connection left"),
    (errors.QueryCanceled, StorageBusy, "a read took longer than it may"),
    (errors.LockNotAvailable, StorageBusy, "another process holds the bank"),
    (errors.SerializationFailure, StorageBusy, "other writers came first; try again"),
    (errors.DeadlockDetected, StorageBusy, "other writers came first; try again"),
    (errors.ReadOnlySqlTransaction, StorageReadOnly, "the database server is read-only"),
    (errors.InsufficientPrivilege, StorageReadOnly, "the database user lacks a privilege"),
)


class ServerRefused(StoreError):
    """The server cannot be used as it is configured: address, user, version or privileges."""


def is_lost(error: BaseException) -> bool:
    """Whether the connection ended, so that its transaction was undone unless COMMIT was sent."""
    if isinstance(error, _LEAVING):
        return True
    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) and (
        error.sqlstate is None or error.sqlstate.startswith("08")
    )


def storage_error(error: psycopg.Error) -> StoreError:
    """The engine's error for an error of the server or of the connection to it."""
    if is_lost(error):
        return StorageBusy(UNREACHABLE)
    if isinstance(error, errors.ProgramLimitExceeded):
        return InvalidInput("labels", "must be shorter: the server indexes about 2,600 bytes")
    for kind, failure, message in _KINDS:
        if isinstance(error, kind):
            return failure(message)
    code = error.sqlstate or "no code"
    return StorageFailed(f"the database server refused the operation (code {code})")


__all__ = [
    "RETRIED", "UNREACHABLE", "SchemaTooNew", "ServerRefused", "is_lost", "storage_error",
]  # fmt: skip

"""The one translator from exceptions to what a peer is told.

`FAULTS` says which fault of `protocol.errors` (and which HTTP status) each exception is. What is
not in it is a crash: the peer hears "Internal error" and an id that finds the traceback in the log.
"""

import secrets
import traceback
from pathlib import Path
from typing import Any, Final

import structlog

from daemon.tools.authority import Forbidden
from daemon.tools.bound_tool import BoundTool
from daemon.tools.errors import ArgumentsRefused, Denied, ToolFailure
from protocol.errors import ErrorObject, Fault, ProtocolError, error_object
from protocol.mcp import CallToolResult, error_result
from protocol.revisions import Revision
from store.errors import (
    BankExists,
    BankNotFound,
    EmbedderFailed,
    EraseIncomplete,
    InvalidInput,
    KeyReused,
    NotFound,
    QuotaExceeded,
    SchemaTooNew,
    StorageBusy,
    StorageClosed,
    StorageDamaged,
    StorageError,
    StorageFailed,
    StorageForeign,
    StorageFull,
    StorageReadOnly,
    StorageReplaced,
    StoreError,
    TextTooLong,
    TooManyBanks,
    UndoExpired,
    WrongModel,
)

log: Final = structlog.get_logger()


class RateLimited(Exception):
    """The session used up its window."""

    def __init__(self, limit: int, seconds: float) -> None:
        super().__init__(f"{limit} requests a minute; next slot in {seconds:.1f} s")
        self.limit = limit
        self.seconds = seconds


class Overloaded(Exception):
    """Too many calls at once; nothing of this one was done."""


#: First match wins; subclasses stand before their bases.
FAULTS: Final[tuple[tuple[type[Exception], Fault, int], ...]] = (
    (RateLimited, Fault.RATE_LIMITED, 429),
    (Overloaded, Fault.OVERLOADED, 429),
    (TextTooLong, Fault.INVALID_PARAMS, 413),
    (InvalidInput, Fault.INVALID_PARAMS, 400),
    (Forbidden, Fault.INVALID_PARAMS, 403),
    (BankNotFound, Fault.DATABASE_ERROR, 404),
    (NotFound, Fault.DATABASE_ERROR, 404),
    (BankExists, Fault.DATABASE_ERROR, 409),
    (KeyReused, Fault.DATABASE_ERROR, 409),
    (UndoExpired, Fault.DATABASE_ERROR, 410),
    (QuotaExceeded, Fault.DATABASE_ERROR, 507),
    (TooManyBanks, Fault.DATABASE_ERROR, 507),
    (StorageFull, Fault.DATABASE_ERROR, 507),
    (StorageBusy, Fault.DATABASE_ERROR, 503),
    (StorageClosed, Fault.DATABASE_ERROR, 503),
    (StorageReadOnly, Fault.DATABASE_ERROR, 503),
    (StorageReplaced, Fault.DATABASE_ERROR, 503),
    (EraseIncomplete, Fault.DATABASE_ERROR, 503),
    (EmbedderFailed, Fault.DATABASE_ERROR, 503),
    (WrongModel, Fault.DATABASE_ERROR, 500),
    (StorageFailed, Fault.DATABASE_ERROR, 500),
    (StorageDamaged, Fault.DATABASE_ERROR, 500),
    (StorageForeign, Fault.DATABASE_ERROR, 500),
    (SchemaTooNew, Fault.DATABASE_ERROR, 500),
    (StorageError, Fault.DATABASE_ERROR, 500),
    (StoreError, Fault.DATABASE_ERROR, 500),
)


def refusal(tool: BoundTool, failure: Exception, revision: Revision) -> CallToolResult:
    """A tool's "no" as its dialect says it; raises what is said by a JSON-RPC error instead.

    Wrong arguments are an error in the older revisions and a result in the newer (D14), whether
    the schema refused them or the engine did.
    """
    if isinstance(failure, Denied):
        return tool.dialect.refuse(str(failure))
    if isinstance(failure, (ToolFailure, Forbidden)):
        return error_result(str(failure))
    if isinstance(failure, (ArgumentsRefused, InvalidInput)):
        reason = reason_of(tool, failure)
        if revision.argument_errors_are_results:
            return tool.dialect.refuse(reason)
        raise ProtocolError(Fault.INVALID_PARAMS, reason) from None
    if tool.dialect.fail is not None:
        return tool.dialect.fail(failure)
    raise failure


def reason_of(tool: BoundTool, failure: Exception) -> str:
    """Why not, in the words of the tool's arguments."""
    if not isinstance(failure, InvalidInput):
        return str(failure)
    head, dot, rest = failure.field.partition(".")
    return f"{tool.argument_name(head)}{dot}{rest}: {failure.rule}"


def is_known(failure: Exception) -> bool:
    """Whether a failure is one of those we have words for; anything else is a crash."""
    return isinstance(failure, tuple(kind for kind, _fault, _status in FAULTS))


def status_of(failure: Exception) -> int:
    """The HTTP status of a failure."""
    for kind, _fault, status in FAULTS:
        if isinstance(failure, kind):
            return status
    return 500


def describe(failure: BaseException) -> dict[str, Any]:
    """A crash for the log: what kind, and where. Not its message, which may quote a memory."""
    frames = traceback.extract_tb(failure.__traceback__)
    found: dict[str, Any] = {
        "error": type(failure).__qualname__,
        "frames": [f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in frames],
    }
    cause = failure.__cause__ or failure.__context__
    if cause is not None:
        found["because"] = type(cause).__qualname__
    return found


def error_for(failure: Exception, revision: Revision | None, **where: Any) -> ErrorObject:
    """What to answer; logs a crash with its traceback, and nothing else."""
    if isinstance(failure, ProtocolError):
        return error_object(failure.fault, failure.details, revision, **failure.data)
    if isinstance(failure, RateLimited):
        return error_object(
            Fault.RATE_LIMITED,
            str(failure),
            revision,
            retryAfterSeconds=round(failure.seconds, 3),
            limit=failure.limit,
        )
    for kind, fault, _status in FAULTS:
        if isinstance(failure, kind):
            return error_object(fault, str(failure), revision)
    error_id = secrets.token_hex(6)
    log.error("call.crashed", error_id=error_id, **describe(failure), **where)
    return error_object(Fault.INTERNAL_ERROR, f"error id {error_id}", revision, errorId=error_id)

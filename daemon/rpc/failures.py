"""The one table from exceptions to errors, for every transport.

`FAULTS` gives each exception its fault of `protocol.errors` and its HTTP status. An exception that
is not in the table is a crash: the peer gets "Internal error" and an id, and the log has the
traceback under that id.
"""

import secrets
import traceback
from pathlib import Path
from typing import Any, Final

import structlog
from msgspec import Struct

from daemon.tools.authority import Forbidden
from daemon.tools.bound_tool import BoundTool
from daemon.tools.errors import (
    ArgumentsRefused,
    Conflict,
    Denied,
    Missing,
    ScriptFailed,
    ScriptTimedOut,
    ToolFailure,
)
from protocol.errors import ErrorObject, Fault, ProtocolError, error_object, sentence
from protocol.mcp import CallToolResult, error_result
from protocol.revisions import Revision
from store.errors import (
    BankExists,
    BankNotFound,
    EmbedderFailed,
    EraseIncomplete,
    InvalidInput,
    ItemChanged,
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
    """The session has used up its window of the rate limiter."""

    def __init__(self, limit: int, seconds: float) -> None:
        super().__init__(f"{limit} requests a minute; next slot in {seconds:.1f} s")
        self.limit = limit
        self.seconds = seconds


class Overloaded(Exception):
    """Too many calls at once; this one was not started. `seconds` says when to try again."""

    def __init__(self, reason: str, seconds: float = 1.0) -> None:
        super().__init__(reason)
        self.seconds = seconds


class AnswerDiscarded(Overloaded):
    """The call is done, but its answer was too much for clients that do not read theirs."""

    def __init__(self, size: int, limit: int, setting: str) -> None:
        super().__init__(
            f"the call is done, but its answer of {size} bytes was discarded: {setting} is {limit},"
            " and clients do not read their answers; ask again later"
        )


class DeadlineExceeded(Exception):
    """The call took longer than its deadline and was cancelled."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the tool did not answer in {seconds:g} s")


class Failure(Struct, frozen=True, kw_only=True, eq=False):
    """A failed call, in the form each kind of transport needs."""

    #: For MCP: the JSON-RPC error.
    error: ErrorObject
    #: For REST: the HTTP status, one sentence, a code word if the status has another one, and the
    #: seconds after which the client may retry.
    status: int
    reason: str
    code: str = ""
    retry_seconds: float = 0.0


#: The first match wins; subclasses stand before their bases. Tools report `ArgumentsRefused` and
#: `ToolFailure` as results in MCP (see `refusal`), so these rows are for REST and for prompts.
FAULTS: Final[tuple[tuple[type[Exception], Fault, int], ...]] = (
    (RateLimited, Fault.RATE_LIMITED, 429),
    (Overloaded, Fault.OVERLOADED, 429),
    (DeadlineExceeded, Fault.INTERNAL_ERROR, 408),
    (ArgumentsRefused, Fault.INVALID_PARAMS, 400),
    (Missing, Fault.INTERNAL_ERROR, 404),
    (ScriptTimedOut, Fault.INTERNAL_ERROR, 408),
    (ScriptFailed, Fault.INTERNAL_ERROR, 500),
    (Conflict, Fault.INTERNAL_ERROR, 409),
    (ToolFailure, Fault.INTERNAL_ERROR, 400),
    (TextTooLong, Fault.INVALID_PARAMS, 413),
    (InvalidInput, Fault.INVALID_PARAMS, 400),
    (Forbidden, Fault.INVALID_PARAMS, 403),
    (BankNotFound, Fault.DATABASE_ERROR, 404),
    (NotFound, Fault.DATABASE_ERROR, 404),
    (BankExists, Fault.DATABASE_ERROR, 409),
    (KeyReused, Fault.DATABASE_ERROR, 409),
    (ItemChanged, Fault.DATABASE_ERROR, 409),
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
    """A tool's failure as a result in the form of its dialect.

    Raises the failure if a JSON-RPC error reports it instead. Wrong arguments are a JSON-RPC error
    up to 2025-06-18 and a result from 2025-11-25 on, whether the schema or the engine rejected
    them.
    """
    if isinstance(failure, Denied):
        return tool.dialect.refuse(str(failure))
    if isinstance(failure, (ScriptFailed, ScriptTimedOut)) and tool.dialect.fail is not None:
        return tool.dialect.fail(failure)
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
    """The reason of a failure; an engine field is named after the tool's argument."""
    if not isinstance(failure, InvalidInput):
        return str(failure)
    head, dot, rest = failure.field.partition(".")
    return f"{tool.argument_name(head)}{dot}{rest}: {failure.rule}"


def status_of(failure: Exception) -> int:
    """The HTTP status of an exception."""
    if isinstance(failure, ProtocolError):
        return 400
    for kind, _fault, status in FAULTS:
        if isinstance(failure, kind):
            return status
    return 500


def describe(failure: BaseException) -> dict[str, Any]:
    """A crash for the log: type and stack frames, no message, since that may quote a memory."""
    frames = traceback.extract_tb(failure.__traceback__)
    found: dict[str, Any] = {
        "error": type(failure).__qualname__,
        "frames": [f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in frames],
    }
    cause = failure.__cause__ or failure.__context__
    if cause is not None:
        found["because"] = type(cause).__qualname__
    return found


def failure_for(failure: Exception, revision: Revision | None, **where: Any) -> Failure:
    """Map an exception to a `Failure`; a crash, and nothing else, is logged with its traceback."""
    error = error_for(failure, revision, **where)
    status = status_of(failure)
    if isinstance(failure, ProtocolError):
        reason = sentence(failure.details)
    elif status == 500 and not isinstance(failure, (StoreError, ScriptFailed)):
        reason = error.message
    else:
        reason = sentence(str(failure))
    has_own_code = isinstance(failure, (Missing, ScriptTimedOut, Conflict))
    is_tool_error = isinstance(failure, ToolFailure) and not has_own_code
    return Failure(
        error=error,
        status=status,
        reason=reason,
        code="tool_error" if is_tool_error else "",
        retry_seconds=(failure.seconds if isinstance(failure, (RateLimited, Overloaded)) else 0.0),
    )


def error_for(failure: Exception, revision: Revision | None, **where: Any) -> ErrorObject:
    """The JSON-RPC error of an exception; a crash, and nothing else, is logged."""
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
    if isinstance(failure, Overloaded):
        seconds = round(failure.seconds, 3)
        return error_object(Fault.OVERLOADED, str(failure), revision, retryAfterSeconds=seconds)
    for kind, fault, _status in FAULTS:
        if isinstance(failure, kind):
            return error_object(fault, str(failure), revision)
    error_id = secrets.token_hex(6)
    log.error("call.crashed", error_id=error_id, **describe(failure), **where)
    return error_object(Fault.INTERNAL_ERROR, f"error id {error_id}", revision, errorId=error_id)

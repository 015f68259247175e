"""The one translator from exceptions to what a peer is told.

`FAULTS` says which fault of `protocol.errors` (and which HTTP status) each exception is. What is
not in it is a crash: the peer hears "Internal error" and an id that finds the traceback in the log.
"""

import secrets
from typing import Any, Final

import structlog

from protocol.errors import ErrorObject, Fault, ProtocolError, error_object
from protocol.revisions import Revision
from store.errors import InvalidInput, StoreError

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
    (InvalidInput, Fault.INVALID_PARAMS, 400),
    (StoreError, Fault.DATABASE_ERROR, 500),
)


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
    log.error("call.crashed", error_id=error_id, exc_info=failure, **where)
    return error_object(Fault.INTERNAL_ERROR, f"error id {error_id}", revision, errorId=error_id)

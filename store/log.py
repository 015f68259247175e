"""The engine's log: events with stable dotted names and fields, written through structlog.

Fields are ids, counts, sizes, durations and error names. They never hold the text of a memory, a
query, a bank's name or a path.

The engine can also be used as a library. Until the process has configured structlog, nothing is
logged, because structlog's default prints to stdout and that belongs to the caller.
"""

from typing import Any, Final

import structlog

_log: Final[Any] = structlog.get_logger()


def info(event: str, **fields: object) -> None:
    """Log something that the operator may want to know later."""
    if structlog.is_configured():
        _log.info(event, **fields)


def warning(event: str, **fields: object) -> None:
    """Log something that the operator may have to act on."""
    if structlog.is_configured():
        _log.warning(event, **fields)

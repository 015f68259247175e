"""JSON lines on stderr: events with names and fields, never the text of a memory.

A field that could hold what a user wrote (text, query, content, arguments) does not belong in a log
call; lengths and ids do. On stdio, stdout is the wire, so nothing here ever touches it.
"""

import logging
import sys
from typing import Final, TextIO

import orjson
import structlog

LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


def configure(level: str, stream: TextIO | None = None) -> None:
    """Set up structlog once, at the start of a process."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.format_exc_info,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(serializer=_serialize),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=structlog.WriteLoggerFactory(file=stream or sys.stderr),
        cache_logger_on_first_use=True,
    )


def _serialize(event: dict[str, object], **_: object) -> str:
    return orjson.dumps(event, default=repr).decode()

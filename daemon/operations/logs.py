"""Structured logs: JSON lines on stderr, with an event name and fields; plain text on a terminal.

Logs never contain user content (text, query, content, arguments); log lengths and ids instead.
Nothing is written to stdout, which carries the protocol on the stdio transport.
"""

import logging
import sys
import time
from collections.abc import Callable, MutableMapping
from typing import Any, Final

import orjson
import structlog

from daemon.operations.readable_log import render
from daemon.operations.stderr_writer import BackgroundWriter, stderr_writer

LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


#: Events that repeat quickly while a problem lasts; each is logged once per minute.
REPEATING: Final = frozenset({"write.refused"})
REPEAT_SECONDS: Final = 60.0


class RepeatFilter:
    """Passes a repeating event once per minute, with the number of suppressed ones."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._since: dict[tuple[str, Any], float] = {}
        self._suppressed: dict[tuple[str, Any], int] = {}

    def __call__(
        self, _logger: Any, _method: str, event: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        if event["event"] not in REPEATING:
            return event
        kind, now = (event["event"], event.get("reason")), self._clock()
        since = self._since.get(kind)
        if since is not None and now - since < REPEAT_SECONDS:
            self._suppressed[kind] = self._suppressed.get(kind, 0) + 1
            raise structlog.DropEvent
        self._since[kind] = now
        event["suppressed"] = self._suppressed.pop(kind, 0)
        return event


def configure(level: str) -> None:
    """Configure structlog; call once, at the start of a process."""
    is_terminal = sys.stderr is not None and sys.stderr.isatty()
    writer = stderr_writer()
    stream: Any = sys.stderr if writer is None else _TextStream(writer)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            RepeatFilter(time.monotonic),
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _readable if is_terminal else structlog.processors.JSONRenderer(serializer=_serialize),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=structlog.WriteLoggerFactory(file=stream),
        cache_logger_on_first_use=True,
    )


def flush(seconds: float = 0.2) -> None:
    """Write the remaining lines; call before the process ends."""
    writer = stderr_writer()
    if writer is not None:
        writer.drain(seconds)


class _TextStream:
    """The part of a text stream that structlog uses."""

    def __init__(self, writer: BackgroundWriter) -> None:
        self._writer = writer

    def write(self, line: str) -> int:
        self._writer.write(line.encode())
        return len(line)

    def flush(self) -> None:
        """Nothing to do; `write` does not buffer."""


def _readable(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> str:
    return render(event)


def _serialize(event: dict[str, object], **_: object) -> str:
    return orjson.dumps(event, default=repr).decode()

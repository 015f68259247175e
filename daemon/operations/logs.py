"""JSON lines on stderr: events with names and fields, never the text of a memory.

A field that could hold what a user wrote (text, query, content, arguments) does not belong in a log
call; lengths and ids do. On stdio, stdout is the wire, so nothing here ever touches it.
"""

import logging
import sys
import time
from collections.abc import Callable, MutableMapping
from typing import Any, Final

import orjson
import structlog

from daemon.operations.stderr_writer import PatientWriter, patient_stderr

LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


#: Events that come in floods while the trouble lasts: one a minute says it.
FLOODS: Final = frozenset({"write.refused"})
FLOOD_SECONDS: Final = 60.0


class Sparing:
    """Lets one event of a flood through a minute, with how many it stands for."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._since: dict[tuple[str, Any], float] = {}
        self._held: dict[tuple[str, Any], int] = {}

    def __call__(
        self, _logger: Any, _method: str, event: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        if event["event"] not in FLOODS:
            return event
        kind, now = (event["event"], event.get("reason")), self._clock()
        since = self._since.get(kind)
        if since is not None and now - since < FLOOD_SECONDS:
            self._held[kind] = self._held.get(kind, 0) + 1
            raise structlog.DropEvent
        self._since[kind] = now
        event["unsaid"] = self._held.pop(kind, 0)
        return event


def configure(level: str) -> None:
    """Set up structlog once, at the start of a process."""
    patient = patient_stderr()
    stream: Any = sys.stderr if patient is None else _Lines(patient)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            Sparing(time.monotonic),
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(serializer=_serialize),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=structlog.WriteLoggerFactory(file=stream),
        cache_logger_on_first_use=True,
    )


def settle(seconds: float = 0.2) -> None:
    """Before the process ends: let the last lines out."""
    patient = patient_stderr()
    if patient is not None:
        patient.settle(seconds)


class _Lines:
    """As much of a text stream as structlog asks for."""

    def __init__(self, writer: PatientWriter) -> None:
        self._writer = writer

    def write(self, line: str) -> int:
        self._writer.write(line.encode())
        return len(line)

    def flush(self) -> None:
        """Nothing is held back."""


def _serialize(event: dict[str, object], **_: object) -> str:
    return orjson.dumps(event, default=repr).decode()

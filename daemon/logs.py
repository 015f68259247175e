"""JSON lines on stderr: events with names and fields, never the text of a memory.

A field that could hold what a user wrote (text, query, content, arguments) does not belong in a log
call; lengths and ids do. On stdio, stdout is the wire, so nothing here ever touches it.
"""

import logging
import os
import stat
import sys
import threading
from queue import Full, Queue
from typing import Final, TextIO, cast

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
        logger_factory=structlog.WriteLoggerFactory(file=stream or _stderr()),
        cache_logger_on_first_use=True,
    )


def _serialize(event: dict[str, object], **_: object) -> str:
    return orjson.dumps(event, default=repr).decode()


class PatientStream:
    """Lines to a pipe that nobody may be reading: a thread waits, we never do.

    When the reader is so slow that `MOST` lines wait, further ones are dropped and counted; the
    count is written when there is room again.
    """

    MOST: Final = 1000

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lines: Queue[str] = Queue(self.MOST)
        self._dropped = 0
        threading.Thread(target=self._run, name="log", daemon=True).start()

    def write(self, line: str) -> int:
        try:
            if self._dropped:
                self._lines.put_nowait(f'{{"event":"log.dropped","lines":{self._dropped}}}\n')
                self._dropped = 0
            self._lines.put_nowait(line)
        except Full:
            self._dropped += 1
        return len(line)

    def flush(self) -> None:
        """Nothing is held back."""

    def settle(self, seconds: float) -> None:
        """Give the reader this long to take what waits; for the end of the process."""
        done = threading.Thread(target=self._lines.join, daemon=True)
        done.start()
        done.join(seconds)

    def _run(self) -> None:
        while True:
            line = self._lines.get()
            try:
                # Not through sys.stderr: its lock would be ours when the interpreter shuts down.
                os.write(self._descriptor, line.encode())
            except OSError:
                pass  # nobody will ever read it
            finally:
                self._lines.task_done()


_patient: list[PatientStream] = []


def _stderr() -> TextIO:
    """stderr; through a thread when it is a pipe or a socket, whose reader may have left."""
    mode = os.fstat(2).st_mode
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        return sys.stderr
    if not _patient:
        _patient.append(PatientStream(2))
    return cast("TextIO", _patient[0])


def settle(seconds: float = 0.2) -> None:
    """Before the process ends: let the last lines out."""
    for stream in _patient:
        stream.settle(seconds)

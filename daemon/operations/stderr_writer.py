"""Non-blocking writes to stderr, by a background thread.

A pipe holds 64 KiB. If a client never reads our stderr, the next write would block the process.
When stderr is a pipe or a socket, output therefore passes through a bounded queue to a thread.
Output that does not fit is dropped, and a `log.dropped` event reports the number later. Files and
terminals are written to directly.
"""

import os
import stat
import threading
from functools import cache
from queue import Full, Queue
from typing import Final

STDERR: Final = 2
#: Maximum number of queued writes.
MAX_QUEUED: Final = 1000


class BackgroundWriter:
    """Writes bytes to a descriptor on a thread, so that callers never block."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._queue: Queue[bytes] = Queue(MAX_QUEUED)
        self._dropped = 0
        threading.Thread(target=self._run, name="stderr", daemon=True).start()

    def write(self, data: bytes) -> None:
        """Queue bytes; drops them when the queue is full."""
        try:
            if self._dropped:
                note = b'{"event":"log.dropped","pieces":%d}\n' % self._dropped
                self._queue.put_nowait(note)
                self._dropped = 0
            self._queue.put_nowait(data)
        except Full:
            self._dropped += 1

    def drain(self, seconds: float) -> None:
        """Wait up to `seconds` until the queue is written; for the end of the process."""
        done = threading.Thread(target=self._queue.join, daemon=True)
        done.start()
        done.join(seconds)

    def relay(self) -> int:
        """Return a descriptor; bytes written to it are queued by a thread."""
        reading, writing = os.pipe()

        def copy() -> None:
            while data := os.read(reading, 65_536):
                self.write(data)

        threading.Thread(target=copy, name="stdout", daemon=True).start()
        return writing

    def _run(self) -> None:
        while True:
            data = memoryview(self._queue.get())
            try:
                while data:
                    data = data[os.write(self._descriptor, data) :]
            except OSError:
                pass  # the reader is gone
            finally:
                self._queue.task_done()


@cache
def stderr_writer() -> BackgroundWriter | None:
    """Return the writer for stderr, one per process; None if writing to stderr never blocks."""
    mode = os.fstat(STDERR).st_mode
    return BackgroundWriter(STDERR) if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) else None

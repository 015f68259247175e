"""Writing to a stderr that nobody may be reading: a thread waits, we never do.

A pipe holds 64 KiB. A client that starts us and never reads our stderr would stop us with the line
after that, be it a log line or a print of some library. So where stderr is a pipe or a socket, all
that goes there passes through a bounded queue and a thread; what does not fit is dropped, and how
much was dropped is said when there is room again. Files and terminals are written to directly.
"""

import os
import stat
import threading
from functools import cache
from queue import Full, Queue
from typing import Final

STDERR: Final = 2
#: Pieces (a log line each, or what was printed at once) that may wait.
MOST: Final = 1000


class PatientWriter:
    """Bytes to a descriptor, whenever its reader takes them."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._pieces: Queue[bytes] = Queue(MOST)
        self._dropped = 0
        threading.Thread(target=self._run, name="stderr", daemon=True).start()

    def write(self, piece: bytes) -> None:
        try:
            if self._dropped:
                note = b'{"event":"log.dropped","pieces":%d}\n' % self._dropped
                self._pieces.put_nowait(note)
                self._dropped = 0
            self._pieces.put_nowait(piece)
        except Full:
            self._dropped += 1

    def settle(self, seconds: float) -> None:
        """Give the reader this long to take what waits; for the end of the process."""
        done = threading.Thread(target=self._pieces.join, daemon=True)
        done.start()
        done.join(seconds)

    def relay(self) -> int:
        """A descriptor whose writers never wait for our reader: what they write comes to us."""
        reading, writing = os.pipe()

        def carry() -> None:
            while piece := os.read(reading, 65_536):
                self.write(piece)

        threading.Thread(target=carry, name="stdout", daemon=True).start()
        return writing

    def _run(self) -> None:
        while True:
            piece = memoryview(self._pieces.get())
            try:
                while piece:
                    piece = piece[os.write(self._descriptor, piece) :]
            except OSError:
                pass  # nobody will ever read it
            finally:
                self._pieces.task_done()


@cache
def patient_stderr() -> PatientWriter | None:
    """The writer for stderr, one a process; None where stderr cannot keep us waiting."""
    mode = os.fstat(STDERR).st_mode
    return PatientWriter(STDERR) if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) else None

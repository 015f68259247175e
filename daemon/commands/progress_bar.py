"""A progress bar on a terminal, for work that may take longer than a second.

Work with a known size shows a bar with counts. Other work shows the elapsed time after a second,
which a thread updates, and a count if it has a unit. Standard library only.
"""

import sys
import threading
import time
from typing import Final

SHOWN_AFTER_SECONDS: Final = 1.0
INTERVAL_SECONDS: Final = 0.1
WIDTH: Final = 24


class ProgressBar:
    """One line on stderr, cleared at the end; `update` may be called from any thread."""

    def __init__(self, label: str, *, is_shown: bool, unit: str = "") -> None:
        self._label = label
        self._unit = unit
        self._is_shown = is_shown
        self._started = time.monotonic()
        self._drawn_at = float("-inf")
        self._width = 0
        self._lock = threading.Lock()
        self._counts = (0, 0)
        self._is_over = threading.Event()
        if is_shown:
            threading.Thread(target=self._tick, daemon=True).start()

    def update(self, done: int, total: int, message: str = "") -> None:
        """Show the progress, at most once per interval."""
        self._counts = (done, total)
        if self._is_shown and time.monotonic() - self._drawn_at >= INTERVAL_SECONDS:
            self._draw()

    def clear(self) -> None:
        """Remove the line; nothing is drawn after this."""
        self._is_over.set()
        with self._lock:
            if self._width:
                sys.stderr.write(f"\r{'':{self._width}}\r")
                sys.stderr.flush()
                self._width = 0

    def _tick(self) -> None:
        while not self._is_over.wait(INTERVAL_SECONDS * 5):
            self._draw()

    def show(self, text: str) -> None:
        """Replace the line by other text."""
        with self._lock:
            self._write(text)

    def _write(self, text: str) -> None:
        self._width = max(self._width, len(text))
        sys.stderr.write(f"\r{text:{self._width}}")
        sys.stderr.flush()

    def _draw(self) -> None:
        with self._lock:
            now = time.monotonic()
            is_early = not self._counts[1] and now - self._started < SHOWN_AFTER_SECONDS
            if self._is_over.is_set() or is_early:
                return
            self._drawn_at = now
            self._write(line(self._label, *self._counts, now - self._started, self._unit))


def line(label: str, done: int, total: int, seconds: float, unit: str = "") -> str:
    """The text of the line: a bar if the total is known, else a count and the elapsed time."""
    if total <= 0:
        count = f"{done:,} {unit}  " if unit and done else ""
        return f"{label}: {count}{seconds:.0f} s"
    done = min(done, total)
    full = WIDTH * done // total
    bar = f"[{'#' * full}{'.' * (WIDTH - full)}]"
    return f"{label}: {bar} {done * 100 // total} %  {done:,} of {total:,}  {seconds:.0f} s"

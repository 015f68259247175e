"""A progress bar on a terminal, for work that may take longer than a second.

Work with a known size shows a bar. Other work shows the elapsed time after a second, which a thread
updates, and a count if it has a unit. Standard library only; threads are imported only for a
terminal, because a search at the prompt should start fast.
"""

import sys
import time
from typing import Final

SHOWN_AFTER_SECONDS: Final = 1.0
INTERVAL_SECONDS: Final = 0.1
WIDTH: Final = 24


class StatusLine:
    """One line on stderr that is replaced in place."""

    def __init__(self) -> None:
        self._width = 0

    def show(self, text: str) -> None:
        """Replace the line."""
        self._width = max(self._width, len(text))
        sys.stderr.write(f"\r{text:{self._width}}")
        sys.stderr.flush()

    def clear(self) -> None:
        if self._width:
            sys.stderr.write(f"\r{'':{self._width}}\r")
            sys.stderr.flush()
            self._width = 0


class ProgressBar:
    """A status line with a bar, cleared at the end; `update` may be called from any thread.

    With `in_percent`, the counts themselves are not shown, because they count steps of different
    kinds.
    """

    def __init__(
        self, label: str, *, is_shown: bool, unit: str = "", in_percent: bool = False
    ) -> None:
        self._shown = _Shown(label, unit, in_percent=in_percent) if is_shown else None

    def update(self, done: int, total: int, message: str = "") -> None:
        """Show the progress, at most once per interval."""
        if self._shown is not None:
            self._shown.update(done, total)

    def clear(self) -> None:
        """Remove the line; nothing is drawn after this."""
        if self._shown is not None:
            self._shown.clear()


class _Shown:
    def __init__(self, label: str, unit: str, *, in_percent: bool) -> None:
        import threading

        self._label = label
        self._unit = unit
        self._in_percent = in_percent
        self._started = time.monotonic()
        self._drawn_at = float("-inf")
        self._line = StatusLine()
        self._lock = threading.Lock()
        self._counts = (0, 0)
        self._is_over = threading.Event()
        threading.Thread(target=self._tick, daemon=True).start()

    def update(self, done: int, total: int) -> None:
        self._counts = (done, total)
        if time.monotonic() - self._drawn_at >= INTERVAL_SECONDS:
            self._draw()

    def clear(self) -> None:
        self._is_over.set()
        with self._lock:
            self._line.clear()

    def _tick(self) -> None:
        while not self._is_over.wait(INTERVAL_SECONDS * 5):
            self._draw()

    def _draw(self) -> None:
        with self._lock:
            now = time.monotonic()
            is_early = not self._counts[1] and now - self._started < SHOWN_AFTER_SECONDS
            if self._is_over.is_set() or is_early:
                return
            self._drawn_at = now
            seconds = now - self._started
            text = line(
                self._label, *self._counts, seconds, self._unit, in_percent=self._in_percent
            )
            self._line.show(text)


def line(
    label: str, done: int, total: int, seconds: float, unit: str = "", *, in_percent: bool = False
) -> str:
    """The text of the line: a bar if the total is known, else a count and the elapsed time."""
    if total <= 0:
        count = f"{done:,} {unit}  " if unit and done else ""
        return f"{label}: {count}{seconds:.0f} s"
    done = min(done, total)
    full = WIDTH * done // total
    bar = f"[{'#' * full}{'.' * (WIDTH - full)}]"
    counts = "" if in_percent else f"  {done:,} of {total:,}"
    return f"{label}: {bar} {done * 100 // total} %{counts}  {seconds:.0f} s"

"""Sliding-window rate limiter, one window per session.

Never more than `limit` admissions in any `seconds`, exactly (Claude Recall's Rate Limiting
section). Each admission leaves a timestamp, which expires after `seconds`. The clock is monotonic,
so that setting the wall clock neither frees nor locks out a session. Every timestamp is added once
and removed once: O(1) amortised, and at most `limit` of them are kept.
"""

from collections import deque
from collections.abc import Callable, Iterable

Clock = Callable[[], float]


class SlidingWindow:
    """The admissions of one session."""

    __slots__ = ("_clock", "_seconds", "_stamps", "limit")

    def __init__(self, *, limit: int, seconds: float, clock: Clock) -> None:
        self.limit = limit
        self._seconds = seconds
        self._clock = clock
        self._stamps: deque[float] = deque()

    def admit(self) -> float:
        """0.0 if admitted; otherwise the seconds until the next slot is free."""
        now = self._clock()
        stamps = self._stamps
        self._expire(now)
        if len(stamps) < self.limit:
            stamps.append(now)
            return 0.0
        # Never 0.0 for a rejection and never more than the window, however the sum rounds.
        return min(max(stamps[0] + self._seconds - now, 1e-9), self._seconds)

    def count(self) -> int:
        """The number of admissions in the window now."""
        self._expire(self._clock())
        return len(self._stamps)

    def _expire(self, now: float) -> None:
        stamps = self._stamps
        while stamps and stamps[0] + self._seconds <= now:
            stamps.popleft()


class Limiter:
    """One window per key; with `limit` 0 everything is admitted and nothing is counted."""

    def __init__(self, *, limit: int, clock: Clock, seconds: float = 60.0) -> None:
        self.limit = limit
        self._seconds = seconds
        self._clock = clock
        self._windows: dict[str, SlidingWindow] = {}
        self._holders: list[Callable[[], Iterable[str]]] = []

    def add_holder(self, keys: Callable[[], Iterable[str]]) -> None:
        """Register a callback that returns limiter keys in use; `prune` keeps their windows."""
        self._holders.append(keys)

    def window(self, key: str, limit: int | None = None) -> SlidingWindow | None:
        """The window of a key: the same object for as long as it holds admissions.

        `limit` overrides the default limit for this key; 0 disables its rate limiter.
        """
        if (self.limit if limit is None else limit) == 0:
            return None
        found = self._windows.get(key)
        if found is None:
            found = SlidingWindow(limit=self.limit, seconds=self._seconds, clock=self._clock)
            self._windows[key] = found
        if limit is not None:
            found.limit = limit
        return found

    def rename(self, old: str, new: str, limit: int | None = None) -> SlidingWindow | None:
        """Move the admissions of a connection to its session, once the session is known."""
        window = self._windows.pop(old, None)
        if window is not None:
            self._windows.setdefault(new, window)
        return self.window(new, limit)

    def drop(self, key: str) -> None:
        """Delete the window of a session that has ended."""
        self._windows.pop(key, None)

    def current(self) -> int:
        """Admissions in the last window, over all sessions."""
        return sum(window.count() for window in self._windows.values())

    def prune(self, alive: Iterable[str] = ()) -> None:
        """Forget empty windows, except those of `alive` and of keys in use."""
        used = {*alive, *(key for keys in self._holders for key in keys())}
        idle = [
            key for key, window in self._windows.items() if key not in used and window.count() == 0
        ]
        for key in idle:
            del self._windows[key]

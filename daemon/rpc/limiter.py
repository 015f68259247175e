"""A sliding window: never more than `limit` admissions in any `seconds`, exactly.

Seed 003, Rate Limiting. Each admission leaves a time stamp; one that is `seconds` old has left the
window. The clock is monotonic, so that setting the wall clock neither frees nor locks out anybody.
Every stamp is added once and removed once: O(1) amortised, and at most `limit` of them are kept.
"""

from collections import deque
from collections.abc import Callable

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
        """0.0 when admitted; otherwise the seconds until the next slot is free."""
        now = self._clock()
        stamps = self._stamps
        self._forget(now)
        if len(stamps) < self.limit:
            stamps.append(now)
            return 0.0
        # Never 0.0 for a refusal, however the subtraction rounds.
        return max(stamps[0] + self._seconds - now, 1e-9)

    def count(self) -> int:
        """How many admissions the window holds now."""
        self._forget(self._clock())
        return len(self._stamps)

    def _forget(self, now: float) -> None:
        stamps = self._stamps
        while stamps and stamps[0] + self._seconds <= now:
            stamps.popleft()


class Limiter:
    """A window per session; `limit` 0 admits everything and counts nothing."""

    def __init__(self, *, limit: int, clock: Clock, seconds: float = 60.0) -> None:
        self.limit = limit
        self._seconds = seconds
        self._clock = clock
        self._windows: dict[str, SlidingWindow] = {}

    def window(self, key: str, limit: int | None = None) -> SlidingWindow | None:
        """The window of a session: the same one for as long as it holds admissions.

        `limit` overrides the default limit for this session; 0 disables its rate limiter.
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
        """A connection turned out to be session `new`: its admissions go there."""
        window = self._windows.pop(old, None)
        if window is not None:
            self._windows.setdefault(new, window)
        return self.window(new, limit)

    def drop(self, key: str) -> None:
        """A session is over and will not come back."""
        self._windows.pop(key, None)

    def current(self) -> int:
        """Admissions in the last window, over all sessions."""
        return sum(window.count() for window in self._windows.values())

    def prune(self, alive: set[str]) -> None:
        """Forget windows that are empty and belong to nobody connected."""
        idle = [
            key for key, window in self._windows.items() if key not in alive and window.count() == 0
        ]
        for key in idle:
            del self._windows[key]

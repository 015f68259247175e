"""Recent calls: how many in each minute, the slow ones, and the time that searches took.

It records names, durations and lengths, never arguments or results.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

#: The minutes that are counted, the last one included.
MINUTES: Final = 60
SLOW_MS: Final = 250.0
SLOW_KEPT: Final = 50
SEARCHES_KEPT: Final = 120
#: The tools that search, in all dialects and in the REST API.
SEARCH_TOOLS: Final = frozenset(
    {
        "search",
        "search_memories",
        "recall",
        "mcp__claude-recall__search",
        "hindsight_search",
        "awareness_recall",
    }
)
#: A call of these methods lasts as long as its client wants.
_ENDLESS: Final = frozenset({"subscriptions/listen"})


class SlowCall(Struct, frozen=True, kw_only=True):
    """A call that took long: its end, its name, its duration and the size of its arguments."""

    at: int
    name: str
    milliseconds: float
    length: int


class SearchTime(Struct, frozen=True, kw_only=True):
    """The duration of one search, and when it ended (unix milliseconds)."""

    at: int
    milliseconds: float


class Activity:
    """The calls of the last hour. `now` is unix milliseconds."""

    def __init__(self, now: Callable[[], int]) -> None:
        self.total = 0
        self.slow: deque[SlowCall] = deque(maxlen=SLOW_KEPT)
        self.searches: deque[SearchTime] = deque(maxlen=SEARCHES_KEPT)
        self._now = now
        #: Pairs of a minute and its count, oldest first.
        self._minutes: deque[list[int]] = deque(maxlen=MINUTES)

    def call_done(self, method: str, tool: str, seconds: float, length: int) -> None:
        """Record a finished call; `method` and `tool` are registered names."""
        at = self._now()
        self.total += 1
        minute = at // 60_000
        if self._minutes and self._minutes[-1][0] == minute:
            self._minutes[-1][1] += 1
        else:
            self._minutes.append([minute, 1])
        milliseconds = round(seconds * 1000, 3)
        if tool in SEARCH_TOOLS:
            self.searches.append(SearchTime(at=at, milliseconds=milliseconds))
        if milliseconds >= SLOW_MS and method not in _ENDLESS:
            name = tool or method
            self.slow.append(SlowCall(at=at, name=name, milliseconds=milliseconds, length=length))

    def per_minute(self) -> list[int]:
        """The calls of each of the last 60 minutes, oldest first."""
        this = self._now() // 60_000
        counts = {minute: count for minute, count in self._minutes}  # noqa: C416  (pairs are lists)
        return [counts.get(minute, 0) for minute in range(this - MINUTES + 1, this + 1)]


def percentile(values: Sequence[float], share: float) -> float | None:
    """The value below which `share` of the values lie; None without values."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

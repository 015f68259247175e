"""Load shedding: when tool calls take too long because too many wait, new ones are refused.

Without it, every caller of an overloaded daemon waits, and each answer is late. With it, a caller
learns at once when to try again, and the calls that are admitted stay within `limits.wait_seconds`.
"""

from typing import Final

#: Fewer calls in flight are no queue; a few slow calls (an import, a model load) refuse nobody.
QUEUE_FROM: Final = 64
#: The weight of the newest call in the typical time.
_WEIGHT: Final = 1 / 16


class Congestion:
    """The typical time of a tool call, as an exponential average of the calls that finished."""

    def __init__(self, limit_seconds: float) -> None:
        self._limit = limit_seconds
        self._typical = 0.0

    def finished(self, seconds: float) -> None:
        """Take in the time of a finished call."""
        self._typical += (seconds - self._typical) * _WEIGHT

    def delay(self, in_flight: int) -> float:
        """Seconds after which a refused caller may try again; 0 admits the call."""
        if in_flight < QUEUE_FROM or self._typical <= self._limit:
            return 0.0
        return self._typical

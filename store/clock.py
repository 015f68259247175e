"""The time."""

import time


def wall_clock() -> int:
    """Unix milliseconds, UTC."""
    return time.time_ns() // 1_000_000

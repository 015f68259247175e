"""Fake clocks that advance only when a test advances them."""

START = 1_700_000_000_000


class Clock:
    """Wall clock: Unix time in milliseconds."""

    def __init__(self, now: int = START) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += int(seconds * 1000)


class FakeClock:
    """Monotonic clock: seconds."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds

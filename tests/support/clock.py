"""Wall time that moves when told."""

START = 1_700_000_000_000


class Clock:
    """Unix milliseconds."""

    def __init__(self, now: int = START) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += int(seconds * 1000)

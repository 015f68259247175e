"""Exit codes of `recalld`, from BSD's sysexits.h where one fits; the documentation lists each."""

from collections.abc import Iterator
from typing import Final, cast

OK: Final = 0
DEGRADED: Final = 1
UNREACHABLE: Final = 2
USAGE: Final = 64
UNAVAILABLE: Final = 69
INTERNAL: Final = 70
CANNOT_CREATE: Final = 73
LOCKED: Final = 75
CONFIG: Final = 78


class Exit(Exception):
    """Ends the process with an exit code and one line on stderr."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def leaves(failure: BaseException) -> Iterator[BaseException]:
    """Yield the exceptions inside nested exception groups, which task groups raise."""
    if isinstance(failure, BaseExceptionGroup):
        for inner in cast("BaseExceptionGroup[BaseException]", failure).exceptions:
            yield from leaves(inner)
    else:
        yield failure

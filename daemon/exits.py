"""The exit codes of `recalld`, in one place; README documents each."""

from typing import Final

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
    """Leave with a code and one clear line on stderr."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

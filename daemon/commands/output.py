"""What a command prints: lines on standard output, which may be closed or full."""

import sys
from collections.abc import Iterable

from daemon.exit_codes import CANNOT_CREATE, Exit


def say(lines: Iterable[str]) -> None:
    """Print lines. A reader that has read enough (`recalld bank list | head`) is no failure."""
    try:
        sys.stdout.write("".join(f"{line}\n" for line in lines))
        sys.stdout.flush()
    except BrokenPipeError:
        return
    except OSError as error:
        raise Exit(CANNOT_CREATE, f"standard output cannot be written: {error.strerror}") from error

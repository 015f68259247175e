"""Printing of command results to standard output, which may be closed or full."""

import sys
from collections.abc import Iterable

from daemon.exit_codes import CANNOT_CREATE, Exit


def print_lines(lines: Iterable[str]) -> None:
    """Print lines; a reader that stops early (`recalld bank list | head`) is not an error."""
    try:
        sys.stdout.write("".join(f"{line}\n" for line in lines))
        sys.stdout.flush()
    except BrokenPipeError:
        return
    except OSError as error:
        raise Exit(CANNOT_CREATE, f"standard output: {error.strerror}") from error

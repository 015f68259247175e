"""An error of our own at the top of the command: said in a line, kept where a report can take it.

What is kept is the kinds of the exceptions and where they were raised, never their messages, which
may quote a memory: the file can be sent to a stranger as it is. Imported when something has gone
wrong already, so it leans on as little as possible and never raises.
"""

import json
import os
import sys
import traceback
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from daemon.config import find_directories
from daemon.exit_codes import Exit, leaves
from daemon.operations.directories import make
from daemon.version import VERSION

FILE: Final = "crash.log"
LARGEST_FILE: Final = 256 * 1024


def keep(failure: Exception, command: str, environment: Mapping[str, str]) -> str:
    """Write a crash down; the one line that says so."""
    errors = [_described(leaf) for leaf in leaves(failure)]
    kind, frames = errors[0]["error"], errors[0]["frames"]
    where = f" at {frames[-1]}" if frames else ""
    said = f"internal error: {kind}{where}"
    entry = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "version": VERSION,
        "python": sys.version.split()[0],
        "command": command,
        "errors": errors,
    }
    path = find_directories(environment).state / FILE
    try:
        _append(path, json.dumps(entry).encode() + b"\n")
    except OSError as error:
        return f"{said} (and {path} cannot be written: {error.strerror})"
    except Exit as exit:
        return f"{said} (and {exit.message})"
    return f"{said}; please report it with the last line of {path}, which quotes no memory"


def _described(failure: BaseException) -> dict[str, Any]:
    frames = traceback.extract_tb(failure.__traceback__)
    return {
        "error": type(failure).__qualname__,
        "frames": [f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in frames],
    }


def _append(path: Path, line: bytes) -> None:
    make(path.parent)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(path, flags, 0o600)
    try:
        if os.fstat(descriptor).st_size > LARGEST_FILE:
            os.ftruncate(descriptor, 0)  # the latest crash is the one somebody asks about
        os.write(descriptor, line)
    finally:
        os.close(descriptor)

"""Crash reports: unexpected exceptions are written to `crash.log` in the state directory.

A report contains the exception types and the places where they were raised. It never contains
exception messages, because they may quote a memory; the file can be published unchanged. This
module is imported after a failure, so it depends on little and never raises.
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
MAX_FILE_BYTES: Final = 256 * 1024


def write(failure: Exception, command: str, environment: Mapping[str, str]) -> str:
    """Append a report to the crash log; returns the line to print."""
    errors = [_describe(leaf) for leaf in leaves(failure)]
    kind, frames = errors[0]["error"], errors[0]["frames"]
    where = f" at {frames[-1]}" if frames else ""
    summary = f"internal error: {kind}{where}"
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
        return f"{summary} (and {path} cannot be written: {error.strerror})"
    except Exit as exit:
        return f"{summary} (and {exit.message})"
    return f"{summary}; please report it with the last line of {path}, which quotes no memory"


def _describe(failure: BaseException) -> dict[str, Any]:
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
        if os.fstat(descriptor).st_size > MAX_FILE_BYTES:
            os.ftruncate(descriptor, 0)  # keep the latest report only
        os.write(descriptor, line)
    finally:
        os.close(descriptor)

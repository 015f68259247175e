"""`recalld logs`: the log of a daemon that a client started, in readable lines."""

import argparse
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

from daemon.commands.output import print_lines
from daemon.config import Settings
from daemon.exit_codes import CANNOT_CREATE, OK, Exit
from daemon.operations.readable_log import readable

POLL_SECONDS: Final = 0.2
#: The end of the log that is searched for lines.
MOST_BYTES: Final = 4 * 1024 * 1024
LEVELS: Final = ("debug", "info", "warning", "error")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-n", "--lines", type=int, default=50, help="number of lines (50)")
    parser.add_argument("-f", "--follow", action="store_true", help="wait for new lines")
    parser.add_argument("--level", choices=LEVELS, default="debug", help="lowest level to show")
    parser.add_argument("--json", action="store_true", help="print the lines as they are")
    parser.epilog = "examples:\n    recalld logs -n 20\n    recalld logs --follow --level warning"


def run(chosen: SimpleNamespace, settings: Settings) -> int:
    path = settings.log_file
    try:
        position, lines = _tail(path)
    except FileNotFoundError:
        raise Exit(
            CANNOT_CREATE,
            f"{path}: there is no log yet; a daemon that a client starts writes it, and"
            " `recalld serve` logs to its terminal",
        ) from None
    except OSError as error:
        raise Exit(CANNOT_CREATE, f"{path}: {error.strerror}") from None
    _show([line for line in lines if _is_shown(line, chosen.level)][-chosen.lines :], chosen)
    if chosen.follow:
        for line in _follow(path, position):
            if _is_shown(line, chosen.level):
                _show([line], chosen)
    return OK


def _show(lines: list[str], chosen: SimpleNamespace) -> None:
    if lines:
        print_lines(lines if chosen.json else [readable(line) for line in lines])


def _tail(path: Path) -> tuple[int, list[str]]:
    """The size of the file, and the lines at its end."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - MOST_BYTES))
        text = file.read().decode(errors="replace")
    return size, text.splitlines()


def _follow(path: Path, position: int) -> Iterator[str]:
    """New lines as they are written, also after the file was renamed or cut; until Ctrl-C."""
    waiting = b""
    while True:
        try:
            if path.stat().st_size < position:
                position, waiting = 0, b""
            with path.open("rb") as file:
                file.seek(position)
                chunk = file.read()
        except OSError:
            chunk = b""
        position += len(chunk)
        *lines, waiting = (waiting + chunk).split(b"\n")
        for line in lines:
            yield line.decode(errors="replace")
        time.sleep(POLL_SECONDS)


def _is_shown(line: str, level: str) -> bool:
    try:
        event: Any = json.loads(line)
    except ValueError:
        return bool(line.strip())
    found = cast("dict[str, Any]", event).get("level") if isinstance(event, dict) else None
    return found not in LEVELS or LEVELS.index(str(found)) >= LEVELS.index(level)

"""Finding foreign data: the usual place of a kind, and the kind of a path."""

import errno
import os
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from daemon.importing import foreign_files
from daemon.importing.kinds import KINDS
from daemon.importing.record import ForeignKind, WrongKind
from daemon.importing.values import list_of, object_of

_NAMES_SHOWN: Final = 6


def usual_place(kind: ForeignKind, environment: Mapping[str, str]) -> Path | None:
    """The first usual place of a kind that exists."""
    for path in usual_places(kind, environment):
        if path.exists():
            return path
    return None


def usual_places(kind: ForeignKind, environment: Mapping[str, str]) -> list[Path]:
    """The places to look at: those that a variable names, then those below the home directory."""
    named = [
        Path(environment[variable]).expanduser() / below if below else Path(environment[variable])
        for variable, below in kind.variables
        if environment.get(variable)
    ]
    home = Path(environment.get("HOME") or "~").expanduser()
    return [*named, *(home / place for place in kind.usual)]


def detect(path: Path) -> ForeignKind | None:
    """The kind of the data at a path; None if it fits no kind."""
    return next((kind for kind in KINDS if kind.is_detected and _fits(kind, path)), None)


def refusal(kind: ForeignKind, path: Path) -> str | None:
    """Why a path does not hold data of this kind, and what it looks like; None if it does."""
    lack = missing(kind, path)
    if lack is None:
        return None
    other = detect(path)
    hint = (
        f"it looks like {other.title}: try --from {other.name}"
        if other is not None
        else f"it looks like {describe(path)}"
    )
    return f"is not data of {kind.title}: {lack}; {hint}"


def missing(kind: ForeignKind, path: Path) -> str | None:
    """What a path lacks to be data of this kind; None if nothing."""
    try:
        return kind.missing(path)
    except WrongKind as wrong:
        return str(wrong)
    except OSError as error:
        return f"it cannot be read ({error.strerror or errno.errorcode.get(error.errno or 0)})"


def describe(path: Path) -> str:
    """What a path looks like, for messages."""
    try:
        if path.is_dir():
            names = sorted(each.name for each in path.iterdir())
            return f"a folder with {_listed(names)}" if names else "an empty folder"
        if not path.stat().st_size:
            return "an empty file"
        if foreign_files.is_sqlite(path):
            tables = foreign_files.columns(path)
            return f"a SQLite database with the tables {_listed(tables)}"
        if zipfile.is_zipfile(path):
            with foreign_files.archive(path) as archive:
                return f"a ZIP file with {_listed(archive.names())}"
        return _describe_text(path)
    except (OSError, WrongKind) as error:
        return f"a file that cannot be read ({error})"


def _describe_text(path: Path) -> str:
    start = foreign_files.head(path, 65_536)
    value = foreign_files.first_line(path)
    if isinstance(value, dict):
        return f"JSON lines with the fields {_listed(object_of(value))}"
    if start.lstrip()[:1] in (b"{", b"["):
        try:
            whole = foreign_files.load(path)
        except WrongKind:
            return "text that begins like JSON"
        if isinstance(whole, dict):
            return f"a JSON object with the members {_listed(object_of(whole))}"
        return f"a JSON list of {len(list_of(whole))} entries"
    try:
        # A cut at the end of the part that was read is not an error.
        start[: -4 or None].decode() if len(start) == 65_536 else start.decode()
    except UnicodeDecodeError:
        return "a binary file"
    return "plain text"


def _listed(names: Iterable[str]) -> str:
    shown = list(names)
    more = len(shown) - _NAMES_SHOWN
    return ", ".join(shown[:_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _fits(kind: ForeignKind, path: Path) -> bool:
    return missing(kind, path) is None


def absolute(path: str) -> Path:
    """An absolute path, without following links."""
    return Path(os.path.abspath(Path(path).expanduser()))  # noqa: PTH100

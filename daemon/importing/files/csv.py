"""CSV: one memory per row, with a header line. Also reads recalld's own CSV export.

The columns have the names of plain JSON lines. Other columns become metadata.
"""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import orjson

from daemon.importing.files import own
from daemon.importing.files.jsonl import TEXTS, entry_of
from daemon.importing.record import ForeignKind, Found, Own, Rejected, WrongKind
from store.errors import ImportRefused
from store.model import TEXT_LIMIT

MARK: Final = own.CSV_MARK


def missing(path: Path) -> str | None:
    if not path.is_file():
        return "it is not a file"
    try:
        header: list[str] | None = next(_rows(path), None)
    except (UnicodeDecodeError, csv.Error):
        return "it is not text"
    if header is None:
        return "it is empty"
    names = _names(header)
    if len(names) == 1 and path.suffix.lower() != ".csv":
        return "its first line has no commas"
    if MARK in names or any(name in names for name in TEXTS):
        return None
    return f"its first line names none of the columns {', '.join(TEXTS)}"


def read(path: Path) -> Iterator[Found]:
    rows = _rows(path)
    header = next(rows, None) or list[str]()
    names = _names(header)
    number = 1
    try:
        for number, row in enumerate(rows, start=2):
            if not any(row):
                continue
            if len(row) != len(header):
                reason = f"has {len(row)} cells instead of {len(header)}"
                yield Rejected(where=f"row {number}", reason=reason)
                continue
            cells: dict[str, Any] = dict(zip(names, row, strict=True))
            if MARK in cells:
                yield _own(cells, number)
            else:
                filled = {name: cell for name, cell in cells.items() if cell != ""}
                yield entry_of(filled, f"row {number}")
    except (UnicodeDecodeError, csv.Error) as error:
        raise WrongKind(f"row {number + 1} cannot be read ({error})") from error


def _names(header: list[str]) -> list[str]:
    return [name.strip().lower().replace(" ", "_") for name in header]


def _rows(path: Path) -> Iterator[list[str]]:
    # A text may be as long as a memory; the limit holds for the whole process.
    csv.field_size_limit(2 * TEXT_LIMIT)
    with path.open(encoding="utf-8-sig", newline="") as file:
        yield from csv.reader(file, strict=True)


def _own(cells: dict[str, Any], number: int) -> Found:
    cells.pop(MARK)
    text = cells.pop("text", "")
    try:
        fields = {name: own.uncelled(name, cell) for name, cell in cells.items() if cell != ""}
        return Own(record=own.restored(fields, text))
    except orjson.JSONDecodeError:
        return Rejected(where=f"row {number}", reason="has a cell that is not JSON")
    except ImportRefused as refused:
        return Rejected(where=f"row {number}", reason=refused.rule)


KIND: Final = ForeignKind(name="csv", title="CSV", missing=missing, read=read)

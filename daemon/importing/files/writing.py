"""Markdown and CSV exports, made from an export in JSON lines.

They hold the items of a bank without the chunks of documents, which belong to the documents. Only
JSON lines hold everything: documents, evidence, agent profiles and origins too.
"""

import csv
from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, Literal, TextIO

from daemon.importing import foreign_files
from daemon.importing.files import own
from daemon.importing.values import object_of

Split = Literal["memory", "day"]
SPLITS: Final[tuple[Split, ...]] = ("memory", "day")
_SAFE: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
_NAME_LIMIT: Final = 80


class Skipped:
    """The number of records that the format does not hold."""

    def __init__(self) -> None:
        self.records = 0


def items(exported: Path, skipped: Skipped) -> Iterator[dict[str, Any]]:
    """The items of an export, in its order."""
    for number, line in foreign_files.json_lines(exported):
        record = object_of(line)
        if number == 1 or record.get("type") == "end":
            continue
        if record.get("type") == "item" and record["kind"] != "chunk":
            yield record
        else:
            skipped.records += 1


def write_csv(records: Iterator[dict[str, Any]], file: TextIO) -> int:
    """Write a CSV file; returns the number of items."""
    writer = csv.writer(file)  # with CRLF, so that a lone carriage return is quoted too
    writer.writerow([own.CSV_MARK, *own.FIELDS])
    count = 0
    for record in records:
        writer.writerow([own.VERSION, *own.cells(record)])
        count += 1
    return count


def write_markdown_stream(records: Iterator[dict[str, Any]], file: TextIO) -> int:
    """Write all items to one stream; returns their number."""
    count = 0
    for record in records:
        if count:
            file.write(f"{own.SEPARATOR_LINE}\n")
        file.write(own.markdown(record))
        count += 1
    return count


def write_markdown(records: Iterator[dict[str, Any]], folder: Path, split: Split) -> int:
    """Write a file per item or per day to an empty folder; returns the number of items."""
    count = 0
    for record in records:
        path = folder / f"{_name(record, split)}.md"
        is_first = not path.exists()
        with path.open("a", encoding="utf-8", newline="") as file:
            if not is_first:
                file.write(f"{own.SEPARATOR_LINE}\n")
            file.write(own.markdown(record))
        count += 1
    return count


def _name(record: dict[str, Any], split: Split) -> str:
    day = _day(record["occurred_at"])
    if split == "day":
        return day
    id: str = record["public_id"]
    safe = "".join(sign if sign in _SAFE else "_" for sign in id)[:_NAME_LIMIT]
    if safe != id:  # two ids must not share a file
        safe = f"{safe}-{blake2b(id.encode(), digest_size=6).hexdigest()}"
    return f"{day}-{safe}"


def _day(milliseconds: int) -> str:
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d")
    except (ValueError, OverflowError, OSError):
        return "undated"

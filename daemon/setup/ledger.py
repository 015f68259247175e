"""The record of all changes that setup made, for exact removal.

`setup.json` in the state directory has one record for each changed part of a file: the value that
was written, whether the file or an enclosing object was created, and the text that was replaced. If
the file has not changed since, removal restores its previous bytes. Otherwise removal compares the
present value with the recorded one. A lost record only makes removal more careful.
"""

import hashlib
import os
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from daemon.operations import directories


class Undo(Struct, frozen=True, kw_only=True):
    """The change of one text: `new` characters at `start` replaced the text `old`."""

    digest: str
    start: int
    old: str
    new: int


class Record(Struct, frozen=True, kw_only=True):
    value: Any
    created_file: bool
    #: The name of the client. Several clients may read one file.
    client: str = ""
    created: tuple[str, ...] = ()
    undo: Undo | None = None


_RECORDS: Final = msgspec.json.Decoder(dict[str, Record])


class Ledger:
    def __init__(self, path: Path) -> None:
        self._path = path

    def find(self, file: Path, part: str) -> Record | None:
        return self._load().get(_name(file, part))

    def parts(self) -> list[tuple[str, str, Path]]:
        """The client, the part and the file of every recorded change."""
        found: list[tuple[str, str, Path]] = []
        for name, record in self._load().items():
            part, _, file = name.partition(" ")
            found.append((record.client, part, Path(file)))
        return found

    def keep(self, file: Path, part: str, record: Record) -> None:
        self._store({**self._load(), _name(file, part): record})

    def forget(self, file: Path, part: str) -> None:
        records = self._load()
        if records.pop(_name(file, part), None) is not None:
            self._store(records)

    def _load(self) -> dict[str, Record]:
        try:
            return _RECORDS.decode(self._path.read_bytes())
        except (OSError, msgspec.DecodeError):
            return {}

    def _store(self, records: dict[str, Record]) -> None:
        directories.make(self._path.parent)
        temporary = self._path.with_suffix(".new")
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as stream:
            stream.write(msgspec.json.format(msgspec.json.encode(records), indent=1))
        temporary.replace(self._path)


def undo_of(before: str, after: str) -> Undo:
    """The single replacement that turns one text into the other."""
    start = 0
    while start < min(len(before), len(after)) and before[start] == after[start]:
        start += 1
    end = 0
    limit = min(len(before), len(after)) - start
    while end < limit and before[len(before) - 1 - end] == after[len(after) - 1 - end]:
        end += 1
    return Undo(
        digest=_digest(after),
        start=start,
        old=before[start : len(before) - end],
        new=len(after) - end - start,
    )


def restored(text: str, undo: Undo | None) -> str | None:
    """The text before the change; None if the file has changed since."""
    if undo is None or _digest(text) != undo.digest:
        return None
    return text[: undo.start] + undo.old + text[undo.start + undo.new :]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _name(file: Path, part: str) -> str:
    return f"{part} {file}"

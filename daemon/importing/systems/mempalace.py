"""MemPalace: the folder that its export writes, with a folder per wing and a file per room.

A drawer is a section of a file: its id as the heading, its text as a quotation, and a table with
source and date.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from daemon.importing.files.markdown import notes, read_text
from daemon.importing.record import ForeignKind, Found, Memory, Rejected
from daemon.importing.values import milliseconds, present, text_of

_ROOM: Final = re.compile(r"# (.{1,300}) / (.{1,300})")
_FIELD: Final = re.compile(r"\| (Source|Filed|Added by) \| (.{0,2000}) \|")
_SECTION: Final = re.compile(r"^## (?=\S)", re.MULTILINE)


def missing(path: Path) -> str | None:
    if not path.is_dir():
        return "it is not a folder"
    index = path / "index.md"
    text = read_text(index) if index.is_file() else ""
    if isinstance(text, Rejected) or not text.startswith("# Palace Export"):
        return "it has no index.md of a palace export"
    return None


def read(path: Path) -> Iterator[Found]:
    for note in notes(path):
        place = str(note.relative_to(path))
        if place == "index.md":
            continue
        text = read_text(note)
        if isinstance(text, Rejected):
            yield text
            continue
        room = _ROOM.match(text)
        if room is None:
            yield Rejected(where=place, reason="does not begin with a wing and a room")
            continue
        for section in _sections(text):
            yield _drawer(section, place, room[1], room[2])


def _sections(text: str) -> list[str]:
    """The drawers. A heading inside a quotation begins with `>`, so it does not split one."""
    return _SECTION.split(text)[1:]


def _drawer(section: str, place: str, wing: str, room: str) -> Found:
    id, _, rest = section.partition("\n")
    quoted, _, table = rest.partition("\n| Field | Value |\n")
    lines = quoted.strip("\n").split("\n")
    text = "\n".join(line.removeprefix(">").removeprefix(" ") for line in lines).strip("\n")
    if not text.strip():
        return Rejected(where=f"{place}: {id}", reason="has no text")
    fields = {name: value for name, value in _FIELD.findall(table) if value != "unknown"}
    return Memory(
        original_id=id.strip(),
        text=text,
        category=room,
        actor=text_of(fields.get("Added by")),
        tags=(wing, room) if wing != room else (wing,),
        metadata=present({"wing": wing, "room": room, "file": fields.get("Source")}),
        created_at=milliseconds(fields.get("Filed")),
    )


KIND: Final = ForeignKind(name="mempalace", title="MemPalace", missing=missing, read=read)

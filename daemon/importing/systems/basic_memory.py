"""basic-memory: a folder of Markdown notes with a permalink in the front matter.

A note is a memory, or a document if it is long. Its permalink is the original id.
"""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from daemon.importing import front_matter
from daemon.importing.files.markdown import note_of, notes, read_text
from daemon.importing.record import ForeignKind, Found, Memory, Rejected
from daemon.importing.values import text_of

_LOOKED_AT: Final = 50


def missing(path: Path) -> str | None:
    if not path.is_dir():
        return "it is not a folder"
    for note in islice(notes(path), _LOOKED_AT):
        text = read_text(note)
        if not isinstance(text, Rejected) and "permalink" in front_matter.parse(text).fields:
            return None
    return "no Markdown file in it has a `permalink` in its front matter"


def read(path: Path) -> Iterator[Found]:
    for note in notes(path):
        place = str(note.relative_to(path))
        text = read_text(note)
        if isinstance(text, Rejected):
            yield text
            continue
        fields = front_matter.parse(text).fields
        found = note_of(note, place, text)
        if not isinstance(found, Rejected):
            found = replace(found, original_id=text_of(fields.get("permalink")) or place)
        if isinstance(found, Memory):
            found = replace(found, category=text_of(fields.get("type")))
        yield found


KIND: Final = ForeignKind(
    name="basic-memory",
    title="basic-memory",
    missing=missing,
    read=read,
    usual=("basic-memory",),
    variables=(("BASIC_MEMORY_HOME", ""),),
)

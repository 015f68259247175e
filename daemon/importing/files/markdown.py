"""Markdown: a folder of notes (also an Obsidian vault), a single file, or recalld's own export.

A note is a memory: its front matter gives title, tags and dates, its path is the original id. A
note that is too long to be found by its meaning becomes a document, found through its chunks.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from daemon.importing import front_matter
from daemon.importing.files import own
from daemon.importing.record import ForeignDocument, ForeignKind, Found, Memory, Own, Rejected
from daemon.importing.values import milliseconds, present, tags_of, text_of
from store.errors import ImportRefused
from store.model import DOCUMENT_LIMIT

SUFFIXES: Final = (".md", ".markdown")
#: Characters of a note that is kept as one memory.
MEMORY_LIMIT: Final = 4_000

_HEADING: Final = re.compile(r"#{1,6}[ \t]+(\S.{0,500})")
_TAG: Final = re.compile(r"(?<![^\s(])#([A-Za-z_][\w/-]{0,99})")
_CREATED: Final = ("created", "created_at", "date", "date created", "created-at")
_UPDATED: Final = ("updated", "updated_at", "modified", "date modified", "last_modified")
_READ: Final = frozenset((*_CREATED, *_UPDATED, "title", "tags", "tag", "id", "permalink"))


def notes(path: Path) -> Iterator[Path]:
    """The Markdown files of a folder in the order of their names, without hidden folders."""
    if path.is_file():
        yield path
        return
    for directory, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if name.lower().endswith(SUFFIXES) and not name.startswith("."):
                yield Path(directory) / name


def missing(path: Path) -> str | None:
    if path.is_dir():
        return None if next(notes(path), None) is not None else "it holds no Markdown file"
    return None if path.suffix.lower() in SUFFIXES else "its name does not end in .md"


def read(path: Path) -> Iterator[Found]:
    for note in notes(path):
        place = note.name if path.is_file() else str(note.relative_to(path))
        text = read_text(note)
        if isinstance(text, Rejected):
            yield text
        elif _is_own(text):
            yield from _own_items(text, place)
        else:
            yield note_of(note, place, text)


def read_text(note: Path) -> str | Rejected:
    """The text of a file, or the reason why it cannot be read."""
    try:
        if note.stat().st_size > DOCUMENT_LIMIT:
            return Rejected(where=str(note), reason=f"is larger than {DOCUMENT_LIMIT} bytes")
        return note.read_bytes().decode()
    except UnicodeDecodeError:
        return Rejected(where=str(note), reason="is not UTF-8")
    except OSError as error:
        return Rejected(where=str(note), reason=f"cannot be read ({error.strerror})")


def note_of(
    note: Path, place: str, text: str, *, metadata: dict[str, Any] | None = None
) -> Memory | ForeignDocument | Rejected:
    """A note as a memory, or as a document if it is long."""
    fields, body = front_matter.parse(text)
    body = body.strip("\n")
    if not body.strip():
        return Rejected(where=place, reason="text must not be empty")
    title = text_of(fields.get("title")) or _heading(body) or note.stem
    modified = milliseconds(note.stat().st_mtime)
    created = next((at for key in _CREATED if (at := milliseconds(_time(fields, key)))), None)
    updated = next((at for key in _UPDATED if (at := milliseconds(_time(fields, key)))), None)
    tags = tags_of([*_listed(fields, "tags"), *_listed(fields, "tag"), *_TAG.findall(body)])
    rest = {key: value for key, value in fields.items() if key.lower() not in _READ}
    about = present({**rest, **(metadata or {}), "path": place})
    if len(body) > MEMORY_LIMIT:
        return ForeignDocument(
            original_id=place,
            source="markdown",
            source_id=str(note.resolve()),
            body=body,
            title=title,
            content_type="text/markdown",
            metadata=about | ({"tags": list(tags)} if tags else {}),
            created_at=created or updated or modified,
            updated_at=updated or modified,
        )
    return Memory(
        original_id=place,
        text=body,
        title=title,
        tags=tags,
        metadata=about,
        created_at=created or updated or modified,
        updated_at=updated or modified,
    )


def _listed(fields: dict[str, Any], key: str) -> tuple[str, ...]:
    return tuple(tag.removeprefix("#") for tag in tags_of(fields.get(key)))


def _time(fields: dict[str, Any], key: str) -> Any:
    value = fields.get(key)
    # A year alone is not unix seconds.
    return str(value) if isinstance(value, int) and value < 10_000 else value


def _heading(body: str) -> str | None:
    match = _HEADING.match(body)
    return match[1].rstrip(" #") if match else None


def _is_own(text: str) -> bool:
    return text.startswith(f"---\n{own.MARK}: ")


def _own_items(text: str, place: str) -> Iterator[Found]:
    for number, part in enumerate(own.SEPARATOR.split(text), start=1):
        fields, body = front_matter.parse(part)
        if fields.pop(own.MARK, None) != own.VERSION:
            yield Rejected(where=f"{place}, item {number}", reason="has another format version")
            continue
        try:
            yield Own(record=own.restored(fields, own.unescaped(body)))
        except ImportRefused as refused:
            yield Rejected(where=f"{place}, item {number}", reason=refused.rule)


KIND: Final = ForeignKind(
    name="markdown", title="Markdown notes", missing=missing, read=read, is_detected=True
)

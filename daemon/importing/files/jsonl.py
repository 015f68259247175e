"""Plain JSON lines: one object per line, with a text under one of the usual names.

A line may also be a JSON string. A JSON file that holds one list of objects is read too. An entry
without an id gets the hash of its content.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import orjson

from daemon.importing import foreign_files
from daemon.importing.record import ForeignKind, Found, Memory, Rejected, WrongKind
from daemon.importing.values import (
    content_id,
    list_of,
    milliseconds,
    object_of,
    present,
    share_of,
    tags_of,
    text_of,
)

TEXTS: Final = ("text", "content", "memory", "fact", "body", "note", "message", "value")
IDS: Final = ("id", "uuid", "key", "hash", "_id")
CREATED: Final = ("created_at", "created", "occurred_at", "timestamp", "date", "time")
UPDATED: Final = ("updated_at", "updated", "modified_at", "modified")
SESSIONS: Final = ("session", "session_id", "sessionId", "conversation_id", "run_id")
USERS: Final = ("user", "user_id", "userId")
CATEGORIES: Final = ("category", "type", "memory_type")
_KINDS: Final = ("memory", "event", "card", "task", "risk", "narrative", "skill")
_LABELS: Final = ("title", "context", "role", "actor", "event_type", "status")
_READ: Final = frozenset(
    (
        *(*TEXTS, *IDS, *CREATED, *UPDATED, *SESSIONS, *USERS, *CATEGORIES, *_LABELS),
        *("kind", "tags", "metadata", "confidence"),
    )
)


def missing(path: Path) -> str | None:
    if not path.is_file():
        return "it is not a file"
    try:
        first = next(_entries(path), None)
    except WrongKind as wrong:
        return str(wrong)
    if first is None:
        return "it is empty"
    number, value = first
    if isinstance(value, str):
        return None
    if not isinstance(value, dict):
        return f"line {number} is not a JSON object"
    if _text(object_of(value)) is None:
        return f"line {number} has none of the fields {', '.join(TEXTS)}"
    return None


def read(path: Path) -> Iterator[Found]:
    for number, value in _entries(path):
        if isinstance(value, str) and value.strip():
            yield Memory(original_id=content_id(value), text=value)
        elif isinstance(value, dict):
            yield entry_of(object_of(value), f"line {number}")
        else:
            yield Rejected(where=f"line {number}", reason="is not a JSON object")


def _entries(path: Path) -> Iterator[tuple[int, Any]]:
    if foreign_files.head(path).lstrip(b"\xef\xbb\xbf \t\r\n")[:1] != b"[":
        yield from foreign_files.json_lines(path)
        return
    whole = foreign_files.load(path)
    yield from enumerate(list_of(whole), start=1)


def entry_of(entry: dict[str, Any], where: str) -> Memory | Rejected:
    """A memory from an object with the usual names; other members become metadata."""
    found = _text(entry)
    if found is None:
        return Rejected(where=where, reason=f"has none of the fields {', '.join(TEXTS)}")
    name, text = found
    id = _first(entry, IDS)
    kind = entry.get("kind")
    metadata = entry.get("metadata")
    others = {key: value for key, value in entry.items() if key not in _READ}
    if not isinstance(metadata, dict):
        others["metadata"] = metadata
    spare: dict[str, Any] = {key: entry[key] for key in TEXTS if key != name and key in entry}
    return Memory(
        original_id=str(id) if isinstance(id, str | int) and str(id) else _hash(entry),
        text=text,
        kind=kind if kind in _KINDS else "memory",
        category=text_of(_first(entry, CATEGORIES)),
        confidence=share_of(entry.get("confidence")),
        session=_label(_first(entry, SESSIONS)),
        user=_label(_first(entry, USERS)),
        tags=tags_of(entry.get("tags")),
        metadata=present({**others, **spare, **object_of(metadata)}),
        created_at=_moment(entry, CREATED),
        updated_at=_moment(entry, UPDATED),
        title=_label(entry.get("title")) or "",
        context=_label(entry.get("context")),
        role=_label(entry.get("role")),
        actor=_label(entry.get("actor")),
        event_type=_label(entry.get("event_type")),
        status=_label(entry.get("status")),
    )


def _text(entry: dict[str, Any]) -> tuple[str, str] | None:
    for name in TEXTS:
        text = text_of(entry.get(name))
        if text is not None:
            return name, text
    return None


def _first(entry: dict[str, Any], names: tuple[str, ...]) -> Any:
    return next((entry[name] for name in names if entry.get(name) not in (None, "")), None)


def _label(value: Any) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return text_of(value)


def _moment(entry: dict[str, Any], names: tuple[str, ...]) -> int | None:
    times = (milliseconds(entry.get(name)) for name in names)
    return next((time for time in times if time is not None), None)


def _hash(entry: dict[str, Any]) -> str:
    return content_id(orjson.dumps(entry, option=orjson.OPT_SORT_KEYS).decode())


KIND: Final = ForeignKind(name="jsonl", title="JSON lines", missing=missing, read=read)

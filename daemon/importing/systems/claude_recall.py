"""Claude Recall: its SQLite database, its JSON export, or its `sessions.json`.

The value of a memory is JSON: the text is its `content`, or the first text in it, and the other
members become metadata. A session of `sessions.json` becomes an event with its dates.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, cast

import orjson

from daemon.importing import foreign_files
from daemon.importing.record import ForeignKind, Found, Memory, Rejected, WrongKind
from daemon.importing.values import (
    milliseconds,
    object_of,
    objects_of,
    present,
    share_of,
    text_of,
)

_TEXTS: Final = ("content", "text", "value", "rule", "preference", "raw", "title", "description")


def missing(path: Path) -> str | None:
    if not path.is_file():
        return "it is not a file"
    if foreign_files.is_sqlite(path):
        return foreign_files.missing_table(path, "memories", "key", "value", "type", "timestamp")
    if _kind_of(foreign_files.load(path)) is None:
        return "it is neither its database, nor its JSON export, nor its `sessions.json`"
    return None


def _kind_of(whole: Any) -> str | None:
    if isinstance(whole, dict):
        rows = objects_of(object_of(whole).get("memories"))
        if "exportDate" in whole and all({"key", "value"} <= row.keys() for row in rows[:3]):
            return "export"
    elif isinstance(whole, list):
        entries = cast("list[Any]", whole)
        if entries and all(_session(entry) for entry in entries[:3]):
            return "sessions"
    return None


def _session(entry: Any) -> dict[str, Any]:
    """The session in an entry `[id, session]`; empty if it is none."""
    if not (isinstance(entry, list) and len(cast("list[Any]", entry)) == 2):
        return {}
    session = object_of(cast("list[Any]", entry)[1])
    return session if "startTime" in session else {}


def read(path: Path) -> Iterator[Found]:
    if foreign_files.is_sqlite(path):
        yield from _memories(foreign_files.rows(path, "SELECT * FROM memories ORDER BY id"))
        return
    whole = foreign_files.load(path)
    match _kind_of(whole):
        case "export":
            yield from _memories(objects_of(whole["memories"]))
        case "sessions":
            for entry in whole:
                yield _session_event(_session(entry))
        case _:
            raise WrongKind("it has changed while it was read")


def _memories(rows: Iterable[dict[str, Any]]) -> Iterator[Found]:
    for row in rows:
        key = text_of(row.get("key")) or str(row.get("id"))
        value = _value(row.get("value"))
        text = _text(value)
        if text is None:
            yield Rejected(where=key, reason="has no text")
            continue
        members = object_of(value)
        metadata = {name: member for name, member in members.items() if member != text}
        is_replaced = row.get("is_active") == 0
        yield Memory(
            original_id=key,
            text=text,
            category=text_of(row.get("type")),
            status="superseded" if is_replaced else None,
            confidence=share_of(row.get("confidence_score")),
            session=text_of(members.get("sessionId")),
            tags=tuple(each for each in (text_of(row.get("type")),) if each),
            metadata=present(
                {
                    **metadata,
                    "project": row.get("project_id"),
                    "file": row.get("file_path"),
                    "preference_key": row.get("preference_key"),
                    "scope": row.get("scope"),
                    "access_count": row.get("access_count"),
                }
            ),
            created_at=milliseconds(row.get("timestamp")),
            updated_at=milliseconds(row.get("superseded_at")),
            replaced_by=text_of(row.get("superseded_by")) if is_replaced else None,
        )


def _value(raw: Any) -> Any:
    if not isinstance(raw, str):
        return raw
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        return raw


def _text(value: Any) -> str | None:
    """The text of a value: a usual member, else the first text inside."""
    if isinstance(value, str):
        return text_of(value)
    if isinstance(value, dict):
        members = object_of(value)
        for name in _TEXTS:
            text = _text(members.get(name))
            if text is not None:
                return text
        value = list(members.values())
    if isinstance(value, list):
        texts = (_text(member) for member in cast("list[Any]", value))
        return next((text for text in texts if text is not None), None)
    return None


def _session_event(session: dict[str, Any]) -> Found:
    id = text_of(session.get("id"))
    if id is None:
        return Rejected(where="a session", reason="has no id")
    calls = session.get("toolCalls", 0)
    return Memory(
        original_id=f"session/{id}",
        text=f"Session {id} with {calls} tool calls",
        kind="event",
        event_type="session",
        session=id,
        metadata=present({"tool_calls": calls, **object_of(session.get("metadata"))}),
        created_at=milliseconds(session.get("startTime")),
        updated_at=milliseconds(session.get("lastActivity")),
    )


KIND: Final = ForeignKind(
    name="claude-recall",
    title="Claude Recall",
    missing=missing,
    read=read,
    usual=(".claude-recall/claude-recall.db",),
    variables=(("CLAUDE_RECALL_DB_PATH", "claude-recall.db"),),
    keeps_ids=True,
)

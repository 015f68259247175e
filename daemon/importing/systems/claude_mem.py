"""claude-mem: its SQLite database with observations, session summaries and prompts."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import orjson

from daemon.importing import foreign_files
from daemon.importing.record import ForeignKind, Found, Memory, Rejected
from daemon.importing.values import list_of, milliseconds, present, tags_of, text_of

_PARTS: Final = (
    ("request", "Request"), ("investigated", "Investigated"), ("learned", "Learned"),
    ("completed", "Completed"), ("next_steps", "Next steps"), ("notes", "Notes"),
)  # fmt: skip
_SESSIONS: Final = (
    "memory_session_id", "sdk_session_id", "content_session_id", "claude_session_id",
)  # fmt: skip


def missing(path: Path) -> str | None:
    return foreign_files.missing_table(path, "observations", "project", "type", "created_at")


def read(path: Path) -> Iterator[Found]:
    tables = foreign_files.columns(path)
    for row in foreign_files.rows(path, "SELECT * FROM observations ORDER BY id"):
        yield _observation(row)
    if "session_summaries" in tables:
        for row in foreign_files.rows(path, "SELECT * FROM session_summaries ORDER BY id"):
            yield _summary(row)
    if "user_prompts" in tables:
        for row in foreign_files.rows(path, "SELECT * FROM user_prompts ORDER BY id"):
            yield _prompt(row)


def _observation(row: dict[str, Any]) -> Found:
    id = f"observation/{row.get('id')}"
    facts = _list(row.get("facts"))
    told = text_of(row.get("narrative")) or text_of(row.get("text")) or text_of(row.get("subtitle"))
    text = "\n".join([*([told] if told else []), *(f"- {fact}" for fact in facts)])
    title = text_of(row.get("title")) or ""
    if not text and not title:
        return Rejected(where=id, reason="has no text")
    return Memory(
        original_id=id,
        text=text,
        title=title,
        context=text_of(row.get("subtitle")),
        category=text_of(row.get("type")),
        session=_session(row),
        tags=tags_of(_list(row.get("concepts"))),
        metadata=present(
            {
                "project": row.get("project"),
                "files_read": _list(row.get("files_read")),
                "files_modified": _list(row.get("files_modified")),
                "prompt_number": row.get("prompt_number"),
            }
        ),
        created_at=_created(row),
    )


def _summary(row: dict[str, Any]) -> Found:
    id = f"summary/{row.get('id')}"
    parts = [f"{name}: {text}" for key, name in _PARTS if (text := text_of(row.get(key)))]
    if not parts:
        return Rejected(where=id, reason="has no text")
    return Memory(
        original_id=id,
        text="\n".join(parts),
        title=text_of(row.get("request")) or "",
        category="session_summary",
        session=_session(row),
        metadata=present({"project": row.get("project")}),
        created_at=_created(row),
    )


def _prompt(row: dict[str, Any]) -> Found:
    id = f"prompt/{row.get('id')}"
    text = text_of(row.get("prompt_text"))
    if text is None:
        return Rejected(where=id, reason="has no text")
    return Memory(
        original_id=id,
        text=text,
        kind="event",
        event_type="message",
        actor="user",
        session=_session(row),
        created_at=_created(row),
    )


def _session(row: dict[str, Any]) -> str | None:
    return next((text for name in _SESSIONS if (text := text_of(row.get(name)))), None)


def _created(row: dict[str, Any]) -> int | None:
    return milliseconds(row.get("created_at_epoch")) or milliseconds(row.get("created_at"))


def _list(raw: Any) -> list[str]:
    if not isinstance(raw, str) or not raw.strip():
        return []
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return [raw]
    return [each for each in list_of(value) if isinstance(each, str)]


KIND: Final = ForeignKind(
    name="claude-mem",
    title="claude-mem",
    missing=missing,
    read=read,
    usual=(".claude-mem/claude-mem.db",),
    variables=(("CLAUDE_MEM_DATA_DIR", "claude-mem.db"),),
)

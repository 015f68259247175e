"""Awareness local: the folder `.awareness` of a project.

Events, cards and tasks are Markdown files with front matter. Skills are only in `index.db`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import orjson

from daemon.importing import foreign_files, front_matter
from daemon.importing.files.markdown import notes, read_text
from daemon.importing.record import ForeignKind, Found, ItemKind, Memory, Rejected, WrongKind
from daemon.importing.values import (
    list_of,
    milliseconds,
    object_of,
    present,
    share_of,
    tags_of,
    text_of,
)

_FOLDERS: Final[tuple[tuple[str, ItemKind], ...]] = (
    ("memories", "event"), ("knowledge", "card"), ("tasks", "task"),
)  # fmt: skip
_READ: Final = frozenset(
    ("id", "type", "title", "category", "session_id", "agent_role", "tags", "created_at",
     "updated_at", "status", "confidence", "source", "priority")
)  # fmt: skip


def _root(path: Path) -> Path:
    return path / ".awareness" if (path / ".awareness").is_dir() else path


def missing(path: Path) -> str | None:
    root = _root(path)
    if not root.is_dir():
        return "it is not a folder"
    if root.name != ".awareness" and not (root / "index.db").is_file():
        return "it has neither a folder `.awareness` nor a file `index.db`"
    if not any((root / folder).is_dir() for folder, _ in _FOLDERS):
        return "it has none of the folders memories, knowledge and tasks"
    return None


def read(path: Path) -> Iterator[Found]:
    root = _root(path)
    for folder, kind in _FOLDERS:
        for note in notes(root / folder) if (root / folder).is_dir() else ():
            yield _entry(note, str(note.relative_to(root)), kind)
    index = root / "index.db"
    if index.is_file() and "skills" in _tables(index):
        for row in foreign_files.rows(index, "SELECT * FROM skills"):
            yield _skill(row)


def _tables(index: Path) -> dict[str, frozenset[str]]:
    try:
        return foreign_files.columns(index)
    except WrongKind as wrong:
        raise WrongKind(f"index.db: {wrong}") from wrong


def _entry(note: Path, place: str, kind: ItemKind) -> Found:
    text = read_text(note)
    if isinstance(text, Rejected):
        return text
    fields, body = front_matter.parse(text)
    title = text_of(fields.get("title")) or ""
    body = body.strip("\n")
    if not body.strip() and not title:
        return Rejected(where=place, reason="text must not be empty")
    status = text_of(fields.get("status"))
    if kind == "task":
        status = _task_status(status, place)
    return Memory(
        original_id=text_of(fields.get("id")) or place,
        text=body,
        kind=kind,
        title=title,
        category=text_of(fields.get("category")) or _category(kind, place),
        status=status,
        level=text_of(fields.get("priority")) if kind == "task" else None,
        confidence=share_of(fields.get("confidence")),
        session=text_of(fields.get("session_id")),
        role=text_of(fields.get("agent_role")),
        event_type=text_of(fields.get("type")) if kind == "event" else None,
        tags=tags_of(fields.get("tags")),
        metadata=present(
            {
                **{name: value for name, value in fields.items() if name not in _READ},
                "awareness_source": fields.get("source"),
            }
        ),
        created_at=milliseconds(fields.get("created_at")),
        updated_at=milliseconds(fields.get("updated_at")),
    )


def _category(kind: ItemKind, place: str) -> str | None:
    """A card lies in the folder of its category."""
    parts = Path(place).parts
    return parts[1] if kind == "card" and len(parts) > 2 else None


def _task_status(status: str | None, place: str) -> str:
    is_done = "done" in Path(place).parts or status in ("done", "completed", "closed")
    return "completed" if is_done else "pending"


def _skill(row: dict[str, Any]) -> Found:
    id, name = text_of(row.get("id")), text_of(row.get("name"))
    text = text_of(row.get("summary")) or text_of(row.get("description")) or name
    if id is None or text is None:
        return Rejected(where=id or "a skill", reason="has no name")
    return Memory(
        original_id=id,
        text=text,
        kind="skill",
        title=name or "",
        status=text_of(row.get("status")),
        confidence=share_of(row.get("confidence")),
        tags=tags_of(_json(row.get("tags"))),
        details=present({"methods": _steps(row.get("methods"))}),
        metadata=present({"trigger_conditions": _json(row.get("trigger_conditions"))}),
        created_at=milliseconds(row.get("created_at")),
        updated_at=milliseconds(row.get("updated_at")),
    )


def _json(raw: Any) -> Any:
    if not isinstance(raw, str) or raw[:1] not in ("[", "{"):
        return raw
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        return raw


def _steps(raw: Any) -> list[str]:
    steps = _json(raw)
    if isinstance(steps, str):
        return [steps] if steps.strip() else []
    return [_step(step) for step in list_of(steps)]


def _step(step: Any) -> str:
    text = text_of(step) or text_of(object_of(step).get("description"))
    return text or orjson.dumps(step).decode()


KIND: Final = ForeignKind(
    name="awareness", title="Awareness local", missing=missing, read=read, keeps_ids=True
)

"""mem0 and OpenMemory: an export as JSON or ZIP, or a SQLite database.

The databases are OpenMemory's `openmemory.db` (table `memories`) and mem0's `history.db` (table
`history`), of which the newest text of each memory is taken.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import orjson

from daemon.importing import foreign_files
from daemon.importing.record import ForeignKind, Found, Memory, Rejected, WrongKind
from daemon.importing.values import (
    first_objects,
    milliseconds,
    object_of,
    present,
    tags_of,
    text_of,
)

_LISTS: Final = ("results", "memories", "items", "data")
_READ: Final = frozenset(
    ("id", "memory", "content", "text", "hash", "metadata", "created_at", "updated_at", "user_id",
     "agent_id", "run_id", "categories", "state", "vector", "score", "app_id", "deleted_at",
     "archived_at")
)  # fmt: skip


def missing(path: Path) -> str | None:
    if not path.is_file():
        return "it is not a file"
    if foreign_files.is_sqlite(path):
        lack = foreign_files.missing_table(path, "memories", "content", "state", "user_id")
        if lack is None:
            return None
        is_history = foreign_files.missing_table(path, "history", "memory_id", "new_memory")
        return None if is_history is None else f"{lack}, and no table `history` of mem0"
    entries = _entries(path)
    if not entries or not all("memory" in each or "state" in each for each in entries[:3]):
        return "it has no list of objects with `memory`"
    return None


def read(path: Path) -> Iterator[Found]:
    rows: Iterable[dict[str, Any]]
    if not foreign_files.is_sqlite(path):
        rows = _entries(path)
    elif "history" in foreign_files.columns(path):
        yield from _history(path)
        return
    else:
        rows = foreign_files.rows(path, "SELECT * FROM memories ORDER BY created_at, id")
    for row in rows:
        yield _memory(row)


def _entries(path: Path) -> list[dict[str, Any]]:
    if foreign_files.head(path, 2) == b"PK":
        with foreign_files.archive(path) as archive:
            name = archive.find("memories.json")
            if name is None:
                raise WrongKind("the ZIP file has no memories.json")
            whole = foreign_files.decode(archive.read(name))
    else:
        whole = foreign_files.load(path)
    return first_objects(whole, _LISTS)


def _memory(row: dict[str, Any]) -> Found:
    id = text_of(row.get("id"))
    texts = (text_of(row.get(name)) for name in ("memory", "content", "text"))
    text = next((each for each in texts if each is not None), None)
    if text is None or id is None:
        return Rejected(where=id or "a memory", reason="has no id or no text")
    if row.get("state") == "deleted" or row.get("deleted_at"):
        return Rejected(where=id, reason="is deleted in the program itself")
    return Memory(
        original_id=id,
        text=text,
        status=_state(row),
        session=text_of(row.get("run_id")),
        user=text_of(row.get("user_id")),
        role=text_of(row.get("agent_id")),
        tags=tags_of(row.get("categories")),
        metadata=present(
            {
                **{name: value for name, value in row.items() if name not in _READ},
                **_metadata(row.get("metadata") or row.get("metadata_")),
            }
        ),
        created_at=milliseconds(row.get("created_at")),
        updated_at=milliseconds(row.get("updated_at")),
    )


def _state(row: dict[str, Any]) -> str | None:
    state = text_of(row.get("state"))
    return None if state == "active" else state


def _metadata(raw: Any) -> dict[str, Any]:
    if not isinstance(raw, str):
        return object_of(raw)
    try:
        return object_of(orjson.loads(raw))
    except orjson.JSONDecodeError:
        return {"metadata": raw}


def _history(path: Path) -> Iterator[Found]:
    latest: dict[str, dict[str, Any]] = {}
    for row in foreign_files.rows(path, "SELECT * FROM history ORDER BY rowid"):
        latest[str(row.get("memory_id"))] = row
    for id, row in latest.items():
        if row.get("event") == "DELETE" or row.get("is_deleted"):
            yield Rejected(where=id, reason="is deleted in the program itself")
            continue
        yield _memory({**row, "id": id, "memory": row.get("new_memory"), "metadata": None}
                      | dict.fromkeys(("old_memory", "new_memory", "event", "memory_id",
                                       "is_deleted")))  # fmt: skip


KIND: Final = ForeignKind(
    name="mem0",
    title="mem0 or OpenMemory",
    missing=missing,
    read=read,
    usual=(".mem0/history.db",),
)

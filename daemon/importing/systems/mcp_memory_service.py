"""mcp-memory-service: its SQLite database, or its JSON export."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import orjson

from daemon.importing import foreign_files
from daemon.importing.record import ForeignKind, Found, Memory, Rejected
from daemon.importing.values import (
    content_id,
    milliseconds,
    object_of,
    objects_of,
    present,
    tags_of,
    text_of,
)


def missing(path: Path) -> str | None:
    if not path.is_file():
        return "it is not a file"
    if foreign_files.is_sqlite(path):
        return foreign_files.missing_table(path, "memories", "content_hash", "content", "tags")
    memories = objects_of(object_of(foreign_files.load(path)).get("memories"))
    if not memories or not all("content_hash" in each for each in memories[:3]):
        return "it is neither its database nor a JSON export with `memories` and `content_hash`"
    return None


def read(path: Path) -> Iterator[Found]:
    if foreign_files.is_sqlite(path):
        has_deletions = "deleted_at" in foreign_files.columns(path)["memories"]
        live = " WHERE deleted_at IS NULL" if has_deletions else ""
        rows: Iterable[dict[str, Any]] = foreign_files.rows(
            path, f"SELECT * FROM memories{live} ORDER BY id"
        )
    else:
        rows = objects_of(object_of(foreign_files.load(path)).get("memories"))
    for row in rows:
        yield _memory(row)


def _memory(row: dict[str, Any]) -> Found:
    text, hash = text_of(row.get("content")), text_of(row.get("content_hash"))
    if text is None:
        return Rejected(where=hash or "a memory", reason="has no content")
    created = milliseconds(row.get("created_at")) or milliseconds(row.get("created_at_iso"))
    updated = milliseconds(row.get("updated_at")) or milliseconds(row.get("updated_at_iso"))
    return Memory(
        original_id=hash or content_id(text),
        text=text,
        category=text_of(row.get("memory_type")),
        tags=tags_of(row.get("tags")),
        metadata=present(_metadata(row.get("metadata"))),
        created_at=created,
        updated_at=updated,
    )


def _metadata(raw: Any) -> dict[str, Any]:
    if not isinstance(raw, str):
        return object_of(raw)
    try:
        return object_of(orjson.loads(raw))
    except orjson.JSONDecodeError:
        return {"metadata": raw}


KIND: Final = ForeignKind(
    name="mcp-memory-service",
    title="mcp-memory-service",
    missing=missing,
    read=read,
    usual=(
        ".local/share/mcp-memory/sqlite_vec.db",
        "Library/Application Support/mcp-memory/sqlite_vec.db",
    ),
    variables=(("MCP_MEMORY_SQLITE_PATH", ""),),
    keeps_ids=True,
)

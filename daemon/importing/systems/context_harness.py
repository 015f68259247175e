"""Context Harness: its SQLite database. Documents keep their ids, so that links stay valid."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import orjson

from daemon.importing import foreign_files
from daemon.importing.record import ForeignDocument, ForeignKind, Found, Rejected
from daemon.importing.values import milliseconds, object_of, present, text_of


def missing(path: Path) -> str | None:
    return foreign_files.missing_table(path, "documents", "id", "source", "source_id", "body")


def read(path: Path) -> Iterator[Found]:
    for row in foreign_files.rows(path, "SELECT * FROM documents ORDER BY rowid"):
        yield _document(row)


def _document(row: dict[str, Any]) -> Found:
    id = text_of(row.get("id"))
    body = text_of(row.get("body"))
    if id is None or body is None:
        return Rejected(where=id or "a document", reason="has no body")
    return ForeignDocument(
        original_id=id,
        source=text_of(row.get("source")) or "context-harness",
        source_id=text_of(row.get("source_id")) or id,
        body=body,
        title=text_of(row.get("title")) or "",
        author=text_of(row.get("author")),
        url=text_of(row.get("source_url")),
        content_type=text_of(row.get("content_type")) or "text/plain",
        metadata=present(_metadata(row.get("metadata_json"))),
        created_at=milliseconds(row.get("created_at")),
        updated_at=milliseconds(row.get("updated_at")),
    )


def _metadata(raw: Any) -> dict[str, Any]:
    try:
        return object_of(orjson.loads(raw)) if isinstance(raw, str) else {}
    except orjson.JSONDecodeError:
        return {"metadata": raw}


KIND: Final = ForeignKind(
    name="context-harness",
    title="Context Harness",
    missing=missing,
    read=read,
    keeps_ids=True,
)

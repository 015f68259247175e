"""Writing of the export format: the header, one line per record, and the end with the digest.

An export writes the rows of a bank. An import from another system writes the items that it found
there, so that both reach a bank through the same checks and the same transaction.
"""

from functools import lru_cache
from hashlib import blake2b
from typing import Any, BinaryIO, Final

import msgspec
import orjson
from msgspec.structs import asdict

from store.exporting.export_format import FORMAT, VERSION
from store.ids import fresh_id
from store.model import NewDocument, NewMemory, Provenance
from store.rows.documents import DocumentRow, prepare_document
from store.rows.items import ItemRow
from store.rows.prepared import check, sameness
from store.validate import check_time, encode_json

#: Columns that are not exported: row numbers and the state of a forget.
_PRIVATE: Final = frozenset(("id", "forgotten_at", "forgotten_by"))
_JSON: Final = frozenset(("tags", "metadata", "details", "provenance"))


class ExportWriter:
    """Writes records to an open file. `finish` writes the last line."""

    def __init__(self, file: BinaryIO, bank: str) -> None:
        self._file = file
        self._digest = blake2b(digest_size=32)
        self.records = 0
        self._write({"format": FORMAT, "version": VERSION, "bank": bank})

    def write(self, record: dict[str, Any]) -> None:
        self._write(record)
        self.records += 1

    def finish(self) -> str:
        """Write the end of the file; returns the digest."""
        digest = self._digest.hexdigest()
        self._write({"type": "end", "records": self.records, "digest": digest})
        return digest

    def _write(self, record: dict[str, Any]) -> None:
        line = orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)
        self._digest.update(line)
        self._file.write(line)


def exported(row: DocumentRow | ItemRow) -> dict[str, Any]:
    """The columns of a row as JSON values, without the private ones."""
    return {
        name: _plain(name, value) for name, value in asdict(row).items() if name not in _PRIVATE
    }


def item_record(
    new: NewMemory,
    now: int,
    *,
    created_at: int | None = None,
    updated_at: int | None = None,
    superseded_by: str | None = None,
) -> dict[str, Any]:
    """The record of an item from elsewhere, with its own dates; raises `InvalidInput`."""
    check(new)
    check_time("created_at", created_at)
    check_time("updated_at", updated_at)
    encode_json("metadata", new.metadata)
    hash = sameness(new)
    occurred_at = now if new.occurred_at is None else new.occurred_at
    created = occurred_at if created_at is None else created_at
    return {
        "type": "item",
        "public_id": new.id or fresh_id("imp", now),
        "kind": new.kind,
        "title": new.title,
        "text": new.text,
        "context": new.context,
        "category": new.category,
        "status": new.status,
        "level": new.level,
        "confidence": new.confidence,
        "salience": new.salience,
        "session": new.session,
        "document": None,
        "position": None,
        "source": new.source,
        "user": new.user,
        "role": new.role,
        "actor": new.actor,
        "event_type": new.event_type,
        "key": new.key,
        "tags": new.tags,
        "metadata": new.metadata,
        "details": new.details,
        "provenance": _provenance(new.provenance),
        "occurred_at": occurred_at,
        "created_at": created,
        "updated_at": created if updated_at is None else updated_at,
        "superseded_by": superseded_by,
        "repeats": 0,
        "sameness": None if hash is None else hash.hex(),
    }


@lru_cache(maxsize=16)
def _provenance(provenance: Provenance) -> dict[str, Any]:
    built: dict[str, Any] = msgspec.to_builtins(provenance)
    return built


def document_records(new: NewDocument, id: str, now: int) -> list[dict[str, Any]]:
    """The records of a document from elsewhere and of its chunks; raises `InvalidInput`."""
    prepared = prepare_document(new, now)
    created = now if new.created_at is None else new.created_at
    document = DocumentRow(
        id=0,
        public_id=id,
        source=new.source,
        source_id=new.source_id,
        title=new.title,
        body=new.body,
        author=new.author,
        url=new.url,
        content_type=new.content_type,
        metadata=prepared.metadata,
        created_at=created,
        updated_at=created if new.updated_at is None else new.updated_at,
        indexed_at=now,
        run=new.run,
        chunks=len(prepared.chunks),
    )
    chunks = [
        {"type": "item"}
        | exported(msgspec.structs.replace(chunk.row, document=id, position=position))
        for position, chunk in enumerate(prepared.chunks)
    ]
    return [{"type": "document"} | exported(document), *chunks]


def _plain(name: str, value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    return orjson.loads(value) if name in _JSON else value

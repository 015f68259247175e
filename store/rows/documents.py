"""Documents: whole texts from other systems, identified by `source` and `source_id`.

A document is found through its chunks. Putting it again replaces it. Chunks with the same text keep
their ids and take over the new title, user and time; they also keep their vectors, unless that
changes their tokens. Chunks whose text no longer occurs are deleted. A document that has not
changed is recognised by one read.
"""

import secrets
from collections.abc import Sequence
from typing import Any, Final

import orjson
from msgspec import Struct
from msgspec.structs import replace

from store.chunking import Chunk, chunk_ids, chunks, line_ranges
from store.database import Connection
from store.engine import Progress
from store.errors import InvalidInput, NotFound
from store.model import (
    DOCUMENT_LIMIT,
    Document,
    DocumentHeader,
    Item,
    NewDocument,
    NewMemory,
    SourceCount,
    Upserted,
)
from store.rows.document_chunks import chunk_rowids, write_chunks
from store.rows.items import LIVE, SELECT, item_of
from store.rows.memories import delete_rows
from store.rows.prepared import Prepared, encode_provenance, prepare
from store.rows.table import RowDamaged, Table
from store.rows.transaction import WriteTransaction
from store.validate import check_labels, check_text, check_time, encode_json


class DocumentRow(Struct, frozen=True):
    """A row of the table `documents`. `Document` describes these fields."""

    id: int
    public_id: str
    source: str
    source_id: str
    title: str
    body: str
    author: str | None
    url: str | None
    content_type: str
    metadata: str  # JSON
    created_at: int
    updated_at: int
    indexed_at: int
    run: str | None
    chunks: int


class _HeaderRow(Struct, frozen=True):
    """The columns of the table `documents` without the body and the digest."""

    id: int
    public_id: str
    source: str
    source_id: str
    title: str
    author: str | None
    url: str | None
    content_type: str
    metadata: str
    created_at: int
    updated_at: int
    indexed_at: int
    run: str | None
    chunks: int


DOCUMENTS: Final = Table("documents", DocumentRow, noun="document")
_SELECT_HEADER: Final = f"SELECT {', '.join(_HeaderRow.__struct_fields__)} FROM documents"


class PreparedDocument(Struct, frozen=True, kw_only=True):
    """A document that is checked and cut into chunks, ready to be written."""

    new: NewDocument
    metadata: str
    chunks: tuple[Prepared, ...]
    now: int


def check(new: NewDocument) -> None:
    """Refuse a document that cannot be stored, naming the field and the rule."""
    check_labels(
        source=new.source, source_id=new.source_id, id=new.id, title=new.title, author=new.author,
        url=new.url, content_type=new.content_type, run=new.run, session=new.session,
        user=new.user, role=new.role,
    )  # fmt: skip
    check_text("source", new.source, empty=False)
    check_text("source_id", new.source_id, empty=False)
    check_text("body", new.body, limit=DOCUMENT_LIMIT)
    check_time("created_at", new.created_at)
    check_time("updated_at", new.updated_at)
    encode_json("metadata", new.metadata)
    encode_provenance(new.provenance)


def prepare_document(new: NewDocument, now: int) -> PreparedDocument:
    """Check a document, cut it into chunks and prepare them. Needs no database."""
    check(new)
    pieces = chunks(new.body, new.content_type)
    ids = chunk_ids(new.source, new.source_id, pieces)
    lines = line_ranges(new.body, pieces) if new.is_numbered else [None] * len(pieces)
    return PreparedDocument(
        new=new,
        metadata=encode_json("metadata", new.metadata),
        chunks=tuple(
            prepare(_chunk(new, id, piece, where), now, of_document=True)
            for id, piece, where in zip(ids, pieces, lines, strict=True)
        ),
        now=now,
    )


def recognise(transaction: WriteTransaction, new: NewDocument) -> Upserted | None:
    """The result of `upsert` if this very document is stored already; None if it is not."""
    connection = transaction.connection
    known = _stored(connection, new)
    if known is None:
        return None
    if new.run != known.run:
        DOCUMENTS.update(connection, replace(known, run=new.run))
    return Upserted(
        id=known.public_id, outcome="unchanged", chunks=known.chunks, chunks_kept=known.chunks
    )


def is_stored(connection: Connection, new: NewDocument) -> bool:
    """Whether this very document is stored already, so that `recognise` will find it."""
    return _stored(connection, new) is not None


def upsert(
    transaction: WriteTransaction, prepared: PreparedDocument, progress: Progress | None = None
) -> Upserted:
    """Store a document, replace its older version, or report that it has not changed."""
    new = prepared.new
    connection = transaction.connection
    same = recognise(transaction, new)
    if same is not None:
        return same
    known = _find_row(connection, new.source, new.source_id)
    is_moved = known is None and new.moved_from is not None
    if known is None and new.moved_from is not None:
        known = _find_row(connection, new.source, new.moved_from)
    if known is None and new.id is not None and _exists(connection, new.id):
        raise InvalidInput("id", "is the id of another document already")
    row = DocumentRow(
        id=known.id if known is not None else transaction.next(),
        public_id=known.public_id if known is not None else new.id or secrets.token_hex(16),
        source=new.source,
        source_id=new.source_id,
        title=new.title,
        body=new.body,
        author=new.author,
        url=new.url,
        content_type=new.content_type,
        metadata=prepared.metadata,
        created_at=_first(
            new.created_at, None if known is None else known.created_at, prepared.now
        ),
        updated_at=_first(new.updated_at, prepared.now),
        indexed_at=prepared.now,
        run=new.run,
        chunks=len(prepared.chunks),
    )
    if known is None:
        DOCUMENTS.insert(connection, row)
    else:
        DOCUMENTS.update(connection, row)
    kept = write_chunks(
        transaction,
        row.public_id,
        prepared.chunks,
        prepared.now,
        is_moved=is_moved,
        progress=progress,
    )
    return Upserted(
        id=row.public_id,
        outcome="created" if known is None else "updated",
        chunks=len(prepared.chunks),
        chunks_kept=kept,
    )


def get(connection: Connection, id: str) -> Document:
    columns = connection.execute(f"{DOCUMENTS.select} WHERE public_id = ?", (id,)).fetchone()
    if columns is None:
        raise NotFound("document", id)
    return document_of(DOCUMENTS.read(columns))


def find_by_source(connection: Connection, source: str, source_id: str) -> Document | None:
    row = _find_row(connection, source, source_id)
    return None if row is None else document_of(row)


def headers(connection: Connection, ids: Sequence[str]) -> list[DocumentHeader]:
    """The headers of these documents, in the order given; unknown ids are left out."""
    found: dict[str, DocumentHeader] = {}
    for start in range(0, len(ids), 500):
        some = ids[start : start + 500]
        marks = ",".join("?" * len(some))
        rows = connection.execute(f"{_SELECT_HEADER} WHERE public_id IN ({marks})", some)
        found |= {header.id: header for header in map(_header_of, rows)}
    return [found[id] for id in dict.fromkeys(ids) if id in found]


def listing(
    connection: Connection, *, source: str | None, limit: int, offset: int
) -> list[DocumentHeader]:
    """Document headers, most recently indexed first."""
    condition, values = ("TRUE", ()) if source is None else ("source = ?", (source,))
    rows = connection.execute(
        f"{_SELECT_HEADER} WHERE {condition} ORDER BY indexed_at DESC, id DESC LIMIT ? OFFSET ?",
        (*values, limit, offset),
    )
    return [_header_of(row) for row in rows]


def chunks_of(connection: Connection, document: str) -> list[Item]:
    """The chunks of a document in its order, or `NotFound` if there is no such document."""
    if not _exists(connection, document):
        raise NotFound("document", document)
    rows = connection.execute(
        f"{SELECT} WHERE items.document = ? AND {LIVE} ORDER BY items.position", (document,)
    )
    return [item_of(row) for row in rows]


def delete(transaction: WriteTransaction, ids: Sequence[str]) -> int:
    """Delete documents and their chunks. Unknown ids are ignored and not counted."""
    deleted = 0
    for id in ids:
        delete_rows(transaction, chunk_rowids(transaction.connection, id).values())
        deleted += transaction.connection.execute(
            "DELETE FROM documents WHERE public_id = ?", (id,)
        ).rowcount
    return deleted


def not_seen(connection: Connection, source: str, run: str) -> list[str]:
    """The ids of the documents of a source that this import run did not put."""
    rows = connection.execute(
        "SELECT public_id FROM documents WHERE source = ? AND (run IS NULL OR run <> ?)",
        (source, run),
    )
    return [id for (id,) in rows]


def counts(connection: Connection) -> tuple[SourceCount, ...]:
    """The number of documents and chunks of each source."""
    rows = connection.execute(
        "SELECT source, count(*), sum(chunks), max(indexed_at) FROM documents"
        " GROUP BY source ORDER BY source"
    )
    return tuple(
        SourceCount(source=source, documents=documents, chunks=chunks, indexed_at=indexed_at)
        for source, documents, chunks, indexed_at in rows
    )


def document_of(row: DocumentRow) -> Document:
    return Document(body=row.body, **_header_fields(row))


def _header_of(columns: tuple[Any, ...]) -> DocumentHeader:
    """The header in the columns of `_SELECT_HEADER`.

    The digest of a row covers the body, which is not read here. So only the metadata's JSON is
    checked. `get` and the engine's `check` verify whole rows.
    """
    row = _HeaderRow(*columns)
    try:
        return DocumentHeader(**_header_fields(row))
    except orjson.JSONDecodeError:
        raise RowDamaged("document", row.id) from None


def _header_fields(row: DocumentRow | _HeaderRow) -> dict[str, Any]:
    return {
        "rowid": row.id,
        "id": row.public_id,
        "source": row.source,
        "source_id": row.source_id,
        "title": row.title,
        "author": row.author,
        "url": row.url,
        "content_type": row.content_type,
        "metadata": orjson.loads(row.metadata),
        "created_at": row.created_at,
        "updated_at": row.updated_at,
        "indexed_at": row.indexed_at,
        "run": row.run,
        "chunks": row.chunks,
    }


def find_row(connection: Connection, id: str) -> DocumentRow | None:
    columns = connection.execute(f"{DOCUMENTS.select} WHERE public_id = ?", (id,)).fetchone()
    return None if columns is None else DOCUMENTS.read(columns)


def _stored(connection: Connection, new: NewDocument) -> DocumentRow | None:
    known = _find_row(connection, new.source, new.source_id)
    if known is None or not _is_same(known, new) or not _has_owner(connection, known, new):
        return None
    return known


def _find_row(connection: Connection, source: str, source_id: str) -> DocumentRow | None:
    columns = connection.execute(
        f"{DOCUMENTS.select} WHERE source = ? AND source_id = ?", (source, source_id)
    ).fetchone()
    return None if columns is None else DOCUMENTS.read(columns)


def _exists(connection: Connection, id: str) -> bool:
    row = connection.execute("SELECT 1 FROM documents WHERE public_id = ?", (id,)).fetchone()
    return row is not None


def _first(*values: int | None) -> int:
    """The first value that is not None; the last one never is."""
    return next(value for value in values if value is not None)


def _is_same(known: DocumentRow, new: NewDocument) -> bool:
    return (
        (known.body, known.title, known.author, known.url, known.content_type)
        == (new.body, new.title, new.author, new.url, new.content_type)
        and orjson.loads(known.metadata) == orjson.loads(encode_json("metadata", new.metadata))
        and new.updated_at in (None, known.updated_at)
        and new.created_at in (None, known.created_at)
    )


def _has_owner(connection: Connection, known: DocumentRow, new: NewDocument) -> bool:
    """Whether the stored chunks have the user and role of the new version.

    All chunks of a document have the same user and role.
    """
    row = connection.execute(
        "SELECT items.user, items.role FROM items WHERE document = ? ORDER BY position LIMIT 1",
        (known.public_id,),
    ).fetchone()
    return row in (None, (new.user, new.role))


def _chunk(new: NewDocument, id: str, piece: Chunk, lines: tuple[int, int] | None) -> NewMemory:
    details: dict[str, Any] = {"start": piece.start, "end": piece.end}
    if new.is_numbered:
        details |= {"heading": piece.heading, "lines": lines}
    return NewMemory(
        kind="chunk",
        id=id,
        text=piece.text,
        title=_title(new.title, piece.heading),
        session=new.session,
        source=new.source,
        user=new.user,
        role=new.role,
        metadata=new.metadata,
        provenance=new.provenance,
        occurred_at=new.updated_at,
        details=details,
    )


def _title(title: str, heading: str) -> str:
    return " > ".join(part for part in (title, heading) if part)[:1000]

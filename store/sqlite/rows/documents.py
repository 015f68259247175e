"""Documents: whole texts from elsewhere, known by source and source_id, found by their chunks.

Putting a document again replaces it: chunks whose text is the same keep their ids, take over its
title, user and time, and keep their vectors if that leaves their words the same; chunks that are
gone are deleted. A document that has not changed costs one look.
"""

import secrets
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from store.chunking import Chunk, chunk_ids, chunks
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
from store.sqlite.database import Connection
from store.sqlite.rows.items import COLUMNS, LIVE, SELECT, RowDamaged, digest_of, is_sound, item_of
from store.sqlite.rows.memories import (
    Changes,
    Prepared,
    delete_rows,
    encode_provenance,
    follow_row,
    insert_row,
    prepare,
)
from store.validate import check_labels, check_text, check_time, encode_json

DOCUMENT_COLUMNS: Final[tuple[str, ...]] = (
    "id", "public_id", "source", "source_id", "title", "body", "author", "url", "content_type",
    "metadata", "created_at", "updated_at", "indexed_at", "run", "chunks",
)  # fmt: skip
_SELECT: Final = f"SELECT {', '.join(DOCUMENT_COLUMNS)}, digest FROM documents"
_HEADER_COLUMNS: Final = tuple(name for name in DOCUMENT_COLUMNS if name != "body")
_SELECT_HEADER: Final = f"SELECT {', '.join(_HEADER_COLUMNS)} FROM documents"
PUBLIC_ID: Final = COLUMNS.index("public_id")
# What a chunk has from its document, and takes over when the document comes anew.
_FOLLOWED: Final = (
    "title", "session", "user", "role", "metadata", "details", "provenance", "occurred_at",
)  # fmt: skip
_mapping: Final = msgspec.json.Decoder(dict[str, Any]).decode


class PreparedDocument(Struct, frozen=True, kw_only=True):
    """A document that is checked and cut, and waits for its place in the bank."""

    new: NewDocument
    metadata: str
    chunks: tuple[Prepared, ...]
    now: int


def check(new: NewDocument) -> None:
    """Refuse what cannot be kept, naming the field and the rule."""
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
    """Check a document and do all of it that needs no database: cutting, hashing, words."""
    check(new)
    pieces = chunks(new.body)
    ids = chunk_ids(new.source, new.source_id, pieces)
    return PreparedDocument(
        new=new,
        metadata=encode_json("metadata", new.metadata),
        chunks=tuple(
            prepare(_chunk(new, id, piece), now, of_document=True)
            for id, piece in zip(ids, pieces, strict=True)
        ),
        now=now,
    )


def recognise(changes: Changes, new: NewDocument) -> Upserted | None:
    """What `upsert` would answer if this is the document we have already; None if it is not."""
    known = find_by_source(changes.connection, new.source, new.source_id)
    if known is None or not _is_same(known, new) or not _is_of(changes.connection, known, new):
        return None
    if new.run != known.run:
        _write(changes.connection, {**_values(known), "run": new.run}, known.rowid)
    return Upserted(id=known.id, outcome="unchanged", chunks=known.chunks, chunks_kept=known.chunks)


def upsert(
    changes: Changes, prepared: PreparedDocument, progress: Progress | None = None
) -> Upserted:
    """Keep the document, replace the one it is a new version of, or see that nothing changed."""
    new = prepared.new
    connection = changes.connection
    same = recognise(changes, new)
    if same is not None:
        return same
    known = find_by_source(connection, new.source, new.source_id)
    if known is None and new.id is not None and _is_taken(connection, new.id):
        raise InvalidInput("id", "is the id of another document already")
    id = known.id if known is not None else new.id or secrets.token_hex(16)
    rowid = known.rowid if known is not None else changes.next()
    created_at = new.created_at if new.created_at is not None else prepared.now
    values = {
        "public_id": id, "source": new.source, "source_id": new.source_id, "title": new.title,
        "body": new.body, "author": new.author, "url": new.url, "content_type": new.content_type,
        "metadata": prepared.metadata,
        "created_at": known.created_at if known and new.created_at is None else created_at,
        "updated_at": new.updated_at if new.updated_at is not None else prepared.now,
        "indexed_at": prepared.now, "run": new.run, "chunks": len(prepared.chunks),
    }  # fmt: skip
    _write(connection, values, rowid, is_new=known is None)
    kept = _write_chunks(changes, id, prepared, progress)
    return Upserted(
        id=id,
        outcome="created" if known is None else "updated",
        chunks=len(prepared.chunks),
        chunks_kept=kept,
    )


def get(connection: Connection, id: str) -> Document:
    row = connection.execute(f"{_SELECT} WHERE public_id = ?", (id,)).fetchone()
    if row is None:
        raise NotFound("document", id)
    return document_of(row)


def find_by_source(connection: Connection, source: str, source_id: str) -> Document | None:
    row = connection.execute(
        f"{_SELECT} WHERE source = ? AND source_id = ?", (source, source_id)
    ).fetchone()
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
    rows = connection.execute(
        f"{_SELECT_HEADER} WHERE ?1 IS NULL OR source = ?1"
        " ORDER BY indexed_at DESC, id DESC LIMIT ?2 OFFSET ?3",
        (source, limit, offset),
    )
    return [_header_of(row) for row in rows]


def chunks_of(connection: Connection, document: str) -> list[Item]:
    """A document's chunks in its order, or `NotFound` when there is no such document."""
    if not _is_taken(connection, document):
        raise NotFound("document", document)
    rows = connection.execute(
        f"{SELECT} WHERE items.document = ? AND {LIVE} ORDER BY items.position", (document,)
    )
    return [item_of(row) for row in rows]


def delete(changes: Changes, ids: Sequence[str]) -> int:
    """Delete documents and their chunks; ids that are not there are left out of the count."""
    deleted = 0
    for id in ids:
        delete_rows(changes, _chunk_rowids(changes.connection, id).values())
        deleted += changes.connection.execute(
            "DELETE FROM documents WHERE public_id = ?", (id,)
        ).rowcount
    return deleted


def not_seen(connection: Connection, source: str, run: str) -> list[str]:
    """The documents of a source that an import run did not meet: they are gone over there."""
    rows = connection.execute(
        "SELECT public_id FROM documents WHERE source = ? AND run IS NOT ?", (source, run)
    )
    return [id for (id,) in rows]


def counts(connection: Connection) -> tuple[SourceCount, ...]:
    rows = connection.execute(
        "SELECT source, count(*), sum(chunks), max(indexed_at) FROM documents"
        " GROUP BY source ORDER BY source"
    )
    return tuple(
        SourceCount(source=row[0], documents=row[1], chunks=row[2], indexed_at=row[3])
        for row in rows
    )


def document_of(row: tuple[Any, ...]) -> Document:
    if not is_sound(row):
        raise RowDamaged("document", row[0])
    return Document(
        rowid=row[0], id=row[1], source=row[2], source_id=row[3], title=row[4], body=row[5],
        author=row[6], url=row[7], content_type=row[8], metadata=_mapping(row[9]),
        created_at=row[10], updated_at=row[11], indexed_at=row[12], run=row[13], chunks=row[14],
    )  # fmt: skip


def _header_of(row: tuple[Any, ...]) -> DocumentHeader:
    """The header in a row of `_SELECT_HEADER`.

    The digest of a row covers the body, which is not read here. So only the metadata's JSON is
    checked; `document_of` and the engine's `check` verify whole rows.
    """
    try:
        metadata = _mapping(row[8])
    except msgspec.DecodeError:
        raise RowDamaged("document", row[0]) from None
    return DocumentHeader(
        rowid=row[0], id=row[1], source=row[2], source_id=row[3], title=row[4], author=row[5],
        url=row[6], content_type=row[7], metadata=metadata, created_at=row[9], updated_at=row[10],
        indexed_at=row[11], run=row[12], chunks=row[13],
    )  # fmt: skip


def _is_taken(connection: Connection, id: str) -> bool:
    row = connection.execute("SELECT 1 FROM documents WHERE public_id = ?", (id,)).fetchone()
    return row is not None


def _is_same(known: Document, new: NewDocument) -> bool:
    return (
        (known.body, known.title, known.author, known.url, known.content_type)
        == (new.body, new.title, new.author, new.url, new.content_type)
        and known.metadata == _mapping(encode_json("metadata", new.metadata))
        and new.updated_at in (None, known.updated_at)
        and new.created_at in (None, known.created_at)
    )


def _is_of(connection: Connection, known: Document, new: NewDocument) -> bool:
    """Whether the chunks, which are all alike in this, have the user and role of the new one."""
    row = connection.execute(
        "SELECT user, role FROM items WHERE document = ? ORDER BY position LIMIT 1", (known.id,)
    ).fetchone()
    return row in (None, (new.user, new.role))


def _values(known: Document) -> dict[str, Any]:
    return {
        "public_id": known.id, "source": known.source, "source_id": known.source_id,
        "title": known.title, "body": known.body, "author": known.author, "url": known.url,
        "content_type": known.content_type,
        "metadata": msgspec.json.encode(known.metadata).decode(),
        "created_at": known.created_at, "updated_at": known.updated_at,
        "indexed_at": known.indexed_at, "run": known.run, "chunks": known.chunks,
    }  # fmt: skip


def _write(
    connection: Connection, values: dict[str, Any], rowid: int, *, is_new: bool = False
) -> None:
    row = [rowid, *(values[name] for name in DOCUMENT_COLUMNS[1:])]
    if is_new:
        marks = ", ".join("?" * (len(row) + 1))
        connection.execute(
            f"INSERT INTO documents ({', '.join(DOCUMENT_COLUMNS)}, digest) VALUES ({marks})",
            (*row, digest_of(row)),
        )
        return
    names = ", ".join(f"{name} = ?" for name in DOCUMENT_COLUMNS)
    connection.execute(
        f"UPDATE documents SET {names}, digest = ? WHERE id = ?", (*row, digest_of(row), rowid)
    )


def _write_chunks(
    changes: Changes, document: str, prepared: PreparedDocument, progress: Progress | None
) -> int:
    known = _chunk_rowids(changes.connection, document)
    ids = [chunk.values[PUBLIC_ID] for chunk in prepared.chunks]
    wanted = set(ids)
    delete_rows(changes, [rowid for id, rowid in known.items() if id not in wanted])
    kept = 0
    for position, (id, chunk) in enumerate(zip(ids, prepared.chunks, strict=True)):
        if id in known:
            followed = {name: chunk.values[COLUMNS.index(name)] for name in _FOLLOWED}
            follow_row(changes, known[id], prepared.now, position=position, **followed)
            kept += 1
        else:
            insert_row(changes, chunk, document=document, position=position)
        if progress is not None:
            progress(position + 1, len(ids))
    return kept


def _chunk(new: NewDocument, id: str, piece: Chunk) -> NewMemory:
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
        details={"start": piece.start, "end": piece.end},
    )


def _chunk_rowids(connection: Connection, document: str) -> dict[str, int]:
    rows = connection.execute("SELECT public_id, id FROM items WHERE document = ?", (document,))
    return dict(rows.fetchall())


def _title(title: str, heading: str) -> str:
    return " > ".join(part for part in (title, heading) if part)[:1000]

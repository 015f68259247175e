"""Export and import of a bank as a file of JSON lines.

    {"format": "recalld-bank", "version": 1, "bank": "work"}
    {"type": "document", …}   {"type": "item", …}   {"type": "evidence", …}   {"type": "profile", …}
    {"type": "end", "records": 3, "digest": "…"}

The file holds all live items in the order in which they were put, without rowids, so exporting an
imported bank gives the same bytes. The last line holds a digest of the lines before it. Vectors are
not exported; they are computed again. An import verifies the whole file before it writes anything,
and can be repeated: existing items are not changed.
"""

import os
import secrets
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any, Final, assert_never

import msgspec

from store.engine import Progress
from store.errors import ImportRefused
from store.model import Exported
from store.sqlite.connection import Connection
from store.sqlite.files import PRIVATE_FILE, sync_directory
from store.sqlite.maintenance.export_format import (
    FORMAT,
    LINE_LIMIT,
    VERSION,
    DocumentRecord,
    End,
    EvidenceRecord,
    ItemRecord,
    OriginRecord,
    ProfileRecord,
    Record,
    check_header,
    check_record,
    decode_line,
)
from store.sqlite.rows.documents import DOCUMENT_COLUMNS, document_of
from store.sqlite.rows.items import COLUMNS, LIVE, SELECT, as_stored, digest_of, item_of
from store.sqlite.rows.memories import Changes, Prepared, insert_row, tokens_of
from store.sqlite.rows.skills import PROFILES, profile_of

_DOCUMENTS: Final = f"SELECT {', '.join(DOCUMENT_COLUMNS)}, digest FROM documents ORDER BY id"
# Not exported: internal numbers, and the state of forgotten items.
_PRIVATE: Final = ("id", "forgotten_at", "forgotten_by")
_JSON: Final = ("tags", "metadata", "details", "provenance")
_ITEM_FIELDS: Final = tuple(name for name in COLUMNS if name not in _PRIVATE)
_DOCUMENT_FIELDS: Final = tuple(name for name in DOCUMENT_COLUMNS if name != "id")


def export(
    connection: Connection, bank: str, path: Path, progress: Progress | None = None
) -> Exported:
    """Write the bank to a private file, which appears only when it is complete."""
    temporary = path.with_name(f".{path.name[:200]}.{secrets.token_hex(4)}.tmp")
    digest = blake2b(digest_size=32)
    records = 0
    try:
        descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE_FILE)
        with os.fdopen(descriptor, "wb") as file:

            def write(record: dict[str, Any]) -> None:
                line = msgspec.json.encode(record) + b"\n"
                digest.update(line)
                file.write(line)

            write({"format": FORMAT, "version": VERSION, "bank": bank})
            total = _count(connection) if progress is not None else 0
            for record in _records(connection):
                write(record)
                records += 1
                if progress is not None:
                    progress(records, total)
            write({"type": "end", "records": records, "digest": digest.hexdigest()})
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_directory(path.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return Exported(bank=bank, records=records, digest=digest.hexdigest())


def verify(path: Path) -> int:
    """Read and check a whole file without importing it; returns the number of records.

    Only the ids of documents are kept in memory, because chunks refer to them.
    """
    digest = blake2b(digest_size=32)
    documents: set[str] = set()
    count = 0
    with path.open("rb") as file:
        first = file.readline(LINE_LIMIT)
        check_header(first)
        digest.update(first)
        for number, line in enumerate(iter(lambda: file.readline(LINE_LIMIT), b""), start=2):
            record = decode_line(line, number)
            if isinstance(record, End):
                if record != End(records=count, digest=digest.hexdigest()):
                    raise ImportRefused("file", "was changed or cut: its digest does not fit")
                if file.read(1):
                    raise ImportRefused("file", "goes on after its end")
                return count
            check_record(record, number, documents)
            digest.update(line)
            count += 1
    raise ImportRefused("file", "is cut: it has no end")


def records_of(path: Path) -> Iterator[Record]:
    """The records of a verified file."""
    with path.open("rb") as file:
        file.readline(LINE_LIMIT)
        for number, line in enumerate(file, start=2):
            record = decode_line(line, number)
            if isinstance(record, End):
                return
            yield record


def batches(path: Path, size: int) -> Iterator[list[Record]]:
    """The records of a verified file, in batches."""
    records = records_of(path)
    while batch := list(islice(records, size)):
        yield batch


def take(changes: Changes, records: Iterable[Record]) -> tuple[int, int]:
    """Import records in their order; returns how many were new and how many existed."""
    created = known = 0
    for record in records:
        if _take(changes, record):
            created += 1
        else:
            known += 1
    return created, known


def _count(connection: Connection) -> int:
    """The number of records in the export, for progress reports."""
    tables = (
        "documents",
        f"items WHERE {LIVE}",
        f"evidence JOIN items ON items.id = evidence.card WHERE {LIVE}",
        "profiles",
        "origins",
    )
    return sum(
        connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables
    )


def _records(connection: Connection) -> Iterator[dict[str, Any]]:
    for row in connection.execute(_DOCUMENTS):
        document_of(row)
        values = dict(zip(DOCUMENT_COLUMNS, row, strict=False))
        yield {"type": "document"} | {name: _plain(name, values[name]) for name in _DOCUMENT_FIELDS}
    for row in connection.execute(f"{SELECT} WHERE {LIVE} ORDER BY items.id"):
        item_of(row)
        values = dict(zip(COLUMNS, row, strict=False))
        yield {"type": "item"} | {name: _plain(name, values[name]) for name in _ITEM_FIELDS}
    for card, snippet, session, item in connection.execute(
        "SELECT items.public_id, snippet, evidence.session, item FROM evidence"
        f" JOIN items ON items.id = evidence.card WHERE {LIVE}"
        " ORDER BY items.id, snippet, evidence.session"
    ):
        yield {
            "type": "evidence", "card": card, "snippet": snippet, "session": session, "item": item,
        }  # fmt: skip
    for row in connection.execute(f"{PROFILES} ORDER BY agent_role"):
        yield {"type": "profile", "fields": profile_of(row), "updated_at": row[2]}
    for system, original_id, public_id in connection.execute(
        "SELECT system, original_id, public_id FROM origins ORDER BY system, original_id"
    ):
        yield {
            "type": "origin", "system": system, "original_id": original_id, "public_id": public_id,
        }  # fmt: skip


def _plain(name: str, value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    return msgspec.json.decode(value) if name in _JSON else value


def _stored(name: str, value: Any) -> Any:
    if name == "sameness" and value is not None:
        return bytes.fromhex(value)
    return msgspec.json.encode(value).decode() if name in _JSON else value


def _take(changes: Changes, record: Record) -> bool:
    """Keep a record; False when the bank has it, or something in its place."""
    match record:
        case ItemRecord():
            return _take_item(changes, record)
        case DocumentRecord():
            return _take_document(changes, record)
        case EvidenceRecord():
            return _take_evidence(changes, record)
        case ProfileRecord():
            return _take_profile(changes, record)
        case OriginRecord():
            return _take_origin(changes, record)
        case _:
            assert_never(record)


def _take_item(changes: Changes, record: ItemRecord) -> bool:
    connection = changes.connection
    if _has(connection, "items", record.public_id):
        return False
    if record.document is not None and not _has(connection, "documents", record.document):
        return False  # the bank has another version of this document
    values = [
        as_stored(name, _stored(name, getattr(record, name))) if name in _ITEM_FIELDS else None
        for name in COLUMNS
    ]
    values[0] = 0
    for column in ("sameness", "key"):
        at = COLUMNS.index(column)
        existing = connection.execute(
            f"SELECT 1 FROM items WHERE kind = ? AND {column} = ? AND {LIVE}",
            (record.kind, values[at]),
        ).fetchone()
        if existing is not None:
            return False  # the bank has an equal item, or a newer one with the same key
    insert_row(
        changes,
        Prepared(values=tuple(values), tokens=tokens_of(values)),
        document=record.document,
        position=record.position,
    )
    return True


def _has(connection: Connection, table: str, id: str) -> bool:
    row = connection.execute(f"SELECT 1 FROM {table} WHERE public_id = ?", (id,)).fetchone()
    return row is not None


def _take_document(changes: Changes, record: DocumentRecord) -> bool:
    connection = changes.connection
    known = connection.execute(
        "SELECT 1 FROM documents WHERE public_id = ? OR (source = ? AND source_id = ?)",
        (record.public_id, record.source, record.source_id),
    ).fetchone()
    if known is not None:
        return False
    row = [changes.next(), *(_stored(name, getattr(record, name)) for name in _DOCUMENT_FIELDS)]
    marks = ", ".join("?" * (len(row) + 1))
    connection.execute(
        f"INSERT INTO documents ({', '.join(DOCUMENT_COLUMNS)}, digest) VALUES ({marks})",
        (*row, digest_of(row)),
    )
    return True


def _take_evidence(changes: Changes, record: EvidenceRecord) -> bool:
    return bool(
        changes.connection.execute(
            "INSERT OR IGNORE INTO evidence (card, snippet, session, item)"
            " SELECT id, ?, ?, ? FROM items WHERE public_id = ?",
            (record.snippet, record.session, record.item, record.card),
        ).rowcount
    )


def _take_profile(changes: Changes, record: ProfileRecord) -> bool:
    fields = msgspec.json.encode(record.fields).decode()
    row = (record.fields.agent_role, fields, record.updated_at)
    return bool(
        changes.connection.execute(
            "INSERT OR IGNORE INTO profiles (agent_role, fields, updated_at, digest)"
            " VALUES (?, ?, ?, ?)",
            (*row, digest_of(row)),
        ).rowcount
    )


def _take_origin(changes: Changes, record: OriginRecord) -> bool:
    return bool(
        changes.connection.execute(
            "INSERT OR IGNORE INTO origins (system, original_id, public_id) VALUES (?, ?, ?)",
            (record.system, record.original_id, record.public_id),
        ).rowcount
    )

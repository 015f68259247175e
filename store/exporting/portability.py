"""Export and import of a bank as a file of JSON lines.

    {"format": "recalld-bank", "version": 1, "bank": "work"}
    {"type": "document", …}   {"type": "item", …}   {"type": "evidence", …}   {"type": "profile", …}
    {"type": "end", "records": 3, "digest": "…"}

The file holds all live items in the order in which they were put, without rowids, so exporting an
imported bank gives the same bytes. The last line holds a digest of the lines before it. Vectors are
not exported; they are computed again. An import verifies the whole file before it writes anything,
and can be repeated: existing items are not changed. docs/export-format.md describes every line.
"""

import os
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, assert_never

import msgspec
import orjson
from msgspec.structs import asdict, replace

from store.database import Connection
from store.engine import Progress
from store.errors import ImportRefused
from store.exporting.export_format import (
    LINE_LIMIT,
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
    is_plain_line,
    present_sameness,
    type_of,
)
from store.exporting.export_writer import ExportWriter, exported
from store.files import PRIVATE_FILE, sync_directory
from store.model import Exported
from store.rows.documents import DOCUMENTS, DocumentRow
from store.rows.items import ITEMS, LIVE, SELECT, ItemRow
from store.rows.memories import insert_known
from store.rows.prepared import Prepared, encode_provenance, tokens_of
from store.rows.skills import PROFILES, profile_of, profile_row
from store.rows.transaction import WriteTransaction


def export(
    connection: Connection,
    bank: str,
    path: Path,
    progress: Progress | None = None,
    rowids: Sequence[int] | None = None,
) -> Exported:
    """Write the bank to a private file, which appears only when it is complete.

    With `rowids`, only these items are written, with the documents of chunks and the evidence of
    cards.
    """
    temporary = path.with_name(f".{path.name[:200]}.{secrets.token_hex(4)}.tmp")
    try:
        descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE_FILE)
        with os.fdopen(descriptor, "wb") as file:
            writer = ExportWriter(file, bank)
            total = _count(connection) if progress is not None else 0
            for record in _records(connection, rowids):
                writer.write(record)
                if progress is not None:
                    progress(writer.records, total)
            digest = writer.finish()
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_directory(path.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return Exported(bank=bank, records=writer.records, digest=digest)


class Verified(NamedTuple):
    """A file that can be imported: its records, and whether its lines were changed by hand."""

    records: int
    is_edited: bool


def verify(path: Path) -> Verified:
    """Read and check a whole file without importing it.

    Every line must be valid. The digest only detects damage in transport: a file whose lines do not
    fit it was edited, and is accepted. A file without an end was cut, and is refused. Only the ids
    of documents are kept in memory, because chunks refer to them.
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
                if file.read(1):
                    raise ImportRefused("file", "goes on after its end")
                is_edited = record != End(records=count, digest=digest.hexdigest())
                return Verified(count, is_edited)
            check_record(record, number, documents, is_plain=is_plain_line(line))
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


class Batch(NamedTuple):
    """Some records, and the rows and tokens of the items among them, by their ids."""

    records: list[Record]
    rows: dict[str, Prepared]


def batches(path: Path, size: int, *, is_edited: bool = False) -> Iterator[Batch]:
    """The records of a verified file, in batches. Edited items get the hash of their content.

    Rows and tokens are computed here, so that a thread can do it while another one writes.
    """
    records = records_of(path)
    while some := list(islice(records, size)):
        if is_edited:
            some = [_rehashed(record) for record in some]
        rows = {
            record.public_id: prepared(record) for record in some if isinstance(record, ItemRecord)
        }
        yield Batch(some, rows)


def _rehashed(record: Record) -> Record:
    if isinstance(record, ItemRecord):
        return replace(record, sameness=present_sameness(record))
    return record


def prepared(record: ItemRecord) -> Prepared:
    """The row and the tokens of an item that is imported."""
    row = _row_of(record)
    return Prepared(row=row, tokens=tokens_of(row), is_fresh=True)


class Tally(NamedTuple):
    """How many records of each type were new and how many were known. Chunks are a type here."""

    created: Counter[str]
    known: Counter[str]


def take(changes: WriteTransaction, batch: Batch) -> Tally:
    """Import records in their order."""
    tally = Tally(Counter(), Counter())
    known = _known_ids(changes.connection, batch.records)
    for record in batch.records:
        if isinstance(record, ItemRecord):
            id = record.public_id
            is_new = id not in known and _take_item(changes, record, batch.rows[id])
            known.add(id)
        else:
            is_new = _take(changes, record)
        outcome = tally.created if is_new else tally.known
        outcome[type_of(record)] += 1
    return tally


def _known_ids(connection: Connection, records: Iterable[Record]) -> set[str]:
    """Those ids of these items that the bank has already."""
    ids = [record.public_id for record in records if isinstance(record, ItemRecord)]
    found = connection.execute(
        f"SELECT public_id FROM items WHERE public_id IN ({connection.dialect.texts})",
        (orjson.dumps(ids).decode(),),
    )
    return {id for (id,) in found}


def compare(connection: Connection, records: Iterable[Record]) -> Tally:
    """Count how many records an import would create, without writing anything."""
    tally = Tally(Counter(), Counter())
    for record in records:
        outcome = tally.known if _is_known(connection, record) else tally.created
        outcome[type_of(record)] += 1
    return tally


def tally_all_new(records: Iterable[Record]) -> Tally:
    """The comparison with a bank that does not exist."""
    return Tally(Counter(map(type_of, records)), Counter())


def _is_known(connection: Connection, record: Record) -> bool:
    match record:
        case ItemRecord():
            return _has(connection, "items", record.public_id) or _has_equal(connection, record)
        case DocumentRecord():
            return _has_document(connection, record)
        case EvidenceRecord():
            found = connection.execute(
                "SELECT 1 FROM evidence JOIN items ON items.id = evidence.card"
                " WHERE items.public_id = ? AND snippet = ? AND evidence.session = ?",
                (record.card, record.snippet, record.session),
            )
        case ProfileRecord():
            found = connection.execute(
                "SELECT 1 FROM profiles WHERE agent_role = ?", (record.fields.agent_role,)
            )
        case OriginRecord():
            found = connection.execute(
                "SELECT 1 FROM origins WHERE system = ? AND original_id = ?",
                (record.system, record.original_id),
            )
        case _:
            assert_never(record)
    return found.fetchone() is not None


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


def _records(
    connection: Connection, rowids: Sequence[int] | None = None
) -> Iterator[dict[str, Any]]:
    """The records of the bank, or those of some items."""
    chosen, documents, values = "", "", []
    if rowids is not None:
        chosen = f" AND items.id IN ({connection.dialect.numbers})"
        documents = f" WHERE public_id IN (SELECT document FROM items WHERE {LIVE}{chosen})"
        values = [orjson.dumps(rowids).decode()]
    for columns in connection.execute(f"{DOCUMENTS.select}{documents} ORDER BY id", values):
        yield {"type": "document"} | exported(DOCUMENTS.read(columns))
    for columns in connection.execute(f"{SELECT} WHERE {LIVE}{chosen} ORDER BY items.id", values):
        yield {"type": "item"} | exported(ITEMS.read(columns))
    for card, snippet, session, item in connection.execute(
        "SELECT items.public_id, snippet, evidence.session, item FROM evidence"
        f" JOIN items ON items.id = evidence.card WHERE {LIVE}{chosen}"
        " ORDER BY items.id, snippet, evidence.session",
        values,
    ):
        yield {
            "type": "evidence", "card": card, "snippet": snippet, "session": session, "item": item,
        }  # fmt: skip
    if rowids is not None:
        return
    for columns in connection.execute(f"{PROFILES.select} ORDER BY agent_role"):
        row = PROFILES.read(columns)
        fields = msgspec.to_builtins(profile_of(row))
        yield {"type": "profile", "fields": fields, "updated_at": row.updated_at}
    for system, original_id, public_id in connection.execute(
        "SELECT system, original_id, public_id FROM origins ORDER BY system, original_id"
    ):
        yield {
            "type": "origin", "system": system, "original_id": original_id, "public_id": public_id,
        }  # fmt: skip


def _row_of(record: ItemRecord) -> ItemRow:
    """The row of an item that is imported."""
    return ItemRow(
        id=0,
        public_id=record.public_id,
        kind=record.kind,
        title=record.title,
        text=record.text,
        context=record.context,
        category=record.category,
        status=record.status,
        level=record.level,
        # SQLite returns 0.0 for -0.0, and the digest must match.
        confidence=None if record.confidence is None else record.confidence + 0.0,
        salience=None if record.salience is None else record.salience + 0.0,
        session=record.session,
        document=record.document,
        position=record.position,
        source=record.source,
        user=record.user,
        role=record.role,
        actor=record.actor,
        event_type=record.event_type,
        key=record.key,
        tags=_json(record.tags),
        metadata=_json(record.metadata),
        details=_json(record.details),
        provenance=encode_provenance(record.provenance),
        occurred_at=record.occurred_at,
        created_at=record.created_at,
        updated_at=record.updated_at,
        superseded_by=record.superseded_by,
        repeats=record.repeats,
        forgotten_at=None,
        forgotten_by=None,
        sameness=None if record.sameness is None else bytes.fromhex(record.sameness),
    )


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()


def _take(
    changes: WriteTransaction,
    record: DocumentRecord | EvidenceRecord | ProfileRecord | OriginRecord,
) -> bool:
    """Keep a record; False when the bank has it, or something in its place."""
    match record:
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


def _take_item(changes: WriteTransaction, record: ItemRecord, row: Prepared) -> bool:
    """Insert an item whose id the bank does not have, unless something is in its place."""
    connection = changes.connection
    if record.document is not None and not _has(connection, "documents", record.document):
        return False  # the bank has another version of this document
    if _has_equal(connection, record):
        return False
    insert_known(changes, row)
    return True


def _has_equal(connection: Connection, record: ItemRecord) -> bool:
    """Whether the bank has an equal item, or a newer one with the same key."""
    sameness = None if record.sameness is None else bytes.fromhex(record.sameness)
    for column, value in (("sameness", sameness), ("key", record.key)):
        if value is None:
            continue
        existing = connection.execute(
            f"SELECT 1 FROM items WHERE kind = ? AND {column} = ? AND {LIVE}", (record.kind, value)
        ).fetchone()
        if existing is not None:
            return True
    return False


def has_item(connection: Connection, id: str) -> bool:
    """Whether the bank has an item with this id, forgotten or not."""
    return _has(connection, "items", id)


def _has(connection: Connection, table: str, id: str) -> bool:
    row = connection.execute(f"SELECT 1 FROM {table} WHERE public_id = ?", (id,)).fetchone()
    return row is not None


def _take_document(changes: WriteTransaction, record: DocumentRecord) -> bool:
    connection = changes.connection
    if _has_document(connection, record):
        return False
    fields: dict[str, Any] = {**asdict(record), "metadata": _json(record.metadata)}
    DOCUMENTS.insert(connection, DocumentRow(id=changes.next(), **fields))
    return True


def _has_document(connection: Connection, record: DocumentRecord) -> bool:
    known = connection.execute(
        "SELECT 1 FROM documents WHERE public_id = ? OR (source = ? AND source_id = ?)",
        (record.public_id, record.source, record.source_id),
    ).fetchone()
    return known is not None


def _take_evidence(changes: WriteTransaction, record: EvidenceRecord) -> bool:
    return bool(
        changes.connection.execute(
            "INSERT INTO evidence (card, snippet, session, item)"
            " SELECT id, ?, ?, ? FROM items WHERE public_id = ? ON CONFLICT DO NOTHING",
            (record.snippet, record.session, record.item, record.card),
        ).rowcount
    )


def _take_profile(changes: WriteTransaction, record: ProfileRecord) -> bool:
    row = profile_row(record.fields, record.updated_at)
    return bool(
        changes.connection.execute(
            f"{PROFILES.insert_statement} ON CONFLICT DO NOTHING", PROFILES.written(row)
        ).rowcount
    )


def _take_origin(changes: WriteTransaction, record: OriginRecord) -> bool:
    return bool(
        changes.connection.execute(
            "INSERT INTO origins (system, original_id, public_id) VALUES (?, ?, ?)"
            " ON CONFLICT DO NOTHING",
            (record.system, record.original_id, record.public_id),
        ).rowcount
    )

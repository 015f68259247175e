"""A bank as a file anybody can read: JSON lines, each a record, the last one a digest of the rest.

    {"format": "recalld-bank", "version": 1, "bank": "work"}
    {"type": "document", …}   {"type": "item", …}   {"type": "evidence", …}   {"type": "profile", …}
    {"type": "end", "records": 3, "digest": "…"}

Everything that can be found is in it, in the order it was put, without rowids: exporting what was
imported gives the same bytes. Vectors are not in it, they are made again. An import looks at the
whole file before it writes a line of it, and may be run again: what is there already stays.
"""

import os
import secrets
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Final, assert_never

import msgspec
import orjson
from msgspec import Meta, Struct
from msgspec.structs import asdict

from store.engine import Progress
from store.errors import ImportRefused, InvalidInput
from store.model import DOCUMENT_LIMIT, TEXT_LIMIT, AgentProfile, Exported, Kind, Provenance
from store.sqlite.database import Connection
from store.sqlite.files import PRIVATE_FILE, sync_directory
from store.sqlite.rows.details import check_details
from store.sqlite.rows.documents import DOCUMENTS, DocumentRow
from store.sqlite.rows.items import ITEMS, LIVE, SELECT, ItemRow
from store.sqlite.rows.memories import insert_row
from store.sqlite.rows.prepared import Prepared, encode_provenance, tokens_of
from store.sqlite.rows.skills import PROFILES, check_profile, profile_of, profile_row
from store.sqlite.rows.transaction import WriteTransaction
from store.validate import check_finite, check_share, check_text, check_time, encode_json

FORMAT: Final = "recalld-bank"
VERSION: Final = 1
LINE_LIMIT: Final = 64 * 1024 * 1024

# Columns that are not exported: row numbers and the state of a forget.
_PRIVATE: Final = frozenset(("id", "forgotten_at", "forgotten_by"))
_JSON: Final = frozenset(("tags", "metadata", "details", "provenance"))

Whole = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Id = Annotated[str, Meta(min_length=1)]
Sameness = Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]


class _Line(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type"):
    """A line says which type it is, has every field of it and no other."""


class ItemRecord(_Line, frozen=True, tag="item"):
    """An item, column by column."""

    public_id: Id
    kind: Kind
    title: str
    text: str
    context: str | None
    category: str | None
    status: str | None
    level: str | None
    confidence: float | None
    salience: float | None
    session: str | None
    document: str | None
    position: Count | None
    source: str | None
    user: str | None
    role: str | None
    actor: str | None
    event_type: str | None
    key: str | None
    tags: list[str]
    metadata: dict[str, Any]
    details: dict[str, Any]
    provenance: Provenance
    occurred_at: Whole
    created_at: Whole
    updated_at: Whole
    superseded_by: str | None
    repeats: Count
    sameness: Sameness | None


class DocumentRecord(_Line, frozen=True, tag="document"):
    """A document, column by column."""

    public_id: Id
    source: Id
    source_id: Id
    title: str
    body: str
    author: str | None
    url: str | None
    content_type: str
    metadata: dict[str, Any]
    created_at: Whole
    updated_at: Whole
    indexed_at: Whole
    run: str | None
    chunks: Count


class EvidenceRecord(_Line, frozen=True, tag="evidence"):
    card: str
    snippet: str
    session: str
    item: str | None


class ProfileRecord(_Line, frozen=True, tag="profile"):
    fields: AgentProfile
    updated_at: Whole


class OriginRecord(_Line, frozen=True, tag="origin"):
    system: str
    original_id: str
    public_id: str


class End(_Line, frozen=True, tag="end"):
    """The last line: how many records there are, and the digest of all lines before."""

    records: int
    digest: str


class Header(Struct, frozen=True):
    format: str
    version: int
    bank: str


Record = ItemRecord | DocumentRecord | EvidenceRecord | ProfileRecord | OriginRecord

_header: Final = msgspec.json.Decoder(Header).decode
_line: Final[msgspec.json.Decoder[Record | End]] = msgspec.json.Decoder(Record | End)


def export(
    connection: Connection, bank: str, path: Path, progress: Progress | None = None
) -> Exported:
    """Write the bank to a file that only its owner can read; it is whole or not there."""
    temporary = path.with_name(f".{path.name[:200]}.{secrets.token_hex(4)}.tmp")  # nobody's yet
    digest = blake2b(digest_size=32)
    records = 0
    try:
        descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE_FILE)
        with os.fdopen(descriptor, "wb") as file:

            def write(record: dict[str, Any]) -> None:
                line = orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)
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
    """Read a file through to its end without taking anything: how many records it has.

    Every record is looked at, so that a file is refused before a line of it is taken. Of the
    records only the ids of documents are kept meanwhile, which their chunks refer to.
    """
    digest = blake2b(digest_size=32)
    documents: set[str] = set()
    count = 0
    with path.open("rb") as file:
        first = file.readline(LINE_LIMIT)
        _check_header(first)
        digest.update(first)
        for number, line in enumerate(iter(lambda: file.readline(LINE_LIMIT), b""), start=2):
            record = _decode(line, number)
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
            record = _decode(line, number)
            if isinstance(record, End):
                return
            yield record


def batches(path: Path, size: int) -> Iterator[list[Record]]:
    """The records of a verified file, some at a time."""
    records = records_of(path)
    while batch := list(islice(records, size)):
        yield batch


def take(changes: WriteTransaction, records: Iterable[Record]) -> tuple[int, int]:
    """Keep some records, in their order: how many were new, and how many there already."""
    created = known = 0
    for record in records:
        if _take(changes, record):
            created += 1
        else:
            known += 1
    return created, known


def check_record(record: Record, number: int, documents: set[str]) -> None:
    """Refuse a record that could not have come from an export; its types are right already.

    `documents` are the ids of those before it in the file; a document adds its own.
    """
    try:
        _check_values(record)
        match record:
            case ItemRecord():
                _check_item(record, documents)
            case DocumentRecord():
                documents.add(record.public_id)
            case ProfileRecord():
                check_profile(record.fields)
            case EvidenceRecord() | OriginRecord():
                pass
            case _:
                assert_never(record)
    except InvalidInput as error:
        raise ImportRefused("file", f"line {number}: {error}") from error


def _check_values(record: Record) -> None:
    """What holds for a field of any record, by its type and name."""
    limit = DOCUMENT_LIMIT if isinstance(record, DocumentRecord) else TEXT_LIMIT
    for name in record.__struct_fields__:
        value: Any = getattr(record, name)
        if isinstance(value, str):
            check_text(name, value, limit=limit)
        elif isinstance(value, dict | list):
            encode_json(name, value)  # pyright: ignore[reportUnknownArgumentType]  # any JSON
        elif name.endswith("_at"):
            check_time(name, value)


def _check_item(item: ItemRecord, documents: set[str]) -> None:
    check_share("confidence", item.confidence)
    check_finite("salience", item.salience)
    check_details(item.kind, item.details)
    encode_provenance(item.provenance)
    if (item.kind == "chunk") != (item.document is not None):
        raise InvalidInput("document", "must be there for a chunk and for nothing else")
    if item.document is not None and item.document not in documents:
        raise InvalidInput("document", "must be a document that comes before it in the file")


def _count(connection: Connection) -> int:
    """How many records there will be, for who waits for them."""
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
    for columns in connection.execute(f"{DOCUMENTS.select} ORDER BY id"):
        yield {"type": "document"} | _exported(DOCUMENTS.read(columns))
    for columns in connection.execute(f"{SELECT} WHERE {LIVE} ORDER BY items.id"):
        yield {"type": "item"} | _exported(ITEMS.read(columns))
    for card, snippet, session, item in connection.execute(
        "SELECT items.public_id, snippet, evidence.session, item FROM evidence"
        f" JOIN items ON items.id = evidence.card WHERE {LIVE}"
        " ORDER BY items.id, snippet, evidence.session"
    ):
        yield {
            "type": "evidence", "card": card, "snippet": snippet, "session": session, "item": item,
        }  # fmt: skip
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


def _exported(row: DocumentRow | ItemRow) -> dict[str, Any]:
    return {
        name: _plain(name, value) for name, value in asdict(row).items() if name not in _PRIVATE
    }


def _plain(name: str, value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    return orjson.loads(value) if name in _JSON else value


def _imported(record: ItemRecord | DocumentRecord) -> dict[str, Any]:
    """The columns of a record, without the private ones."""
    return {name: _stored(name, value) for name, value in asdict(record).items()}


def _stored(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name == "sameness":
        return bytes.fromhex(value)
    if isinstance(value, float):
        return value + 0.0  # SQLite returns 0.0 for -0.0, and the digest must match
    if name == "provenance":
        return encode_provenance(value)
    return orjson.dumps(value).decode() if name in _JSON else value


def _take(changes: WriteTransaction, record: Record) -> bool:
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


def _take_item(changes: WriteTransaction, record: ItemRecord) -> bool:
    connection = changes.connection
    if _has(connection, "items", record.public_id):
        return False
    if record.document is not None and not _has(connection, "documents", record.document):
        return False  # a chunk of a version of a document that the bank has in a version of its own
    row = ItemRow(id=0, forgotten_at=None, forgotten_by=None, **_imported(record))
    for column, value in (("sameness", row.sameness), ("key", row.key)):
        twin = connection.execute(
            f"SELECT 1 FROM items WHERE kind = ? AND {column} = ? AND {LIVE}", (row.kind, value)
        ).fetchone()
        if twin is not None:
            return False  # the same thing under an id of our own, or a newer one under its key
    insert_row(
        changes,
        Prepared(row=row, tokens=tokens_of(row)),
        document=record.document,
        position=record.position,
    )
    return True


def _has(connection: Connection, table: str, id: str) -> bool:
    row = connection.execute(f"SELECT 1 FROM {table} WHERE public_id = ?", (id,)).fetchone()
    return row is not None


def _take_document(changes: WriteTransaction, record: DocumentRecord) -> bool:
    connection = changes.connection
    known = connection.execute(
        "SELECT 1 FROM documents WHERE public_id = ? OR (source = ? AND source_id = ?)",
        (record.public_id, record.source, record.source_id),
    ).fetchone()
    if known is not None:
        return False
    DOCUMENTS.insert(connection, DocumentRow(id=changes.next(), **_imported(record)))
    return True


def _take_evidence(changes: WriteTransaction, record: EvidenceRecord) -> bool:
    return bool(
        changes.connection.execute(
            "INSERT OR IGNORE INTO evidence (card, snippet, session, item)"
            " SELECT id, ?, ?, ? FROM items WHERE public_id = ?",
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
            "INSERT OR IGNORE INTO origins (system, original_id, public_id) VALUES (?, ?, ?)",
            (record.system, record.original_id, record.public_id),
        ).rowcount
    )


def _check_header(line: bytes) -> None:
    try:
        header = _header(line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        header = Header(format="", version=0, bank="")
    if header.format != FORMAT:
        raise ImportRefused("file", f"does not begin with a line of format {FORMAT!r}")
    if header.version != VERSION:
        raise ImportRefused("file", f"has version {header.version!r}, not {VERSION}")


def _decode(line: bytes, number: int) -> Record | End:
    if len(line) >= LINE_LIMIT:
        raise ImportRefused("file", f"line {number}: is longer than {LINE_LIMIT} bytes")
    try:
        return _line.decode(line)
    except msgspec.ValidationError as error:
        raise ImportRefused("file", f"line {number}: {error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ImportRefused("file", f"line {number}: is not a JSON object") from error

"""A bank as a file anybody can read: JSON lines, each a record, the last one a digest of the rest.

    {"format": "recalld-bank", "version": 1, "bank": "work"}
    {"type": "document", …}   {"type": "item", …}   {"type": "evidence", …}   {"type": "profile", …}
    {"type": "end", "records": 3, "digest": "…"}

Everything that can be found is in it, in the order it was put, without rowids: exporting what was
imported gives the same bytes. Vectors are not in it, they are made again. An import looks at the
whole file before it writes a line of it, and may be run again: what is there already stays.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any, Final

import msgspec

from store.database import Connection
from store.documents import DOCUMENT_COLUMNS, document_of
from store.engine import Progress
from store.errors import ImportRefused, InvalidInput
from store.files import PRIVATE_FILE, sync_directory
from store.items import COLUMNS, LIVE, SELECT, digest_of, item_of
from store.memories import Changes, Prepared, insert_row, tokens_of
from store.model import DOCUMENT_LIMIT, TEXT_LIMIT, Exported
from store.validate import check_text, check_time, encode_json

FORMAT: Final = "recalld-bank"
VERSION: Final = 1
LINE_LIMIT: Final = 64 * 1024 * 1024

_DOCUMENTS: Final = f"SELECT {', '.join(DOCUMENT_COLUMNS)}, digest FROM documents ORDER BY id"
# Not for elsewhere: our own numbering, what is forgotten, and what is derived.
_PRIVATE: Final = ("id", "forgotten_at", "forgotten_by")
_JSON: Final = ("tags", "metadata", "details", "provenance")
_ITEM_FIELDS: Final = tuple(name for name in COLUMNS if name not in _PRIVATE)
_DOCUMENT_FIELDS: Final = tuple(name for name in DOCUMENT_COLUMNS if name != "id")

Record = dict[str, Any]


def export(
    connection: Connection, bank: str, path: Path, progress: Progress | None = None
) -> Exported:
    """Write the bank to a file that only its owner can read; it is whole or not there."""
    temporary = path.with_name(path.name + ".tmp")
    temporary.unlink(missing_ok=True)
    digest = blake2b(digest_size=32)
    records = 0
    try:
        descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE_FILE)
        with os.fdopen(descriptor, "wb") as file:

            def write(record: Record) -> None:
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
    """Read a file through to its end without taking anything: how many records it has."""
    digest = blake2b(digest_size=32)
    count = 0
    with path.open("rb") as file:
        header = _decode(file.readline(LINE_LIMIT), 1)
        if header.get("format") != FORMAT:
            raise ImportRefused("file", f"does not begin with a line of format {FORMAT!r}")
        if header.get("version") != VERSION:
            raise ImportRefused("file", f"has version {header.get('version')!r}, not {VERSION}")
        digest.update(msgspec.json.encode(header) + b"\n")
        for number, line in enumerate(iter(lambda: file.readline(LINE_LIMIT), b""), start=2):
            record = _decode(line, number)
            if record.get("type") == "end":
                if record != {"type": "end", "records": count, "digest": digest.hexdigest()}:
                    raise ImportRefused("file", "was changed or cut: its digest does not fit")
                if file.read(1):
                    raise ImportRefused("file", "goes on after its end")
                return count
            check_record(record, number)
            digest.update(line)
            count += 1
    raise ImportRefused("file", "is cut: it has no end")


def records_of(path: Path) -> Iterator[Record]:
    """The records of a verified file."""
    with path.open("rb") as file:
        file.readline(LINE_LIMIT)
        for number, line in enumerate(file, start=2):
            record = _decode(line, number)
            if record["type"] == "end":
                return
            yield record


def batches(path: Path, size: int) -> Iterator[list[Record]]:
    """The records of a verified file, some at a time."""
    records = records_of(path)
    while batch := list(islice(records, size)):
        yield batch


def take(changes: Changes, records: Iterable[Record]) -> tuple[int, int]:
    """Keep some records, in their order: how many were new, and how many there already."""
    created = known = 0
    for record in records:
        if _TAKE[record["type"]](changes, record):
            created += 1
        else:
            known += 1
    return created, known


def check_record(record: Record, number: int) -> None:
    """Refuse a record that could not have come from an export."""
    fields = {
        "item": _ITEM_FIELDS,
        "document": _DOCUMENT_FIELDS,
        "evidence": ("card", "snippet", "session", "item"),
        "profile": ("fields", "updated_at"),
        "origin": ("system", "original_id", "public_id"),
    }.get(str(record.get("type")))
    where = f"line {number}"
    if fields is None:
        raise ImportRefused("file", f"{where}: is a record of no known type")
    if set(record) != {"type", *fields}:
        raise ImportRefused("file", f"{where}: has not the fields of this type")
    limit = DOCUMENT_LIMIT if record["type"] == "document" else TEXT_LIMIT
    for name, value in record.items():
        try:
            if isinstance(value, str):
                check_text(name, value, limit=limit)
            elif isinstance(value, dict | list):
                encode_json(name, value)  # pyright: ignore[reportUnknownArgumentType]  # any JSON
            elif name.endswith("_at"):
                check_time(name, value)
        except InvalidInput as error:
            raise ImportRefused("file", f"{where}: {error}") from error


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


def _records(connection: Connection) -> Iterator[Record]:
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
    for fields, updated_at in connection.execute(
        "SELECT fields, updated_at FROM profiles ORDER BY agent_role"
    ):
        yield {"type": "profile", "fields": msgspec.json.decode(fields), "updated_at": updated_at}
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


def _take_item(changes: Changes, record: Record) -> bool:
    connection = changes.connection
    id = record["public_id"]
    if connection.execute("SELECT 1 FROM items WHERE public_id = ?", (id,)).fetchone():
        return False
    values = [_stored(name, record[name]) if name in _ITEM_FIELDS else None for name in COLUMNS]
    values[0] = 0
    for column in ("sameness", "key"):
        at = COLUMNS.index(column)
        twin = connection.execute(
            f"SELECT 1 FROM items WHERE kind = ? AND {column} = ? AND {LIVE}",
            (record["kind"], values[at]),
        ).fetchone()
        if twin is not None:
            return False  # the same thing under an id of our own, or a newer one under its key
    insert_row(
        changes,
        Prepared(values=tuple(values), tokens=tokens_of(values)),
        document=record["document"],
        position=record["position"],
    )
    return True


def _take_document(changes: Changes, record: Record) -> bool:
    connection = changes.connection
    known = connection.execute(
        "SELECT 1 FROM documents WHERE public_id = ? OR (source = ? AND source_id = ?)",
        (record["public_id"], record["source"], record["source_id"]),
    ).fetchone()
    if known is not None:
        return False
    row = [changes.next(), *(_stored(name, record[name]) for name in _DOCUMENT_FIELDS)]
    marks = ", ".join("?" * (len(row) + 1))
    connection.execute(
        f"INSERT INTO documents ({', '.join(DOCUMENT_COLUMNS)}, digest) VALUES ({marks})",
        (*row, digest_of(row)),
    )
    return True


def _take_evidence(changes: Changes, record: Record) -> bool:
    return bool(
        changes.connection.execute(
            "INSERT OR IGNORE INTO evidence (card, snippet, session, item)"
            " SELECT id, ?, ?, ? FROM items WHERE public_id = ?",
            (record["snippet"], record["session"], record["item"], record["card"]),
        ).rowcount
    )


def _take_profile(changes: Changes, record: Record) -> bool:
    fields = msgspec.json.encode(record["fields"]).decode()
    row = (record["fields"]["agent_role"], fields, record["updated_at"])
    return bool(
        changes.connection.execute(
            "INSERT OR IGNORE INTO profiles (agent_role, fields, updated_at, digest)"
            " VALUES (?, ?, ?, ?)",
            (*row, digest_of(row)),
        ).rowcount
    )


def _take_origin(changes: Changes, record: Record) -> bool:
    return bool(
        changes.connection.execute(
            "INSERT OR IGNORE INTO origins (system, original_id, public_id) VALUES (?, ?, ?)",
            (record["system"], record["original_id"], record["public_id"]),
        ).rowcount
    )


_TAKE: Final[dict[str, Callable[[Changes, Record], bool]]] = {
    "item": _take_item,
    "document": _take_document,
    "evidence": _take_evidence,
    "profile": _take_profile,
    "origin": _take_origin,
}


def _decode(line: bytes, number: int) -> Record:
    if len(line) >= LINE_LIMIT:
        raise ImportRefused("file", f"line {number}: is longer than {LINE_LIMIT} bytes")
    try:
        return msgspec.json.decode(line, type=Record)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ImportRefused("file", f"line {number}: is not a JSON object") from error

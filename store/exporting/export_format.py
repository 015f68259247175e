"""The lines of an exported bank: their types, and the checks for a file that is to be imported."""

from collections.abc import Iterable
from typing import Annotated, Any, Final, assert_never, cast

import msgspec
from msgspec import Meta, Struct

from store.errors import ImportRefused, InvalidInput
from store.model import (
    DOCUMENT_LIMIT,
    METADATA_LIMIT,
    TEXT_LIMIT,
    AgentProfile,
    Kind,
    NewMemory,
    Provenance,
)
from store.rows.details import check_details
from store.rows.prepared import encode_provenance, sameness
from store.rows.skills import check_profile
from store.validate import check_finite, check_share, check_text, check_time, encode_json

FORMAT: Final = "recalld-bank"
VERSION: Final = 1
LINE_LIMIT: Final = 64 * 1024 * 1024

Whole = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Id = Annotated[str, Meta(min_length=1)]
Sameness = Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]


class _Line(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type"):
    """A line has a type, every field of that type, and no other field."""


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
    """The last line: the number of records, and the digest of all lines before it."""

    records: int
    digest: str


class ExportHeader(Struct, frozen=True):
    """The first line of a file."""

    format: str
    version: int
    bank: str


Record = ItemRecord | DocumentRecord | EvidenceRecord | ProfileRecord | OriginRecord

#: The fields of an item that its hash covers, besides its time.
_HASHED: Final = (
    "kind", "title", "text", "context", "category", "user", "role", "actor", "event_type", "tags",
    "metadata", "session", "key",
)  # fmt: skip

_header: Final = msgspec.json.Decoder(ExportHeader).decode
_line: Final[msgspec.json.Decoder[Record | End]] = msgspec.json.Decoder(Record | End)


def type_of(record: Record) -> str:
    """The type of a record in reports: a chunk is told apart from the other items."""
    if isinstance(record, ItemRecord) and record.kind == "chunk":
        return "chunk"
    return str(record.__struct_config__.tag)


def present_sameness(record: ItemRecord) -> str | None:
    """The content hash of an item that may have been edited by hand.

    The hash covers the time of an item only if the caller had given one, so the stored hash is kept
    if it fits the content with or without its time.
    """
    if record.sameness is None:
        return None
    fields = {name: getattr(record, name) for name in _HASHED}
    fits = [
        hash.hex()
        for occurred_at in (None, record.occurred_at)
        if (hash := sameness(NewMemory(**fields, occurred_at=occurred_at))) is not None
    ]
    return record.sameness if record.sameness in fits else fits[0] if fits else None


def check_record(
    record: Record, number: int, documents: set[str], *, is_plain: bool = False
) -> None:
    """Refuse a record that no export could have written. The types of its fields are valid.

    `documents` holds the ids of all documents before it in the file; a document adds its own.
    `is_plain` is the result of `is_plain_line` for its line.
    """
    try:
        _check_values(record, is_plain=is_plain)
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


def is_plain_line(line: bytes) -> bool:
    """Whether every text of a valid line can be stored.

    A text that cannot be stored is too long, or contains U+0000 or a surrogate, and JSON spells
    these with an escape.
    """
    return len(line) <= METADATA_LIMIT and b"\\u" not in line


def _check_values(record: Record, *, is_plain: bool) -> None:
    """Check the rules that hold for all records, by the type and name of a field."""
    limit = DOCUMENT_LIMIT if isinstance(record, DocumentRecord) else TEXT_LIMIT
    for name in record.__struct_fields__:
        value: Any = getattr(record, name)
        if type(value) is str:
            if not is_plain:
                check_text(name, value, limit=limit)
        elif type(value) is dict or type(value) is list:
            if value and not (is_plain and _is_text(value)):
                encode_json(name, value)  # pyright: ignore[reportUnknownArgumentType]  # any JSON
        elif type(value) is int and name.endswith("_at"):
            check_time(name, value)


def _is_text(value: Any) -> bool:
    """Whether a JSON value consists of texts only and is not nested deeply."""
    return all(
        type(each) is str
        or (type(each) is dict and all(type(inner) is str for inner in _members(each)))
        for each in _members(value)
    )


def _members(value: Any) -> Iterable[Any]:
    if type(value) is dict:
        return cast("dict[str, Any]", value).values()
    return cast("list[Any]", value)


def _check_item(item: ItemRecord, documents: set[str]) -> None:
    check_share("confidence", item.confidence)
    check_finite("salience", item.salience)
    check_details(item.kind, item.details)
    encode_provenance(item.provenance)
    if (item.kind == "chunk") != (item.document is not None):
        raise InvalidInput("document", "is required for a chunk and not allowed for anything else")
    if item.document is not None and item.document not in documents:
        raise InvalidInput("document", "must be a document that comes earlier in the file")


def check_header(line: bytes) -> None:
    try:
        header = _header(line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        header = ExportHeader(format="", version=0, bank="")
    if header.format != FORMAT:
        raise ImportRefused("file", f"does not begin with a line of format {FORMAT!r}")
    if header.version != VERSION:
        raise ImportRefused("file", f"has version {header.version!r}, not {VERSION}")


def decode_line(line: bytes, number: int) -> Record | End:
    if len(line) >= LINE_LIMIT:
        raise ImportRefused("file", f"line {number}: is longer than {LINE_LIMIT} bytes")
    try:
        return _line.decode(line)
    except msgspec.ValidationError as error:
        raise ImportRefused("file", f"line {number}: {error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ImportRefused("file", f"line {number}: is not a JSON object") from error

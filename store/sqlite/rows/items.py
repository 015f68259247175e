"""Items as rows: reading them back checked, and asking for some of them.

SQLite has no checksums: a damaged page often still passes its integrity check. So every row
carries a digest over all its columns, and a row becomes an `Item` only through `item_of`, which
compares. What the disk has changed is reported, never returned.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final

import msgspec

from store.errors import NotFound, StorageDamaged
from store.model import Filters, Item, Kind, Provenance
from store.sqlite.database import Connection
from store.validate import finite_float, integer

COLUMNS: Final[tuple[str, ...]] = (
    "id", "public_id", "kind", "title", "text", "context", "category", "status", "level",
    "confidence", "salience", "session", "document", "position", "source", "user", "role",
    "actor", "event_type", "key", "tags", "metadata", "details", "provenance", "occurred_at",
    "created_at", "updated_at", "superseded_by", "repeats", "forgotten_at", "forgotten_by",
    "sameness",
)  # fmt: skip
SELECT: Final = f"SELECT {', '.join(f'items.{name}' for name in COLUMNS)}, items.digest FROM items"
SEARCHED_DETAILS: Final = ("methods", "triggers", "mitigation")
_REALS: Final = frozenset(("confidence", "salience"))
_WHOLES: Final = frozenset(
    ("id", "position", "occurred_at", "created_at", "updated_at", "repeats", "forgotten_at")
)
LIVE: Final = "items.forgotten_at IS NULL"

Row = tuple[Any, ...]

_encode: Final = msgspec.msgpack.Encoder().encode
_tags: Final = msgspec.json.Decoder(tuple[str, ...]).decode
_mapping: Final = msgspec.json.Decoder(dict[str, Any]).decode
_provenance: Final = msgspec.json.Decoder(Provenance).decode


class RowDamaged(StorageDamaged):
    """A stored row is not what was written. `repair` puts it aside."""

    def __init__(self, kind: str, rowid: int) -> None:
        super().__init__(f"stored {kind} number {rowid} is damaged")
        self.rowid = rowid


def digest_of(values: Sequence[Any]) -> bytes:
    """The digest of a row, given its values without the digest itself."""
    return blake2b(_encode(values), digest_size=16).digest()


def as_stored(column: str, value: Any) -> Any:
    """A value as its column gives it back; the digest of a row is over nothing else."""
    if value is None:
        return None
    if column in _REALS:
        return finite_float(column, value)
    return integer(column, value) if column in _WHOLES else value


def is_sound(row: Row) -> bool:
    """Whether a row (with its digest last) is as it was written."""
    try:
        return bool(digest_of(row[:-1]) == row[-1])
    except (TypeError, ValueError, OverflowError):
        return False


def item_of(row: Row) -> Item:
    """The item in a row of `SELECT`, or `RowDamaged`."""
    if not is_sound(row):
        raise RowDamaged("item", row[0])
    return item_from(row)


def item_from(row: Sequence[Any]) -> Item:
    """The item in values that did not come from the disk just now."""
    return Item(
        rowid=row[0],
        id=row[1],
        kind=row[2],
        title=row[3],
        text=row[4],
        context=row[5],
        category=row[6],
        status=row[7],
        level=row[8],
        confidence=row[9],
        salience=row[10],
        session=row[11],
        document=row[12],
        position=row[13],
        source=row[14],
        user=row[15],
        role=row[16],
        actor=row[17],
        event_type=row[18],
        key=row[19],
        tags=_tags(row[20]) if row[20] != "[]" else (),
        metadata=_mapping(row[21]) if row[21] != "{}" else {},
        details=_mapping(row[22]) if row[22] != "{}" else {},
        provenance=_provenance(row[23]),
        occurred_at=row[24],
        created_at=row[25],
        updated_at=row[26],
        superseded_by=row[27],
        repeats=row[28],
    )


def searchable(item: Item) -> str:
    """All of an item that can be found by words: its own texts, labels and kind's details."""
    return _joined(item.title, item.text, item.context, item.tags, item.details)


def searchable_text(title: str, text: str, context: str | None, tags: str, details: str) -> str:
    """The same, out of a row's columns."""
    return _joined(
        title,
        text,
        context,
        _tags(tags) if tags != "[]" else (),
        _mapping(details) if details != "{}" else {},
    )


def _joined(
    title: str, text: str, context: str | None, tags: Iterable[str], details: Mapping[str, Any]
) -> str:
    parts = [title, text, context or "", *tags]
    for name in SEARCHED_DETAILS if details else ():
        detail = details.get(name, "")
        parts += [detail] if isinstance(detail, str) else [str(entry) for entry in detail]
    return "\n".join(part for part in parts if part)


def fetch(connection: Connection, rowids: Sequence[int]) -> Iterator[Row]:
    """The rows of these items that can still be found, in no particular order."""
    for start in range(0, len(rowids), 500):
        some = rowids[start : start + 500]
        marks = ",".join("?" * len(some))
        yield from connection.execute(f"{SELECT} WHERE items.id IN ({marks}) AND {LIVE}", some)


def find(connection: Connection, id: str, *, kind: str | None = None) -> Item:
    """The item a caller knows by this id, or `NotFound`; forgotten ones are not found."""
    row = connection.execute(f"{SELECT} WHERE items.public_id = ? AND {LIVE}", (id,)).fetchone()
    if row is None or (kind is not None and row[2] != kind):
        raise NotFound(kind or "item", id)
    return item_of(row)


def where(filters: Filters, kinds: Iterable[Kind] = ()) -> tuple[str, list[Any]]:
    """A condition on `items` that holds for what may answer, and its parameters.

    Conditions are made of constants only; every value is a bound parameter.
    """
    conditions: list[str] = [LIVE]
    values: list[Any] = []

    def among(column: str, choices: Iterable[str]) -> None:
        some = list(choices)
        if some:
            conditions.append(f"items.{column} IN ({','.join('?' * len(some))})")
            values.extend(some)

    def equal(column: str, value: str | None) -> None:
        if value is not None:
            conditions.append(f"items.{column} = ?")
            values.append(value)

    among("kind", kinds)
    equal("session", filters.session)
    among("source", filters.sources)
    equal("user", filters.user)
    equal("role", filters.role)
    equal("document", filters.document)
    among("category", filters.categories)
    among("status", filters.statuses)
    among("level", filters.levels)
    equal("actor", filters.actor)
    equal("event_type", filters.event_type)
    if filters.since is not None:
        conditions.append("items.occurred_at >= ?")
        values.append(filters.since)
    if filters.until is not None:
        conditions.append("items.occurred_at < ?")
        values.append(filters.until)
    if filters.min_confidence is not None:
        # Only what says how sure it is can be too unsure.
        conditions.append("(items.confidence IS NULL OR items.confidence >= ?)")
        values.append(filters.min_confidence)
    for word in (filters.contains or "").split():
        conditions.append("instr(casefold(items.title || char(10) || items.text), casefold(?))")
        values.append(word)
    if not filters.include_superseded and "superseded" not in filters.statuses:
        conditions.append("items.superseded_by IS NULL")
    for name, wanted in filters.metadata.items():
        condition, bound = _member(wanted)
        conditions.append(
            "EXISTS (SELECT 1 FROM json_each(items.metadata) AS member"
            f" WHERE member.key = ? AND {condition})"
        )
        values.extend([name, *bound])
    return " AND ".join(conditions), values


def is_unfiltered(filters: Filters, kinds: Iterable[Kind] = ()) -> bool:
    """Whether every live item that is not superseded may answer."""
    return filters == Filters() and not tuple(kinds)


def _member(wanted: Any) -> tuple[str, list[Any]]:
    """How a metadata member equals a JSON value: by type and value, 1 is not true and not "1"."""
    match wanted:
        case None:
            return "member.type = 'null'", []
        case bool():
            return "member.type = ?", ["true" if wanted else "false"]
        case int() if not -(2**63) <= wanted < 2**63:
            return "FALSE", []  # no stored number is that large
        case int() | float():
            return "member.type IN ('integer', 'real') AND member.atom = ?", [wanted]
        case str():
            return "member.type = 'text' AND member.atom = ?", [wanted]
        case _:
            return "member.value = json(?)", [msgspec.json.encode(wanted).decode()]

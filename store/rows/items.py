"""Items as rows: the table `items`, its mapping to `Item`, and conditions that select items."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
import orjson
from msgspec import Struct

from store.database import Connection, Dialect
from store.errors import NotFound
from store.model import Filters, Item, Kind, Provenance
from store.rows.table import Columns, Table

SEARCHED_DETAILS: Final = ("methods", "triggers", "mitigation")
LIVE: Final = "items.forgotten_at IS NULL"

_tags: Final = msgspec.json.Decoder(tuple[str, ...]).decode
_provenance: Final = msgspec.json.Decoder(Provenance).decode
_loads: Final = orjson.loads
_NO_PROVENANCE: Final = Provenance()


class ItemRow(Struct, frozen=True, gc=False):
    """A row of the table `items`. `Item` describes most of these fields."""

    id: int  # the bank's change number when the item was inserted; 0 before that
    public_id: str
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
    position: int | None
    source: str | None
    user: str | None
    role: str | None
    actor: str | None
    event_type: str | None
    key: str | None
    tags: str  # JSON
    metadata: str  # JSON
    details: str  # JSON
    provenance: str  # JSON
    occurred_at: int
    created_at: int
    updated_at: int
    superseded_by: str | None
    repeats: int
    forgotten_at: int | None
    forgotten_by: str | None  # the token that undoes the forget
    sameness: bytes | None  # hash of the content; two puts with the same hash are one item


ITEMS: Final = Table("items", ItemRow, noun="item", undigested=("change",))
SELECT: Final = ITEMS.select


def item_of(columns: Columns) -> Item:
    """The item in the columns of `SELECT`, or `RowDamaged`."""
    return item_from(ITEMS.read(columns))


def item_from(row: ItemRow) -> Item:
    return Item(
        rowid=row.id,
        id=row.public_id,
        kind=row.kind,
        title=row.title,
        text=row.text,
        context=row.context,
        category=row.category,
        status=row.status,
        level=row.level,
        confidence=row.confidence,
        salience=row.salience,
        session=row.session,
        document=row.document,
        position=row.position,
        source=row.source,
        user=row.user,
        role=row.role,
        actor=row.actor,
        event_type=row.event_type,
        key=row.key,
        tags=_tags(row.tags) if row.tags != "[]" else (),
        metadata=_loads(row.metadata) if row.metadata != "{}" else {},
        details=_loads(row.details) if row.details != "{}" else {},
        provenance=_provenance(row.provenance) if row.provenance != "{}" else _NO_PROVENANCE,
        occurred_at=row.occurred_at,
        created_at=row.created_at,
        updated_at=row.updated_at,
        superseded_by=row.superseded_by,
        repeats=row.repeats,
    )


def searchable(item: Item) -> str:
    """The text that an item is found by: title, text, context, tags and some of its details."""
    return _joined(item.title, item.text, item.context, item.tags, item.details)


def searchable_row(row: ItemRow) -> str:
    """The same as `searchable`, from a row."""
    return _joined(
        row.title,
        row.text,
        row.context,
        _tags(row.tags) if row.tags != "[]" else (),
        _loads(row.details) if row.details != "{}" else {},
    )


def _joined(
    title: str, text: str, context: str | None, tags: Iterable[str], details: Mapping[str, Any]
) -> str:
    parts = [title, text, context or "", *tags]
    for name in SEARCHED_DETAILS if details else ():
        detail = details.get(name, "")
        parts += [detail] if isinstance(detail, str) else [str(entry) for entry in detail]
    return "\n".join(part for part in parts if part)


def fetch(connection: Connection, rowids: Sequence[int]) -> Iterator[Columns]:
    """The columns of those of these items that are not forgotten, in no particular order."""
    for start in range(0, len(rowids), 500):
        some = rowids[start : start + 500]
        marks = ",".join("?" * len(some))
        yield from connection.execute(f"{SELECT} WHERE items.id IN ({marks}) AND {LIVE}", some)


def find(connection: Connection, id: str, *, kind: str | None = None) -> Item:
    """The item with this public id, or `NotFound` if there is none or it is forgotten."""
    columns = connection.execute(f"{SELECT} WHERE items.public_id = ? AND {LIVE}", (id,)).fetchone()
    if columns is None:
        raise NotFound(kind or "item", id)
    item = item_of(columns)
    if kind is not None and item.kind != kind:
        raise NotFound(kind, id)
    return item


def read_row(connection: Connection, rowid: int) -> ItemRow:
    """The row with this number, forgotten or not, or `NotFound`."""
    columns = connection.execute(f"{SELECT} WHERE items.id = ?", (rowid,)).fetchone()
    if columns is None:
        raise NotFound("item", str(rowid))
    return ITEMS.read(columns)


def where(dialect: Dialect, filters: Filters, kinds: Iterable[Kind] = ()) -> tuple[str, list[Any]]:
    """An SQL condition that selects the items which pass the filters, and its parameters.

    The condition consists of constants only; every value is a bound parameter.
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
    if filters.user is not None and filters.or_shared:
        conditions.append("(items.user IS NULL OR items.user = ?)")
        values.append(filters.user)
    else:
        equal("user", filters.user)
    equal("role", filters.role)
    equal("document", filters.document)
    among("category", filters.categories)
    among("status", filters.statuses)
    among("level", filters.levels)
    for tag in filters.tags:
        conditions.append(dialect.has_tag)
        values.append(tag)
    equal("actor", filters.actor)
    equal("event_type", filters.event_type)
    if filters.since is not None:
        conditions.append("items.occurred_at >= ?")
        values.append(filters.since)
    if filters.until is not None:
        conditions.append("items.occurred_at < ?")
        values.append(filters.until)
    if filters.min_confidence is not None:
        # An item without a confidence passes.
        conditions.append("(items.confidence IS NULL OR items.confidence >= ?)")
        values.append(filters.min_confidence)
    for word in (filters.contains or "").split():
        conditions.append(dialect.contains)
        values.append(word.casefold())
    if not filters.include_superseded and "superseded" not in filters.statuses:
        conditions.append("items.superseded_by IS NULL")
    for name, wanted in filters.metadata.items():
        condition, bound = dialect.has_member(name, wanted)
        conditions.append(condition)
        values.extend(bound)
    return " AND ".join(conditions), values


def is_unfiltered(filters: Filters, kinds: Iterable[Kind] = ()) -> bool:
    """Whether the filters let every live item pass that is not superseded."""
    return filters == Filters() and not tuple(kinds)

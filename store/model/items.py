"""Items and the types for storing and listing them.

Every searchable entry of a bank is an `Item` of some kind. Fields that only one kind has (a task's
effort, a skill's steps) are in `details`; the types of `knowledge.py` give them names. Times are
unix milliseconds, UTC. Callers know an item by its `id`. Its `rowid` is the bank's change number
at the time of insertion: it rises with every item and is never used again.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal, get_args

from msgspec import Struct

Kind = Literal["memory", "event", "card", "task", "risk", "narrative", "skill", "chunk"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

TEXT_LIMIT: Final = 1_048_576  # bytes of UTF-8 in one text, except a document's body
SHORT_LIMIT: Final = 4_096  # bytes of a title, a label or an id of another system
METADATA_LIMIT: Final = 65_536  # bytes of JSON


class Provenance(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How an item reached the bank: dialect, client, transport and principal."""

    dialect: str | None = None
    client: str | None = None
    transport: str | None = None
    principal: str | None = None
    explanation: str | None = None  # the caller's reason for storing it


class Item(Struct, frozen=True, kw_only=True):
    """A searchable entry of a bank."""

    rowid: int
    id: str
    kind: Kind
    text: str
    title: str = ""
    context: str | None = None
    category: str | None = None  # a memory's type, a card's category, a narrative's span
    status: str | None = None
    level: str | None = None
    confidence: float | None = None
    salience: float | None = None
    session: str | None = None
    document: str | None = None
    position: int | None = None  # a chunk's place in its document
    source: str | None = None
    user: str | None = None
    role: str | None = None
    actor: str | None = None
    event_type: str | None = None
    key: str | None = None  # a natural key: a second put with the same key replaces the item
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = {}
    details: Mapping[str, Any] = {}
    provenance: Provenance = Provenance()
    occurred_at: int
    created_at: int
    updated_at: int
    superseded_by: str | None = None
    repeats: int = 0  # how often an equal item was put again


class NewMemory(Struct, frozen=True, kw_only=True):
    """A memory or event to be stored. The engine uses it for the other kinds too."""

    text: str
    kind: Kind = "memory"
    id: str | None = None  # in a caller's own format; generated if absent
    title: str = ""
    context: str | None = None
    category: str | None = None
    status: str | None = None
    level: str | None = None
    confidence: float | None = None
    salience: float | None = None
    session: str | None = None
    source: str | None = None
    user: str | None = None
    role: str | None = None
    actor: str | None = None
    event_type: str | None = None
    key: str | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = {}
    details: Mapping[str, Any] = {}
    provenance: Provenance = Provenance()
    occurred_at: int | None = None
    idempotency_key: str | None = None
    allow_duplicate: bool = False


class Put(Struct, frozen=True, kw_only=True):
    """The result of a put: the id of the item, and whether it was stored already."""

    id: str
    rowid: int
    duplicate: bool = False
    repeats: int = 0


class Page(Struct, frozen=True, kw_only=True):
    """A page of a list, the length of the whole list, and the offset of the next page."""

    items: tuple[Item, ...]
    total: int
    next: int | None = None


class Forgotten(Struct, frozen=True, kw_only=True):
    """The result of a forget, which can be undone until `undo_until`."""

    token: str | None
    count: int
    undo_until: int


class BulkChange(Struct, frozen=True, kw_only=True):
    """The result of a change of many items. `skipped` are ids that the target bank has already."""

    token: str | None
    count: int
    undo_until: int
    skipped: tuple[str, ...] = ()


class Erased(Struct, frozen=True, kw_only=True):
    """The result of an erase that was verified to be complete."""

    items: int
    documents: int = 0
    copies_removed: int = 0  # backups and snapshots deleted because they contained copies
    remains: str = ""  # where copies remain that the engine cannot reach; "" if there are none

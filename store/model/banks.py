"""Banks, statistics, health, and the results of maintenance."""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from store.model.documents import SourceCount


class Bank(Struct, frozen=True, kw_only=True):
    """A memory bank as the catalogue lists it."""

    id: str
    name: str
    created_at: int
    quota_bytes: int | None = None


class SessionActivity(Struct, frozen=True, kw_only=True):
    """The items of one session in a bank: their number and the span of their times."""

    id: str
    items: int
    first_at: int
    last_at: int


class Stats(Struct, frozen=True, kw_only=True):
    """Exact counts for one bank."""

    bank: str
    items: int
    by_kind: Mapping[str, int]
    by_category: Mapping[str, int]  # of memories; "general" stands for no category
    by_source: tuple[SourceCount, ...]
    by_label: Mapping[str, int]  # items that are not chunks, by source
    sessions: int
    documents: int
    forgotten: int
    pending_vectors: int
    oldest_at: int | None
    newest_at: int | None
    disk_bytes: int
    model: str | None = None


class FacetCount(Struct, frozen=True, kw_only=True):
    value: str
    count: int


class Facets(Struct, frozen=True, kw_only=True):
    """The most frequent values of some items, most frequent first."""

    kinds: tuple[FacetCount, ...] = ()
    sources: tuple[FacetCount, ...] = ()
    categories: tuple[FacetCount, ...] = ()
    tags: tuple[FacetCount, ...] = ()
    sessions: tuple[FacetCount, ...] = ()
    clients: tuple[FacetCount, ...] = ()


class GrowthDay(Struct, frozen=True, kw_only=True):
    """A day (UTC): the items with a time on it, and all items up to its end."""

    date: str
    added: int
    total: int


class MapPoint(Struct, frozen=True, kw_only=True):
    """An item and its place on the map, from -1 to 1."""

    id: str
    kind: str
    session: str | None
    occurred_at: int
    label: str
    x: float = 0.0
    y: float = 0.0


class BankMap(Struct, frozen=True, kw_only=True):
    """The newest items with vectors, placed by meaning. `total` counts all items of the bank."""

    points: tuple[MapPoint, ...]
    total: int


class Problem(Struct, frozen=True, kw_only=True):
    """A fault that `check` found: a stable name, the part concerned, a count and the remedy."""

    name: str
    part: str
    count: int = 1
    remedy: Literal["none", "repair", "rebuild", "restore"] = "repair"


class Checked(Struct, frozen=True, kw_only=True):
    """The result of `check`: the rows examined and the problems found."""

    bank: str
    items: int
    words: int
    vectors: int
    documents: int
    problems: tuple[Problem, ...] = ()


class Stage(Struct, frozen=True, kw_only=True):
    """Progress of the background work on a bank: `done` of `total` in this phase."""

    phase: Literal["embedding", "loading", "building", "checking", "extending", "saving"]
    done: int
    total: int


class EngineHealth(Struct, frozen=True, kw_only=True):
    """Whether the engine works, and the names of everything that is degraded."""

    is_ready: bool
    degraded: tuple[str, ...] = ()
    banks: int = 0
    open_banks: int = 0
    storage: str = ""  # the database and its version, such as "sqlite 3.40.1"
    embedder: str | None = None


class Recovered(Struct, frozen=True, kw_only=True):
    """Banks that the catalogue lists again, and directories that are not banks, with the reason."""

    banks: tuple[Bank, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()


class Exported(Struct, frozen=True, kw_only=True):
    """The result of an export."""

    bank: str
    records: int
    digest: str


class Imported(Struct, frozen=True, kw_only=True):
    """The result of an import: the number of new records and of records known already."""

    bank: str
    created: int
    known: int
    created_by_type: Mapping[str, int] = {}  # item, chunk, document, evidence, profile, origin
    known_by_type: Mapping[str, int] = {}
    is_edited: bool = False  # the lines do not fit the digest: they were changed by hand


class BackedUp(Struct, frozen=True, kw_only=True):
    """A backup of a bank. `path` is its file, if the engine keeps backups in files."""

    bank: str
    name: str
    bytes: int
    items: int
    made_at: int
    path: str | None = None

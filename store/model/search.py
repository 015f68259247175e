"""Queries, filters and search results."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, get_args

from msgspec import Meta, Struct

from store.model.items import Item, Kind

Mode = Literal["keyword", "semantic", "hybrid"]
MODES: Final[tuple[Mode, ...]] = get_args(Mode)

Integer = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]  # the range of an INTEGER column


class Filters(Struct, frozen=True, kw_only=True):
    """Conditions on items. An empty field is no condition; all given conditions must hold."""

    session: str | None = None
    sources: tuple[str, ...] = ()
    user: str | None = None
    or_shared: bool = False  # with `user`: items that belong to no user pass too
    role: str | None = None
    document: str | None = None
    categories: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()  # an item must have all of them
    actor: str | None = None
    event_type: str | None = None
    since: Integer | None = None  # occurred_at, inclusive
    until: Integer | None = None  # occurred_at, exclusive
    min_confidence: float | None = None
    metadata: Mapping[str, Any] = {}  # members that must have these values
    contains: str | None = None  # words that must occur in title or text, in any case
    include_superseded: bool = False


class Query(Struct, frozen=True, kw_only=True):
    """A search in one bank."""

    bank: str
    text: str
    keywords: str | None = None  # for the keyword search; `text` if absent
    mode: Mode = "hybrid"
    limit: int = 10
    kinds: tuple[Kind, ...] = ()
    filters: Filters = Filters()
    keyword_weight: float | None = None
    vector_weight: float | None = None
    min_score: float = 0.0
    explain: bool = False
    #: The number of documents, from the first, whose snippet is a passage chosen by meaning too.
    passages: int = 0


class Hit(Struct, frozen=True, kw_only=True):
    """A search result. `score` is absolute, from 0 to 1; 0.7 means about "relevant"."""

    item: Item
    score: float
    snippet: str = ""
    matches: tuple[tuple[int, int], ...] = ()  # (start, end) of each match in the snippet
    parts: Mapping[str, float] | None = None  # with `explain`: the parts of the score


class Found(Struct, frozen=True, kw_only=True):
    """All results of a query, best first."""

    hits: tuple[Hit, ...] = ()
    below: int = 0  # the number of results below `min_score`
    best_below: float | None = None  # the best score among them
    mode: Mode = "hybrid"  # the mode used; "keyword" if the requested one was not possible
    degraded: tuple[str, ...] = ()

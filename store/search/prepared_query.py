"""A query with everything that a search needs besides the bank."""

from collections.abc import Callable

from msgspec import Struct

from store.embedding.embedder import TokenVectors
from store.model import Mode, Query
from store.ranking.fusion import Weights
from store.vectors.cache import VectorCache


class SemanticQuery(Struct, frozen=True):
    """The vector of a query and the vectors to compare it with."""

    embedding: Callable[[], TokenVectors]  # waits for it, or raises EmbedderFailed
    model: int  # the number of its model in this bank
    cache: VectorCache
    names: frozenset[str] = frozenset()  # the words of the speakers' names in this bank


class PreparedQuery(Struct, frozen=True, kw_only=True):
    """A query with everything that the search needs besides the bank."""

    query: Query
    mode: Mode
    weights: Weights
    now: int
    meaning: SemanticQuery | None = None
    degraded: tuple[str, ...] = ()

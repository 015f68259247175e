"""The real ranking with hashed features, and graphs from twenty vectors on.

So that tests of a few dozen items go through everything a large bank has: a graph, its tail, holes,
snapshots. In a process of its own `make_graphs_small()` is called once; a test uses the fixture of
the same effect.
"""

from collections.abc import Generator
from contextlib import contextmanager
from unittest.mock import patch

import numpy  # noqa: F401  (hypothesis looks into it, also while the engine's thread is importing it)
from anyio.abc import TaskGroup

from store import indexing, vectors
from store.embedding import HashedFeatures
from store.ranking import HybridRanking

GRAPH_FROM = 20
EXTEND_AT = 5


def real_ranking(background: TaskGroup) -> HybridRanking:
    """Vectors are made as items come, as after a first search."""
    return HybridRanking(background, HashedFeatures(), eager=True)


@contextmanager
def small_graphs() -> Generator[None]:
    """Graphs for a few dozen items, for as long as the block lasts."""
    made, extended = vectors.VectorCache.__init__, vectors.VectorCache.extend
    with (
        patch.object(made, "__kwdefaults__", {"exact_limit": GRAPH_FROM}),
        patch.object(extended, "__kwdefaults__", {"at_least": EXTEND_AT}),
        patch.object(vectors, "EXTEND_AT", EXTEND_AT),
        patch.object(indexing, "EXTEND_AT", EXTEND_AT),
        patch.object(indexing, "BATCH", 8),
        patch.object(indexing, "PAGE", 16),
    ):
        yield


def make_graphs_small() -> None:
    small_graphs().__enter__()  # for as long as the process lasts

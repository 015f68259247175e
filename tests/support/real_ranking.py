"""The real ranking with hashed features, and graphs from twenty vectors on.

So that tests of a few dozen items go through everything a large bank has: a graph, its tail, holes,
snapshots.
"""

from collections.abc import Generator
from contextlib import contextmanager
from unittest.mock import patch

import numpy  # noqa: F401  (hypothesis looks into it, also while the engine's thread is importing it)
from anyio.abc import TaskGroup

from store.embedding.hashed import HashedFeatures
from store.sqlite.search.hybrid import HybridRanking
from store.sqlite.vectors import cache, indexing


def real_ranking(background: TaskGroup) -> HybridRanking:
    """Vectors are made as items come, as after a first search."""
    return HybridRanking(background, HashedFeatures(), eager=True)


@contextmanager
def small_graphs(
    *, graph_from: int = 20, extend_at: int = 5, batch: int = 8, page: int = 16
) -> Generator[None]:
    """Graphs for a few dozen items, for as long as the block lasts."""
    made, extended = cache.VectorCache.__init__, cache.VectorCache.extend
    with (
        patch.object(made, "__kwdefaults__", {"exact_limit": graph_from}),
        patch.object(extended, "__kwdefaults__", {"at_least": extend_at}),
        patch.object(cache, "EXTEND_AT", extend_at),
        patch.object(indexing, "EXTEND_AT", extend_at),
        patch.object(indexing, "BATCH", batch),
        patch.object(indexing, "PAGE", page),
    ):
        yield

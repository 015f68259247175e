"""The real ranking with hashed features, and graphs from 20 vectors on.

So tests with a few dozen items cover the structures of a large bank: a graph, its tail of new
vectors, holes left by deletions, and snapshots.
"""

from collections.abc import Generator
from contextlib import contextmanager
from unittest.mock import patch

import numpy  # noqa: F401  (hypothesis inspects numpy, even while the engine's thread is importing it)
from anyio.abc import TaskGroup

from store.embedding.hashed import HashedFeatures
from store.search.hybrid import HybridRanking
from store.vectors import cache, indexing, pending


def real_ranking(background: TaskGroup) -> HybridRanking:
    """Compute vectors as items are written, as the ranking does after the first search."""
    return HybridRanking(background, HashedFeatures(), eager=True)


@contextmanager
def small_graphs(
    *, graph_from: int = 20, extend_at: int = 5, batch: int = 8, page: int = 16
) -> Generator[None]:
    """Build graphs for a few dozen items inside the block."""
    made, extended = cache.VectorCache.__init__, cache.VectorCache.extend
    with (
        patch.object(made, "__kwdefaults__", {"exact_limit": graph_from}),
        patch.object(extended, "__kwdefaults__", {"at_least": extend_at}),
        patch.object(cache, "EXTEND_AT", extend_at),
        patch.object(indexing, "EXTEND_AT", extend_at),
        patch.object(pending, "BATCH", batch),
        patch.object(indexing, "PAGE", page),
    ):
        yield

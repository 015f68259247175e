"""From which bank size on is the usearch graph faster than exact comparison?

    scripts/bench.py threshold                          up to 131,072 vectors, about five minutes
    scripts/bench.py threshold --sizes 8192,16384

Both are measured through `VectorCache.nearest`, as a search uses it: 40 nearest of synthetic
vectors with 384 dimensions, in clusters. The figures are the CPU time of the searching thread, so
that other processes matter little. The two take turns. `EXACT_LIMIT` in
store/vectors/cache.py should be near the size from which the graph is faster.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from store.embedding.embedder import Identity
from store.vectors.ann import GraphBuilder
from store.vectors.cache import VectorCache
from store.vectors.matrix import Vectors, pack

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DIMS: Final = 384
COUNT: Final = 40
IDENTITY: Final = Identity(name="synthetic", revision="1", dims=DIMS)


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench.py threshold", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--sizes", default="4096,8192,16384,32768,65536,131072")
    parser.add_argument("--queries", type=int, default=200)
    options = parser.parse_args()
    sizes = sorted(int(size) for size in options.sizes.split(","))
    vectors = synthetic(sizes[-1] + options.queries)
    queries = vectors[sizes[-1] :]
    exact = VectorCache(IDENTITY, exact_limit=sizes[-1])
    builder = GraphBuilder(IDENTITY, 0)
    graph = VectorCache(IDENTITY, exact_limit=0)
    done = 0
    for size in sizes:
        rows: Vectors = [
            (n + 1, n + 1, content) for n, content in enumerate(pack(vectors[done:size]), done)
        ]
        exact._matrix.append(rows)
        for start in range(0, len(rows), 4_096):
            builder.add(rows[start : start + 4_096], threads=2)
        graph.adopt(builder)
        done = size
        compare(size, exact, graph, queries)


def compare(
    size: int, exact: VectorCache, graph: VectorCache, queries: "NDArray[np.float32]"
) -> None:
    seconds: dict[str, list[float]] = {"exact": [], "graph": []}
    shared = 0
    for query in queries:
        by_matrix = timed(seconds["exact"], partial(exact.nearest, query, COUNT))
        by_graph = timed(seconds["graph"], partial(graph.nearest, query, COUNT))
        shared += len(set(by_matrix) & set(by_graph))
    first, second = (statistics.median(seconds[name]) for name in ("exact", "graph"))
    print(
        f"{size:8,} vectors   exact {first * 1e3:7.3f} ms   graph {second * 1e3:7.3f} ms"
        f"   exact takes {first / second:5.2f} x the time of the graph"
        f"   recall of the graph {shared / (COUNT * len(queries)):.3f}",
        flush=True,
    )


def timed(seconds: list[float], search: Callable[[], Any]) -> Any:
    began = time.thread_time()
    found = search()
    seconds.append(time.thread_time() - began)
    return found


def synthetic(count: int) -> "NDArray[np.float32]":
    """Unit vectors in clusters; the share of noise gives distances like those of real texts."""
    import numpy as np

    random = np.random.default_rng(7)
    centres = random.normal(size=(2_000, DIMS)).astype(np.float32)
    vectors = centres[random.integers(len(centres), size=count)]
    vectors = vectors + 0.7 * random.normal(size=vectors.shape).astype(np.float32)
    rows: NDArray[np.float32] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return rows


if __name__ == "__main__":
    main()

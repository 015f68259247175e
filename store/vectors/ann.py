"""Building a usearch graph over a bank's vectors, and finding the vectors it cannot reach.

A graph search only finds vectors that are linked to. If two threads build a graph, or if many
vectors are nearly equal, about ten in 100,000 have no link from anywhere, and no search would ever
return them. So every vector of a new graph is searched for once. The vectors that are not found,
the strays, are kept in a separate matrix and compared one by one. A graph that is extended by one
thread loses none (measured with 10,000 vectors added to 90,000).
"""

from typing import TYPE_CHECKING, Any, Final

from store.embedding.embedder import Identity
from store.embedding.native_libraries import load_usearch
from store.vectors.matrix import Matrix, Vectors, pack, quantise, unpack
from store.vectors.snapshot import SnapshotBroken, SnapshotHeader

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CONNECTIVITY: Final = 16
EXPANSION_ADD: Final = 128
EXPANSION_SEARCH: Final = 192
METRIC: Final = "cos"
DTYPE: Final = "i8"
_PROBE_EXPANSION: Final = 16  # misses a few hundredths of a percent, but is eight times as fast
_PROBE_RESULTS: Final = 10
_SAME: Final = 1e-5  # smaller distances occur between equal rows only


class GraphBuilder:
    """A graph under construction, used by one thread."""

    def __init__(self, identity: Identity, generation: int) -> None:
        self.identity = identity
        self.generation = generation
        self.covered = 0
        self.graph: Any = _new_graph(identity.dims)
        self.strays = Matrix(identity.dims)

    def add(self, rows: Vectors, *, threads: int) -> None:
        """Add vectors in order of their change number; a later one replaces an earlier one."""
        import numpy as np

        if not rows:
            return
        latest = {item: content for item, _, content in rows}
        keys = np.array(list(latest), dtype=np.uint64)
        for key in keys.tolist():
            if key in self.graph:
                self.graph.remove(key)
        make_room(self.graph, len(keys))
        vectors, _ = quantise(unpack(latest.values(), self.identity.dims))
        self.graph.add(keys, vectors, threads=threads)
        self.covered = rows[-1][1]

    def keys(self) -> "NDArray[np.uint64]":
        import numpy as np

        return np.asarray(self.graph.keys)

    def find_strays(self, keys: "NDArray[np.uint64]", *, threads: int) -> None:
        """Search for each key by its own vector; the ones that are not found become strays."""
        for expansion in (_PROBE_EXPANSION, EXPANSION_SEARCH):
            if len(keys):
                keys = self._missed(keys, expansion, threads)
        self._add_strays(keys)

    def restore(self, header: SnapshotHeader, content: memoryview) -> None:
        import numpy as np

        self.graph.load(content, progress=_release_gil)
        if len(self.graph) != header.count or self.graph.ndim != self.identity.dims:
            raise SnapshotBroken("graph of another size")
        self._add_strays(np.array(header.strays, dtype=np.uint64))
        self.covered = header.change

    def _missed(
        self, keys: "NDArray[np.uint64]", expansion: int, threads: int
    ) -> "NDArray[np.uint64]":
        """The keys that were not found, unless all results were equal to them."""
        count = min(_PROBE_RESULTS, len(self.graph))
        self.graph.expansion_search = expansion
        try:
            matches = self.graph.search(self._rows(keys), count, threads=threads)
        finally:
            self.graph.expansion_search = EXPANSION_SEARCH
        found, distances = matches.keys, matches.distances
        if len(keys) == 1:  # usearch then returns arrays with one dimension less
            found, distances = found.reshape(1, -1), distances.reshape(1, -1)
        is_found = (found == keys[:, None]).any(axis=1)
        if found.shape[1] == count:
            is_found |= distances[:, -1] <= _SAME
        missed: NDArray[np.uint64] = keys[~is_found]
        return missed

    def _add_strays(self, keys: "NDArray[np.uint64]") -> None:
        import numpy as np

        if not len(keys):
            return
        vectors = self._rows(keys).astype(np.float32)
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        rows = zip(keys.tolist(), pack(vectors), strict=True)
        self.strays.append([(key, 0, content) for key, content in rows])

    def _rows(self, keys: "NDArray[np.uint64]") -> "NDArray[np.int8]":
        import numpy as np

        rows = self.graph.get(keys)
        if any(row is None for row in rows):
            raise SnapshotBroken("stray key not in graph")
        return np.vstack(rows)


def serialise(graph: Any) -> bytes:
    """The bytes of a graph, as `GraphBuilder.restore` reads them."""
    content: bytes = graph.save(None, progress=_release_gil)
    return content


def _release_gil(done: int, total: int) -> bool:
    """A progress callback for usearch, which holds the GIL while it saves or loads a graph.

    usearch calls it for each vector. While it runs, the interpreter can switch to another thread,
    so the event loop waits 5 ms at most instead of 70 ms for each 100,000 vectors.
    """
    return True


def _new_graph(dims: int) -> Any:
    return load_usearch().Index(
        ndim=dims,
        metric=METRIC,
        dtype=DTYPE,
        connectivity=CONNECTIVITY,
        expansion_add=EXPANSION_ADD,
        expansion_search=EXPANSION_SEARCH,
    )


def make_room(graph: Any, extra: int) -> None:
    """Grow the capacity of a graph in large steps, because usearch copies it each time."""
    if len(graph) + extra > graph.capacity:
        reserve = getattr(graph, "reserve", None)
        if reserve is not None:
            reserve((len(graph) + extra) * 3 // 2)

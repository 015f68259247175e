"""The vectors of one bank in memory: exact comparison for few, a graph for many.

The bank's `vectors` table is the source of truth. The cache is filled on first use:

- The **matrix** holds vectors as rows of int8 with a scale each, and compares all of them. Up to
  `EXACT_LIMIT` vectors it holds everything (65,536 rows take 24 MB, and 1.5 ms on a quiet
  machine).
- The **graph** is a usearch index over all vectors up to a change number (`covered`). The matrix
  is then its tail: it holds the newer vectors, so that a write is found at once. A second matrix
  holds the **strays**, the vectors in the graph that no search reaches (`ann.py`).

All of them use the same int8 values, so their cosines are approximate (within 0.005). That is
enough to choose candidates; the search then reads the stored vectors (`stored.py`).

Each search first reads the vectors that are newer than the last known change number (`refresh`),
in its own read transaction. Nothing notifies the cache of deletions. A search looks up the ids in
its transaction anyway, and reports the missing ones (`discard`). A search in an older transaction
must not discard a vector that a newer one has read, so rows carry their change number. Vectors
that are deleted, or have a newer version in the tail, are removed from the graph, so that they
do not displace others in its results.

While a large bank has no graph yet, or when more results are requested than the graph can give,
`nearest` returns None and the caller scans the table. The indexer (`indexing.py`) builds, extends,
loads and saves graphs.

One lock guards the contents. Most methods hold it for about a millisecond, but `refresh` holds it
while it reads the table and `save` while usearch serialises the graph, which can take seconds.
**So the event loop may only use `coverage`, `needs_graph` and `generation`**, which take no lock.
"""

import threading
from collections.abc import Iterable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from store.embedding.embedder import Identity
from store.vectors.ann import DTYPE, METRIC, GraphBuilder, make_room, serialise
from store.vectors.matrix import Matrix, quantise, stored_size
from store.vectors.snapshot import (
    SnapshotBroken,
    SnapshotHeader,
    read_snapshot,
    set_aside,
    write_snapshot,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from store.database import Connection

# Measured by `scripts/bench.py threshold` (384 dimensions, CPU time of one search): compared with a
# graph search, exact comparison takes 0.61 times as long at 16,384 vectors, 0.80 at 32,768 and 1.35
# at 65,536. They are equal at about 45,000. Up to 65,536 exact comparison costs less than a
# millisecond more, needs no graph, and misses nothing (a graph finds 91 to 98 % of the nearest 40).
EXACT_LIMIT: Final = 65_536
EXTEND_AT: Final = 2_048  # rows in the tail that are worth moving into the graph
_ADD_AT_ONCE: Final = 16  # rows added while the lock is held: about 10 ms
_HOLES_SHARE: Final = 0.3


class Coverage(Struct, frozen=True, kw_only=True):
    """How many vectors are where; for health, progress and the indexer's decisions."""

    matrix: int = 0
    graph: int = 0
    covered: int = 0
    is_waiting: bool = False  # too large to compare exactly, and without a graph: table scans
    has_graph: bool = False
    holes: int = 0  # places in the graph whose items are gone


class VectorCache:
    """The vectors of one bank in memory. Safe to use from several threads."""

    def __init__(self, identity: Identity, *, exact_limit: int = EXACT_LIMIT) -> None:
        self.identity = identity
        self.exact_limit = exact_limit
        self._lock = threading.Lock()
        self._matrix = Matrix(identity.dims)
        self._graph: Any = None
        self._strays = Matrix(identity.dims)
        self._covered = 0
        self._seen = 0
        self._holes = 0
        self._is_waiting = False
        self._generation = 0
        self._coverage = Coverage()

    # --- without the lock: the event loop may call these ----------------------------------

    def coverage(self) -> Coverage:
        """The counts after the last completed change."""
        return self._coverage

    @property
    def needs_graph(self) -> bool:
        """True if a graph should be built: there is none for many vectors, or it has many holes."""
        now = self._coverage
        if not now.has_graph:
            return now.is_waiting or now.matrix > self.exact_limit
        return now.holes > _HOLES_SHARE * (now.graph + now.holes)

    @property
    def generation(self) -> int:
        """Increases with every reset. A graph that was begun before a reset is never adopted."""
        return self._generation

    # --- for searches, on their threads ---------------------------------------------------

    def refresh(self, connection: "Connection", model: int) -> None:
        """Read the vectors that are newer than the last known change in this transaction."""
        visible, items = connection.execute("SELECT change, items FROM state").fetchone()
        with self._lock:
            if visible <= self._seen:
                return
            if self._graph is None and self._seen == 0 and items > self.exact_limit:
                self._is_waiting = True
                self._publish()
                return
            self._is_waiting = False
            rows = connection.execute(
                "SELECT item, change, bytes FROM vectors"
                " WHERE change > ? AND model = ? AND length(bytes) = ? ORDER BY change",
                (max(self._seen, self._covered), model, stored_size(self.identity.dims)),
            ).fetchall()
            self._matrix.append(rows)
            for item, _, _ in rows:
                self._take_out(item)
            self._seen = visible
            self._publish()

    def nearest(self, query: "NDArray[np.float32]", count: int) -> dict[int, float] | None:
        """About the `count` nearest items and their approximate cosines.

        Returns None if only a scan can tell: while there is no graph yet, and if `count` is not
        smaller than the graph, because a graph search does not reach every vector. The result can
        contain ids of deleted items.
        """
        with self._lock:
            if self._is_waiting or (self._graph is not None and count >= len(self._graph)):
                return None
            found: dict[int, float] = {}
            if self._graph is not None:
                matches = self._graph.search(quantise(query[None])[0][0], count, threads=1)
                pairs = zip(matches.keys.tolist(), matches.distances.tolist(), strict=True)
                found = {key: 1.0 - distance for key, distance in pairs}
                found |= self._strays.nearest(query, count)
            found |= self._matrix.nearest(query, count)
            return found

    def among(
        self, query: "NDArray[np.float32]", allowed: "NDArray[np.int64]", count: int
    ) -> dict[int, float] | None:
        """The nearest of the allowed items; None if some vectors are not in memory."""
        with self._lock:
            if self._is_waiting or self._graph is not None:
                return None
            return self._matrix.nearest(query, count, allowed)

    def discard(self, ids: Iterable[int], visible: int) -> None:
        """Drop items that a transaction at change number `visible` did not find."""
        with self._lock:
            for id in ids:
                if id in self._matrix:
                    self._matrix.discard(id, visible)
                elif self._covered <= visible:
                    self._take_out(id)
            self._publish()

    def reset(self, identity: Identity | None = None) -> None:
        """Drop everything; the next search reads the bank again."""
        with self._lock:
            self.identity = identity or self.identity
            self._matrix = Matrix(self.identity.dims)
            self._graph = None
            self._strays = Matrix(self.identity.dims)
            self._covered = self._seen = 0
            self._holes = 0
            self._is_waiting = False
            self._generation += 1
            self._publish()

    # --- for the indexer, on its thread ---------------------------------------------------

    def new_graph(self) -> GraphBuilder:
        return GraphBuilder(self.identity, self._generation)

    def adopt(self, builder: GraphBuilder) -> bool:
        """Use a finished graph from now on. False if a reset has happened since it was begun."""
        with self._lock:
            if builder.generation != self._generation:
                return False
            self._graph = builder.graph
            self._strays = builder.strays
            self._covered = builder.covered
            self._seen = builder.covered if self._is_waiting else max(self._seen, builder.covered)
            self._holes = 0
            self._is_waiting = False
            self._matrix.drop_until(builder.covered)
            for item in self._matrix:
                self._take_out(item)
            self._publish()
            return True

    def extend(self, *, at_least: int = EXTEND_AT) -> int:
        """Move a tail of at least this many rows into the graph; returns the number of rows."""
        moved = 0
        while True:
            with self._lock:
                if self._graph is None or (not moved and len(self._matrix) < at_least):
                    return moved
                keys, changes, vectors = self._matrix.oldest(_ADD_AT_ONCE)
                if not len(keys):
                    return moved
                make_room(self._graph, len(keys))
                self._graph.add(keys, vectors, threads=1)
                self._holes = max(0, self._holes - len(keys))  # usearch fills them first
                self._covered = int(changes[-1])
                self._matrix.drop_until(self._covered)
                moved += len(keys)
                self._publish()

    def save(
        self, path: Path, bank: str, files: AbstractContextManager[Any]
    ) -> SnapshotHeader | None:
        """Write the graph to disk while holding `files`; None if there is no graph (any more)."""
        with self._lock:
            if self._graph is None:
                return None
            generation = self._generation
            content = serialise(self._graph)
            header = SnapshotHeader(
                bank=bank,
                model=str(self.identity),
                dims=self.identity.dims,
                library=_library(),
                metric=METRIC,
                dtype=DTYPE,
                change=self._covered,
                count=len(self._graph),
                strays=tuple(self._strays),
                graph_bytes=len(content),
            )
        with files:
            if generation != self._generation:  # the content may have been erased by now
                return None
            write_snapshot(path, header, content)
        return header

    def load(self, path: Path, bank: str, visible: int) -> bool:
        """Use the graph on disk. False if there is none.

        A snapshot that does not belong to this bank at change number `visible` is set aside, and
        `SnapshotBroken` is raised.
        """
        # Taken before the file is opened: an erase deletes the file first and resets afterwards,
        # so a graph from a file that was open at that time is of an older generation.
        builder = self.new_graph()

        def use(header: SnapshotHeader, content: memoryview) -> bool:
            _refuse_foreign(header, self.identity, bank, visible)
            builder.restore(header, content)
            return True

        try:
            is_loaded = read_snapshot(path, use)
        except SnapshotBroken:
            with suppress(OSError):  # it stays until the next snapshot replaces it
                set_aside(path)
            raise
        return bool(is_loaded) and self.adopt(builder)

    # --- with the lock held ---------------------------------------------------------------

    def _take_out(self, key: int) -> None:
        if self._graph is not None and key in self._graph:
            self._graph.remove(key)
            self._strays.clear(key)
            self._holes += 1

    def _publish(self) -> None:
        """Make the counts visible to readers without the lock."""
        self._coverage = Coverage(
            matrix=len(self._matrix),
            graph=0 if self._graph is None else len(self._graph),
            covered=self._covered,
            is_waiting=self._is_waiting,
            has_graph=self._graph is not None,
            holes=self._holes,
        )


def _refuse_foreign(header: SnapshotHeader, identity: Identity, bank: str, visible: int) -> None:
    if header.bank != bank:
        raise SnapshotBroken("of another bank")
    if header.model != str(identity) or header.dims != identity.dims:
        raise SnapshotBroken("of another model")
    if (header.library, header.metric, header.dtype) != (_library(), METRIC, DTYPE):
        raise SnapshotBroken("of another version")
    if header.change > visible:
        raise SnapshotBroken("newer than the bank")


def _library() -> str:
    from importlib.metadata import version

    return f"usearch {version('usearch')}"

"""Nearest vectors of one bank: exactly while they are few, through a graph when they are many.

The bank's `vectors` table is the truth; what is here is a cache of it, made on first use:

- the **matrix**: vectors as rows of int8 with a scale each, all of them compared. Up to
  `EXACT_LIMIT` it is everything (65,536 rows are 24 MB and take 1.5 ms);
- the **graph**: a usearch index over all vectors up to a change number (`covered`). The matrix
  then is the tail: what is newer, so that a write is found at once. The **strays** are a second
  matrix: what the graph holds and does not lead to (`graph.py`).

All work on the same int8 numbers and so give cosines that are about right (within 0.005): enough
to choose candidates. Who orders them reads their stored vectors (`cosines_of`).

Every search first reads what the bank's change number says is new (`refresh`), in the search's own
read transaction. Nothing tells the cache about deletions: who asks must look the ids up in the
same transaction anyway, and reports the ones that are gone (`discard`). A search in an older
transaction may not discard what a newer one has read, so rows carry their change number.
What is gone, or has a newer vector in the tail, is taken out of the graph: what nobody may find
must not stand in the way of what comes after it.

While a bank is large and has no graph yet, or when everything is asked for, `nearest` says so
(None) and the caller scans the table (`scan`), exactly. Building, extending, loading and saving
are the indexer's (`indexing.py`).

One lock guards all of it; it is held for about a millisecond at most.
"""

import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from store.embedding.embedder import Identity
from store.sqlite.vectors.ann import DTYPE, METRIC, GraphBuilder, make_room
from store.sqlite.vectors.matrix import Matrix, quantise, stored_size, unpack
from store.sqlite.vectors.snapshot import (
    Header,
    SnapshotBroken,
    read_snapshot,
    remove_snapshot,
    set_aside,
    write_snapshot,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from store.sqlite.database import Connection

EXACT_LIMIT: Final = 65_536  # a scan of that many takes about as long as a graph search
EXTEND_AT: Final = 2_048  # tail rows that are worth moving into the graph
SCAN_LIMIT: Final = 200_000  # rows a search without a graph looks at: the newest …
SCAN_SECONDS: Final = 1.0  # … and for how long
_ADD_AT_ONCE: Final = 16  # under the lock: about 10 ms
_HOLES_SHARE: Final = 0.3


class Coverage(Struct, frozen=True, kw_only=True):
    """How much of the vectors is where; for health, progress and the indexer's decisions."""

    matrix: int
    graph: int
    covered: int
    is_waiting: bool  # large, and searched by scanning until a graph is there


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
        self._holes = 0  # places in the graph whose items are gone
        self._is_waiting = False
        self._generation = 0

    def refresh(self, connection: "Connection", model: int) -> None:
        """Read the vectors that are newer than the last look, as this transaction sees them."""
        visible, items = connection.execute("SELECT change, items FROM state").fetchone()
        with self._lock:
            if visible <= self._seen:
                return
            if self._graph is None and self._seen == 0 and items > self.exact_limit:
                self._is_waiting = True
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

    def nearest(self, query: "NDArray[np.float32]", count: int) -> dict[int, float] | None:
        """About the `count` nearest items and their cosines; None when only a scan can tell.

        That is while there is no graph yet, and when all that a graph has is asked for: it finds
        what is near, and has no way to everything from everywhere. The cosines are approximate.
        Ids may be of items that are gone.
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
        """The nearest of the allowed items; None when not every vector is in memory."""
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

    def coverage(self) -> Coverage:
        with self._lock:
            return Coverage(
                matrix=len(self._matrix),
                graph=0 if self._graph is None else len(self._graph),
                covered=self._covered,
                is_waiting=self._is_waiting,
            )

    def reset(self, identity: Identity | None = None) -> None:
        """Know nothing: the next search begins again from the bank."""
        with self._lock:
            self.identity = identity or self.identity
            self._matrix = Matrix(self.identity.dims)
            self._graph = None
            self._strays = Matrix(self.identity.dims)
            self._covered = self._seen = 0
            self._holes = 0
            self._is_waiting = False
            self._generation += 1

    # --- for the indexer ------------------------------------------------------------------

    @property
    def needs_graph(self) -> bool:
        """Whether a new graph should be built: none for many vectors, or too many holes in it."""
        with self._lock:
            if self._graph is None:
                return self._is_waiting or len(self._matrix) > self.exact_limit
            return self._holes > _HOLES_SHARE * (len(self._graph) + self._holes)

    @property
    def generation(self) -> int:
        """Rises with every reset; a graph begun before one must not be adopted after it."""
        return self._generation

    def new_graph(self) -> GraphBuilder:
        return GraphBuilder(self.identity, self._generation)

    def adopt(self, builder: GraphBuilder) -> bool:
        """Put a finished graph to use. False when a reset came in between."""
        with self._lock:
            if builder.generation != self._generation:
                return False
            self._graph = builder.graph
            self._strays = builder.strays
            self._covered = builder.covered
            self._seen = (
                max(self._seen, builder.covered) if not self._is_waiting else (builder.covered)
            )
            self._holes = 0
            self._is_waiting = False
            self._matrix.drop_until(builder.covered)
            for item in self._matrix:
                self._take_out(item)
            return True

    def extend(self, *, at_least: int = EXTEND_AT) -> int:
        """Move the tail into the graph when it is worth it; how many rows were moved."""
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

    def _take_out(self, key: int) -> None:
        if self._graph is not None and key in self._graph:
            self._graph.remove(key)
            self._strays.clear(key)
            self._holes += 1

    def save(self, path: Path, bank: str, files: AbstractContextManager[Any]) -> Header | None:
        """Write the graph to disk, holding `files`; None when there is none (any more)."""
        with self._lock:
            if self._graph is None:
                return None
            generation = self._generation
            content: bytearray = self._graph.save(None)
            header = Header(
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
            if generation != self._generation:  # a reset: what we hold may have been erased
                return None
            write_snapshot(path, header, content)
        return header

    def load(self, path: Path, bank: str, visible: int) -> bool:
        """Put the graph on disk to use. False when there is none; `SnapshotBroken` after
        setting aside one that cannot be used with this bank at change number `visible`."""

        def use(header: Header, content: memoryview) -> GraphBuilder:
            _refuse_foreign(header, self.identity, bank, visible)
            builder = self.new_graph()
            builder.restore(header, content)
            return builder

        try:
            builder = read_snapshot(path, use)
        except SnapshotBroken:
            with suppress(OSError):  # then it stays until a new one takes its place
                set_aside(path)
            raise
        return builder is not None and self.adopt(builder)


def scan(
    connection: "Connection",
    query: "NDArray[np.float32]",
    model: int,
    count: int,
    condition: str = "",
    values: Sequence[Any] = (),
) -> tuple[dict[int, float], bool]:
    """The nearest items by reading their vectors from the bank, and whether that was all of them.

    `condition` is on `items`, made of constants; its values are bound.
    """
    import numpy as np

    join = "JOIN items ON items.id = vectors.item" if condition else ""
    rows = connection.execute(
        f"SELECT vectors.item, vectors.bytes FROM vectors {join} WHERE vectors.model = ?"
        f" AND length(vectors.bytes) = ? {'AND ' + condition if condition else ''}"
        " ORDER BY vectors.item DESC LIMIT ?",
        (model, stored_size(len(query)), *values, SCAN_LIMIT + 1),
    )
    best: dict[int, float] = {}
    seen = 0
    late = time.monotonic() + SCAN_SECONDS
    while some := rows.fetchmany(1024):
        seen += len(some)
        cosines = unpack((content for _, content in some), len(query)) @ query
        for at in np.argsort(-cosines)[:count].tolist():
            best[some[at][0]] = float(cosines[at])
        best = dict(sorted(best.items(), key=lambda entry: -entry[1])[:count])
        if time.monotonic() > late:
            return best, False
    return best, seen <= SCAN_LIMIT


def stored_cosines(
    connection: "Connection", query: "NDArray[np.float32]", model: int, ids: Sequence[int]
) -> dict[int, float]:
    """The exact cosines of these items, from their stored vectors; those without are left out."""
    found: list[tuple[int, bytes]] = []
    for start in range(0, len(ids), 500):
        some = ids[start : start + 500]
        found += connection.execute(
            f"SELECT item, bytes FROM vectors WHERE item IN ({','.join('?' * len(some))})"
            " AND model = ?",
            (*some, model),
        ).fetchall()
    return cosines_of(found, query)


def cosines_of(
    stored: Sequence[tuple[int, bytes]], query: "NDArray[np.float32]"
) -> dict[int, float]:
    """The exact cosines of items whose stored vectors are given and have the right length."""
    if stored:
        size = stored_size(len(query))
        stored = [(item, content) for item, content in stored if len(content) == size]
    if not stored:
        return {}
    cosines = unpack((content for _, content in stored), len(query)) @ query
    return dict(zip((item for item, _ in stored), cosines.tolist(), strict=True))


def _refuse_foreign(header: Header, identity: Identity, bank: str, visible: int) -> None:
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


__all__ = [
    "Coverage", "SnapshotBroken", "VectorCache", "cosines_of", "remove_snapshot", "scan",
    "stored_cosines",
]  # fmt: skip

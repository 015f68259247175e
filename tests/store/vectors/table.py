"""A table of vectors for tests of the vector cache, and helpers that build graphs over it."""

from typing import Any

import numpy as np

from store.embedding.embedder import Identity
from store.sqlite.connection import Connection
from store.vectors.cache import VectorCache
from store.vectors.matrix import pack, unpack

DIMS = 32
IDENTITY = Identity(name="fake", revision="1", dims=DIMS)
MODEL = 1


class Table:
    """The parts of a bank's `vectors`, `items` and `state` tables that the cache reads."""

    def __init__(self) -> None:
        self.connection = Connection(":memory:", isolation_level=None)
        self.connection.executescript(
            "CREATE TABLE state (change INTEGER, items INTEGER);"
            "INSERT INTO state VALUES (0, 0);"
            "CREATE TABLE items (id INTEGER PRIMARY KEY, kind TEXT);"
            "CREATE TABLE vectors (item INTEGER PRIMARY KEY, model INTEGER, change INTEGER,"
            " bytes BLOB);"
        )
        self.change = 0

    def put(self, vectors: "np.ndarray[Any, Any]", *, first: int = 1, model: int = MODEL) -> None:
        for item, content in enumerate(pack(vectors), first):
            self.change += 1
            self.connection.execute("INSERT OR IGNORE INTO items VALUES (?, 'memory')", (item,))
            self.connection.execute(
                "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?)",
                (item, model, self.change, content),
            )
        self._count()

    def delete(self, *items: int) -> None:
        for item in items:
            self.connection.execute("DELETE FROM vectors WHERE item = ?", (item,))
        self.change += 1
        self._count()

    def _count(self) -> None:
        self.connection.execute(
            "UPDATE state SET change = ?, items = (SELECT count(*) FROM vectors)", (self.change,)
        )

    def rows(self) -> list[tuple[int, int, bytes]]:
        return self.connection.execute(
            "SELECT item, change, bytes FROM vectors ORDER BY change"
        ).fetchall()


def random_vectors(count: int, seed: int = 1) -> "np.ndarray[Any, Any]":
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(20, DIMS))
    vectors = centres[rng.integers(20, size=count)] + rng.normal(size=(count, DIMS)) * 0.7
    made: np.ndarray[Any, Any] = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(
        np.float32
    )
    return made


def exact(table: Table, query: Any, count: int) -> list[int]:
    rows = table.rows()
    cosines = unpack((content for _, _, content in rows), DIMS) @ query
    return [rows[at][0] for at in np.argsort(-cosines, kind="stable")[:count]]


def best(found: dict[int, float] | None, count: int) -> list[int]:
    assert found is not None
    return sorted(found, key=lambda id: -found[id])[:count]


def graphed(table: Table, *, limit: int = 100) -> VectorCache:
    cache = VectorCache(IDENTITY, exact_limit=limit)
    cache.refresh(table.connection, MODEL)
    builder = cache.new_graph()
    builder.add([row for row in table.rows() if len(row[2]) == 2 * DIMS], threads=1)
    assert cache.adopt(builder)
    cache.refresh(table.connection, MODEL)
    return cache

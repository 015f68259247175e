"""Graphs: every vector is found, also the strays that no link leads to."""

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store.vectors.ann import serialise
from store.vectors.cache import VectorCache
from store.vectors.snapshot import SnapshotHeader
from store.vectors.stored import stored_cosines
from tests.store.vectors.table import (
    DIMS,
    IDENTITY,
    MODEL,
    Table,
    best,
    graphed,
    random_vectors,
)


def lossy(table: Table, hidden: set[int]) -> VectorCache:
    """A cache whose graph never finds some items, as if no link led to them."""
    cache = VectorCache(IDENTITY, exact_limit=100)
    cache.refresh(table.connection, MODEL)
    builder = cache.new_graph()
    builder.add(table.rows(), threads=1)
    builder.graph = Lossy(builder.graph, hidden)
    builder.find_strays(builder.keys(), threads=1)
    assert cache.adopt(builder)
    return cache


class Lossy:
    """A usearch index that leaves some keys out of its results."""

    def __init__(self, graph: Any, hidden: set[int]) -> None:
        self.__dict__.update(graph=graph, hidden=hidden)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.graph, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.graph, name, value)

    def __len__(self) -> int:
        return len(self.graph)

    def __contains__(self, key: int) -> bool:
        return key in self.graph

    def search(self, queries: Any, count: int, **options: Any) -> Any:
        found = self.graph.search(queries, count, **options)
        is_hidden = np.isin(found.keys, list(self.hidden))
        found.keys[is_hidden] = 0
        found.distances[is_hidden] = 2.0
        return found


def test_strays_of_a_graph_are_found(table: Table) -> None:
    vectors = random_vectors(300)
    table.put(vectors)
    hidden = {7, 41, 300}
    cache = lossy(table, hidden)
    for item in (*hidden, 8):
        assert best(cache.nearest(vectors[item - 1], 20), 1) == [item]
    assert cache.nearest(vectors[6], 20) is not None
    cache.discard([7], table.change)
    assert 7 not in (cache.nearest(vectors[6], 20) or {}), "gone is gone, beside the graph too"


def test_a_new_vector_takes_the_place_of_a_stray(table: Table) -> None:
    vectors = random_vectors(300)
    table.put(vectors)
    cache = lossy(table, {7})
    elsewhere = -vectors[6:7]
    table.put(elsewhere, first=7)
    for _ in range(2):
        cache.refresh(table.connection, MODEL)
        found = cache.nearest(vectors[6], 200)
        assert found is not None and found.get(7, -1.0) < 0.0
        assert cache.nearest(vectors[6], 300) is None, "who wants everything has to scan"
        assert best(cache.nearest(elsewhere[0], 20), 1) == [7]
        cache._graph.hidden.clear()
        cache.extend(at_least=1)
        assert cache.coverage().matrix == 0


def test_strays_come_back_with_the_snapshot(table: Table, tmp_path: Path) -> None:
    vectors = random_vectors(300)
    table.put(vectors)
    path = tmp_path / "vectors.snapshot"
    header = lossy(table, {7, 41}).save(path, "bank", nullcontext())
    assert header is not None and set(header.strays) == {7, 41}
    cache = VectorCache(IDENTITY, exact_limit=100)
    assert cache.load(path, "bank", table.change)
    cache._graph = Lossy(cache._graph, {7, 41})
    cache.refresh(table.connection, MODEL)
    for item in (7, 41):
        found = cache.nearest(vectors[item - 1], 20)
        assert best(found, 1) == [item] and found is not None
        assert found[item] == pytest.approx(1.0, abs=0.005)


def test_equal_vectors_are_not_strays_of_each_other(table: Table) -> None:
    table.put(np.repeat(random_vectors(10), 30, axis=0))
    cache = VectorCache(IDENTITY, exact_limit=100)
    cache.refresh(table.connection, MODEL)
    builder = cache.new_graph()
    builder.add(table.rows(), threads=2)
    builder.find_strays(builder.keys(), threads=2)
    assert len(builder.strays) < 60
    assert cache.adopt(builder)
    cache.refresh(table.connection, MODEL)
    for query in random_vectors(10):
        found = best(cache.nearest(query, 40), 10)
        cosines = stored_cosines(table.connection, query, MODEL, found)
        assert min(cosines.values()) > 0.999


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), words=st.integers(3, 12))
def test_every_vector_of_a_graph_made_by_two_threads_is_found_by_itself(
    seed: int, words: int
) -> None:
    """Near-duplicates, the data graphs are worst at: few directions, many ties."""
    rng = np.random.default_rng(seed)
    vectors = np.full((300, DIMS), 0.01, dtype=np.float32)
    for row in vectors:
        row[rng.integers(words, size=4)] += 1.0
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    table = Table()
    table.put(vectors)
    cache = VectorCache(IDENTITY, exact_limit=100)
    builder = cache.new_graph()
    for start in range(0, 300, 32):
        builder.add(table.rows()[start : start + 32], threads=2)
    builder.find_strays(builder.keys(), threads=2)
    assert cache.adopt(builder)
    cache.refresh(table.connection, MODEL)
    for query in vectors:
        cosines = stored_cosines(
            table.connection, query, MODEL, list(cache.nearest(query, 40) or ())
        )
        assert max(cosines.values()) > 0.999
    table.connection.close()


def test_other_threads_can_run_while_a_graph_is_saved_or_loaded(table: Table) -> None:
    table.put(random_vectors(300))
    cache = graphed(table)
    calls: list[str] = []

    class Watched:
        """A graph that counts how often usearch calls back into Python."""

        def __init__(self, graph: Any) -> None:
            self.graph = graph

        def save(self, target: None, progress: Callable[[int, int], bool]) -> Any:
            def count(done: int, total: int) -> bool:
                calls.append("save")
                return progress(done, total)

            return self.graph.save(target, progress=count)

        def load(self, content: Any, progress: Callable[[int, int], bool]) -> None:
            def count(done: int, total: int) -> bool:
                calls.append("load")
                return progress(done, total)

            self.graph.load(content, progress=count)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.graph, name)

        def __len__(self) -> int:
            return len(self.graph)

    content = serialise(Watched(cache._graph))
    builder = cache.new_graph()
    builder.graph = Watched(builder.graph)
    header = SnapshotHeader(
        bank="b", model="m", dims=DIMS, library="", metric="", dtype="", change=1,
        count=300, strays=(), graph_bytes=len(content),
    )  # fmt: skip
    builder.restore(header, memoryview(content))

    assert calls.count("save") >= 300 and calls.count("load") >= 300

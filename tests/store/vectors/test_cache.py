"""The vector cache: exact comparison for few vectors, a graph for many."""

from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store.vectors.cache import VectorCache
from store.vectors.stored import scan, stored_cosines
from tests.store.vectors.table import (
    DIMS,
    IDENTITY,
    MODEL,
    Table,
    best,
    exact,
    graphed,
    random_vectors,
)


def held(cache: VectorCache) -> set[int]:
    """Every item the cache could find."""
    graphed = set() if cache._graph is None else {int(key) for key in cache._graph.keys}
    assert not graphed & set(cache._matrix), "in one place only"
    return graphed | set(cache._matrix)


def test_few_vectors_are_all_compared_and_the_nearest_are_among_those_found(table: Table) -> None:
    table.put(random_vectors(300))
    cache = VectorCache(IDENTITY)
    cache.refresh(table.connection, MODEL)
    for query in random_vectors(20, seed=2):
        found = cache.nearest(query, 20)
        assert found is not None and len(found) == 20
        assert set(exact(table, query, 10)) <= set(found)
        cosines = stored_cosines(table.connection, query, MODEL, list(found))
        assert all(abs(found[id] - cosines[id]) < 0.01 for id in found)


def test_a_vector_written_after_the_last_search_is_found_by_the_next(table: Table) -> None:
    table.put(random_vectors(50))
    cache = VectorCache(IDENTITY)
    cache.refresh(table.connection, MODEL)
    new = random_vectors(1, seed=9)
    table.put(new, first=51)
    assert best(cache.nearest(new[0], 1), 1) != [51]
    cache.refresh(table.connection, MODEL)
    assert best(cache.nearest(new[0], 1), 1) == [51]


def test_a_rewritten_vector_takes_the_place_of_the_old_one(table: Table) -> None:
    old, new = random_vectors(2, seed=3)
    table.put(np.stack([old]))
    cache = VectorCache(IDENTITY)
    cache.refresh(table.connection, MODEL)
    table.put(np.stack([new]))
    cache.refresh(table.connection, MODEL)
    found = cache.nearest(new, 5)
    assert found is not None and list(found) == [1] and found[1] > 0.99


def test_vectors_of_another_model_are_not_looked_at(table: Table) -> None:
    table.put(random_vectors(3))
    table.put(random_vectors(3, seed=2), first=10, model=2)
    cache = VectorCache(IDENTITY)
    cache.refresh(table.connection, MODEL)
    assert set(cache.nearest(random_vectors(1)[0], 10) or ()) == {1, 2, 3}


def test_many_vectors_without_a_graph_are_scanned_and_with_one_are_not(table: Table) -> None:
    table.put(random_vectors(500))
    cache = VectorCache(IDENTITY, exact_limit=100)
    cache.refresh(table.connection, MODEL)
    query = random_vectors(1, seed=4)[0]
    assert cache.nearest(query, 10) is None and cache.needs_graph
    found, is_all = scan(table.connection, query, MODEL, 10)
    assert is_all and list(found) == exact(table, query, 10)
    ready = graphed(table)
    assert not ready.needs_graph
    assert ready.coverage().graph == 500 and ready.coverage().matrix == 0


def test_the_graph_agrees_with_exact_search(table: Table) -> None:
    table.put(random_vectors(3_000))
    cache = graphed(table)
    hits = 0
    for query in random_vectors(50, seed=5):
        candidates = list(cache.nearest(query, 60) or ())
        cosines = stored_cosines(table.connection, query, MODEL, candidates)
        hits += len(set(best(cosines, 10)) & set(exact(table, query, 10)))
    assert hits / 500 >= 0.98


def test_newer_vectors_are_in_the_tail_and_move_into_the_graph(table: Table) -> None:
    table.put(random_vectors(300))
    cache = graphed(table)
    new = random_vectors(40, seed=6)
    table.put(new, first=290)  # eleven of them replace vectors in the graph
    cache.refresh(table.connection, MODEL)
    for at in (0, 20, 39):
        assert best(cache.nearest(new[at], 1), 1) == [290 + at]
    assert cache.extend(at_least=1_000) == 0, "too few to be worth it"
    assert cache.extend(at_least=10) == 40
    assert cache.coverage().matrix == 0 and cache.coverage().graph == 329
    for at in (0, 20, 39):
        assert best(cache.nearest(new[at], 3), 1) == [290 + at]


def test_a_deleted_item_is_dropped_after_a_search_has_reported_it(table: Table) -> None:
    vectors = random_vectors(300)
    table.put(vectors)
    for cache in (graphed(table), VectorCache(IDENTITY)):
        cache.refresh(table.connection, MODEL)
        assert 7 in (cache.nearest(vectors[6], 5) or ())
        cache.discard([7], table.change)
        assert 7 not in (cache.nearest(vectors[6], 5) or ())


def test_a_crowd_that_is_gone_does_not_stand_in_the_way(table: Table) -> None:
    crowd = random_vectors(1, seed=9) + 0.02 * random_vectors(150, seed=10)
    crowd /= np.linalg.norm(crowd, axis=1, keepdims=True)
    table.put(np.vstack([random_vectors(200), crowd.astype(np.float32)]))
    cache = graphed(table)
    gone = range(201, 351)
    assert set(best(cache.nearest(crowd[0], 20), 20)) <= set(gone)
    table.delete(*gone)
    cache.discard(gone, table.change)
    assert best(cache.nearest(crowd[0], 20), 5) == exact(table, crowd[0], 5)
    assert len(cache.nearest(crowd[0], 20) or ()) == 20


def test_a_crowd_that_moved_does_not_stand_in_the_way(table: Table) -> None:
    crowd = random_vectors(1, seed=9) + 0.02 * random_vectors(150, seed=10)
    crowd /= np.linalg.norm(crowd, axis=1, keepdims=True)
    table.put(np.vstack([random_vectors(200), crowd.astype(np.float32)]))
    cache = graphed(table)
    table.put(-crowd.astype(np.float32), first=201)
    cache.refresh(table.connection, MODEL)
    found = cache.nearest(crowd[0], 20)
    assert best(found, 5) == exact(table, crowd[0], 5)
    while cache.extend(at_least=1):
        pass
    assert best(cache.nearest(crowd[0], 20), 5) == exact(table, crowd[0], 5)
    assert best(cache.nearest(-crowd[0], 20), 1)[0] > 200


@pytest.mark.parametrize(
    "content",
    [b"", b"\x00\x11", b"\xff" * 2 * DIMS, b"\x00\x7c" * DIMS],
    ids=["empty", "short", "no number", "endless"],
)
@pytest.mark.parametrize("limit", [100, 1000], ids=["graph", "matrix"])
def test_a_damaged_vector_is_passed_over(table: Table, content: bytes, limit: int) -> None:
    vectors = random_vectors(300)
    table.put(vectors)
    table.connection.execute("UPDATE vectors SET bytes = ? WHERE item = 7", (content,))
    cache = graphed(table, limit=limit) if limit < 300 else VectorCache(IDENTITY)
    cache.refresh(table.connection, MODEL)
    assert best(cache.nearest(vectors[7], 20), 1) == [8]
    found, is_all = scan(table.connection, vectors[7], MODEL, 20)
    assert is_all and best(found, 1) == [8]
    cosines = stored_cosines(table.connection, vectors[7], MODEL, [7, 8])
    assert cosines[8] == pytest.approx(1.0, abs=0.01) and abs(cosines.get(7, 0.0)) <= 1.0


def test_a_search_in_an_older_transaction_cannot_drop_newer_vectors(
    table: Table,
) -> None:
    table.put(random_vectors(10))
    older = table.change
    new = random_vectors(1, seed=8)
    table.put(new, first=11)
    cache = VectorCache(IDENTITY)
    cache.refresh(table.connection, MODEL)
    cache.discard([11], older)
    assert 11 in (cache.nearest(new[0], 5) or ())


def test_a_graph_with_much_dead_in_it_asks_to_be_built_again(table: Table) -> None:
    table.put(random_vectors(300))
    cache = graphed(table)
    cache.discard(range(1, 80), table.change)
    assert not cache.needs_graph
    cache.discard(range(80, 120), table.change)
    assert cache.needs_graph


def test_among_compares_only_the_allowed_and_all_of_them(table: Table) -> None:
    table.put(random_vectors(200))
    cache = VectorCache(IDENTITY)
    cache.refresh(table.connection, MODEL)
    query = random_vectors(1, seed=4)[0]
    allowed = np.array([3, 50, 199, 4_000])
    assert set(cache.among(query, allowed, 10) or ()) == {3, 50, 199}
    assert graphed(table).among(query, allowed, 10) is None


def test_a_reset_drops_everything_and_voids_graphs_begun_before_it(
    table: Table, tmp_path: Path
) -> None:
    table.put(random_vectors(300))
    cache = graphed(table)
    begun = cache.new_graph()
    cache.reset()
    assert cache.coverage().graph == 0
    assert not cache.adopt(begun)
    assert cache.save(tmp_path / "s", "bank", nullcontext()) is None
    assert not (tmp_path / "s").exists()


def test_a_reset_while_a_snapshot_waits_for_the_files_leaves_no_file(
    table: Table, tmp_path: Path
) -> None:
    table.put(random_vectors(300))
    cache = graphed(table)

    class ResetsFirst:
        def __enter__(self) -> None:
            cache.reset()

        def __exit__(self, *_: object) -> None:
            return

    assert cache.save(tmp_path / "s", "bank", ResetsFirst()) is None
    assert list(tmp_path.iterdir()) == []


@settings(max_examples=25)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("put"), st.integers(min_value=1, max_value=30)),
            st.tuples(st.just("delete"), st.integers(min_value=1, max_value=30)),
            st.tuples(st.just("extend"), st.just(0)),
            st.tuples(st.just("build"), st.just(0)),
            st.tuples(st.just("reset"), st.just(0)),
        ),
        max_size=25,
    )
)
def test_after_any_history_the_cache_and_the_bank_name_the_same_items(
    history: list[tuple[str, int]],
) -> None:
    table = Table()
    cache = VectorCache(IDENTITY, exact_limit=1_000)
    vectors = random_vectors(31)
    for step, (act, item) in enumerate(history):
        if act == "put":
            table.put(random_vectors(1, seed=step), first=item)
        elif act == "delete":
            table.delete(item)
        elif act == "extend":
            cache.extend(at_least=1)
        elif act == "build":
            builder = cache.new_graph()
            builder.add(table.rows(), threads=1)
            builder.covered = max(builder.covered, 0)
            cache.adopt(builder)
        else:
            cache.reset()
        cache.refresh(table.connection, MODEL)
        stored = {id for id, _, _ in table.rows()}
        found = held(cache)
        cache.discard(found - stored, table.change)
        assert found >= stored, "nothing that is there may be missing"
        assert held(cache) == stored
        few = cache.nearest(vectors[0], 1)
        assert few is None or (set(few) <= stored and bool(few) == bool(stored))
    table.connection.close()

"""Nearest vectors: exact while few, a graph when many, a snapshot that is checked before use."""

import sqlite3
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store.embedding.embedder import Identity
from store.sqlite.vectors.cache import VectorCache, scan, stored_cosines
from store.sqlite.vectors.matrix import pack, unpack
from store.sqlite.vectors.snapshot import SnapshotBroken, read_snapshot, remove_snapshot

DIMS = 32
IDENTITY = Identity(name="fake", revision="1", dims=DIMS)
MODEL = 1


class Table:
    """A bank's `vectors`, `items` and `state`, as far as the cache looks at them."""

    def __init__(self) -> None:
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
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


@pytest.fixture
def table() -> Iterator[Table]:
    made = Table()
    yield made
    made.connection.close()


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


def test_what_is_newer_than_the_graph_is_its_tail_and_moves_into_it(table: Table) -> None:
    table.put(random_vectors(300))
    cache = graphed(table)
    new = random_vectors(40, seed=6)
    table.put(new, first=290)  # eleven of them rewrite what the graph holds
    cache.refresh(table.connection, MODEL)
    for at in (0, 20, 39):
        assert best(cache.nearest(new[at], 1), 1) == [290 + at]
    assert cache.extend(at_least=1_000) == 0, "too few to be worth it"
    assert cache.extend(at_least=10) == 40
    assert cache.coverage().matrix == 0 and cache.coverage().graph == 329
    for at in (0, 20, 39):
        assert best(cache.nearest(new[at], 3), 1) == [290 + at]


def test_what_is_gone_is_dropped_once_a_search_has_missed_it(table: Table) -> None:
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


def test_a_search_in_an_older_transaction_cannot_drop_what_a_newer_one_has_read(
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


def test_a_reset_forgets_everything_and_voids_what_was_begun_before_it(
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


def test_a_scan_obeys_a_condition_and_says_when_it_stopped_early(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.put(random_vectors(30))
    table.connection.execute("UPDATE items SET kind = 'task' WHERE id <= 5")
    query = random_vectors(1)[0]
    found, _ = scan(table.connection, query, MODEL, 10, "items.kind = ?", ["task"])
    assert set(found) == {1, 2, 3, 4, 5}
    monkeypatch.setattr("store.sqlite.vectors.cache.SCAN_LIMIT", 20)
    found, is_all = scan(table.connection, query, MODEL, 30)
    assert not is_all and min(found) >= 10


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


# --- strays: what a graph holds and does not lead to ---------------------------------------------


def lossy(table: Table, hidden: set[int]) -> VectorCache:
    """A cache whose graph never finds some items, as if no link led to them."""
    cache = VectorCache(IDENTITY, exact_limit=100)
    cache.refresh(table.connection, MODEL)
    builder = cache.new_graph()
    builder.add(table.rows(), threads=1)
    builder.graph = Lossy(builder.graph, hidden)
    builder.look_for(builder.keys(), threads=1)
    assert cache.adopt(builder)
    return cache


class Lossy:
    """A usearch index, except that some keys are left out of what it finds."""

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


def test_what_a_graph_does_not_lead_to_is_found_all_the_same(table: Table) -> None:
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
    builder.look_for(builder.keys(), threads=2)
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
    builder.look_for(builder.keys(), threads=2)
    assert cache.adopt(builder)
    cache.refresh(table.connection, MODEL)
    for query in vectors:
        cosines = stored_cosines(
            table.connection, query, MODEL, list(cache.nearest(query, 40) or ())
        )
        assert max(cosines.values()) > 0.999
    table.connection.close()


# --- snapshots ------------------------------------------------------------------------------------


@pytest.fixture
def saved(table: Table, tmp_path: Path) -> Path:
    table.put(random_vectors(300))
    path = tmp_path / "vectors.snapshot"
    assert graphed(table).save(path, "bank", nullcontext()) is not None
    return path


def test_a_saved_graph_comes_back_and_answers_alike(table: Table, saved: Path) -> None:
    cache = VectorCache(IDENTITY, exact_limit=100)
    assert cache.load(saved, "bank", table.change)
    table.put(random_vectors(5, seed=7), first=301)
    cache.refresh(table.connection, MODEL)
    assert cache.coverage().graph == 300 and cache.coverage().matrix == 5
    query = random_vectors(1, seed=4)[0]
    assert best(cache.nearest(query, 60), 3) == exact(table, query, 3)
    assert [file.name for file in saved.parent.iterdir()] == ["vectors.snapshot"]


def test_no_snapshot_is_no_error(table: Table, tmp_path: Path) -> None:
    assert not VectorCache(IDENTITY).load(tmp_path / "absent", "bank", 0)


def refused(
    path: Path,
    table: Table,
    *,
    bank: str = "bank",
    change: int | None = None,
    identity: Identity = IDENTITY,
) -> str:
    cache = VectorCache(identity, exact_limit=100)
    with pytest.raises(SnapshotBroken) as caught:
        cache.load(path, bank, table.change if change is None else change)
    assert not path.exists(), "set aside, so that a new one can take its place"
    assert path.with_name(path.name + ".damaged").exists()
    return caught.value.why


def test_a_snapshot_of_another_bank_model_or_time_is_refused(table: Table, saved: Path) -> None:
    content = saved.read_bytes()
    assert refused(saved, table, bank="other") == "of another bank"
    saved.write_bytes(content)
    assert refused(saved, table, change=10) == "newer than the bank"
    saved.write_bytes(content)
    other = Identity(name="fake", revision="2", dims=DIMS)
    assert refused(saved, table, identity=other) == "of another model"


def test_no_single_damaged_byte_reaches_the_graph_library(table: Table, saved: Path) -> None:
    content = saved.read_bytes()
    rng = np.random.default_rng(3)
    places = {0, 9, 20, len(content) - 1, *map(int, rng.integers(len(content), size=60))}
    for place in places:
        damaged = bytearray(content)
        damaged[place] ^= 0x41
        saved.write_bytes(damaged)
        with pytest.raises(SnapshotBroken):
            read_snapshot(saved, lambda header, graph: pytest.fail("handed out"))


def test_a_snapshot_cut_anywhere_is_refused(table: Table, saved: Path) -> None:
    content = saved.read_bytes()
    for share in range(0, 100, 4):
        saved.write_bytes(content[: len(content) * share // 100])
        with pytest.raises(SnapshotBroken):
            read_snapshot(saved, lambda header, graph: pytest.fail("handed out"))
    saved.write_bytes(content + b"\x00")
    with pytest.raises(SnapshotBroken):
        read_snapshot(saved, lambda header, graph: pytest.fail("handed out"))


def test_a_failed_write_leaves_the_old_snapshot_and_no_scraps(
    table: Table, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = saved.read_bytes()

    def fail(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("store.sqlite.vectors.snapshot.os.fsync", fail)
    with pytest.raises(OSError, match="No space"):
        graphed(table).save(saved, "bank", nullcontext())
    assert saved.read_bytes() == content
    assert [file.name for file in saved.parent.iterdir()] == ["vectors.snapshot"]


def test_removing_leaves_no_copy(table: Table, saved: Path) -> None:
    saved.with_name(saved.name + ".damaged").write_bytes(b"x")
    saved.with_name(saved.name + ".tmp").write_bytes(b"x")
    assert remove_snapshot(saved) == 3
    assert list(saved.parent.iterdir()) == []
    assert remove_snapshot(saved) == 0

"""Snapshots: written whole, verified before use."""

from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from store.embedding.embedder import Identity
from store.vectors.cache import VectorCache
from store.vectors.snapshot import SnapshotBroken, read_snapshot
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

    monkeypatch.setattr("store.vectors.snapshot.os.fsync", fail)
    with pytest.raises(OSError, match="No space"):
        graphed(table).save(saved, "bank", nullcontext())
    assert saved.read_bytes() == content
    assert [file.name for file in saved.parent.iterdir()] == ["vectors.snapshot"]

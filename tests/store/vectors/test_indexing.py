"""Behind the answers: vectors are made, survive restarts, follow their model, and get a graph."""

import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from store.embedding.embedder import Embedder
from store.embedding.hashed import HashedFeatures
from store.model import NewMemory, Query, Stage
from store.search.hybrid import HybridRanking
from store.sqlite.database import Connection
from store.sqlite.engine import EmbeddedEngine, open_engine
from store.vectors import indexing, stored
from store.vectors import pending as missing
from store.vectors.matrix import pack
from tests.support.embedder import FakeEmbedder
from tests.support.real_ranking import small_graphs

BANK = "b"


@asynccontextmanager
async def opened(directory: Path, embedder: Embedder) -> AsyncIterator[EmbeddedEngine]:
    def ranking(background: object) -> HybridRanking:
        return HybridRanking(background, embedder)  # type: ignore[arg-type]  # a task group

    async with open_engine(directory, ranking=ranking) as engine:
        yield engine


async def pending(engine: EmbeddedEngine) -> int:
    return (await engine.stats(BANK)).pending_vectors


async def put(engine: EmbeddedEngine, *texts: str) -> list[str]:
    made = await engine.put_many(BANK, [NewMemory(text=text) for text in texts])
    return [one.id for one in made]


async def best(engine: EmbeddedEngine, text: str) -> str:
    return (await engine.search(Query(bank=BANK, text=text, mode="semantic"))).hits[0].item.text


def snapshots(directory: Path) -> list[Path]:
    return sorted(directory.rglob("vectors.snapshot*"))


@pytest.fixture
def few() -> Iterator[None]:
    """A graph is for more than fifty here, and its tail moves at ten."""
    with small_graphs(graph_from=50, extend_at=10, batch=16, page=32):
        yield


async def test_settling_makes_every_missing_vector(tmp_path: Path) -> None:
    async with opened(tmp_path, FakeEmbedder()) as engine:
        await put(engine, *(f"note {n}" for n in range(300)))
        assert await pending(engine) == 300
        await engine.settle(BANK)
        assert await pending(engine) == 0


@pytest.mark.usefixtures("few")
async def test_settle_reports_its_progress(tmp_path: Path) -> None:
    heard: list[Stage] = []
    async with opened(tmp_path, FakeEmbedder()) as engine:
        await put(engine, *(f"note {n}" for n in range(100)))
        await engine.settle(BANK, watch=heard.append)
    embedded = [stage.done for stage in heard if stage.phase == "embedding"]
    assert embedded == [16, 32, 48, 64, 80, 96, 100]
    assert {stage.total for stage in heard if stage.phase == "embedding"} == {100}
    built = [stage for stage in heard if stage.phase == "building"]
    assert built and built[-1].done == built[-1].total
    checked = [stage.done for stage in heard if stage.phase == "checking"]
    assert checked == [32, 64, 96, 100], "every vector of the graph was looked for"
    assert heard[-1].phase == "saving"


async def test_pending_vectors_are_computed_after_a_restart(tmp_path: Path) -> None:
    async with opened(tmp_path, FakeEmbedder()) as engine:
        await put(engine, "The kitten is asleep", "A car")
    async with opened(tmp_path, FakeEmbedder()) as engine:
        assert await best(engine, "feline") == "The kitten is asleep"
        assert await pending(engine) == 0


async def test_many_missing_vectors_are_said_and_made_behind_the_answer(tmp_path: Path) -> None:
    async with opened(tmp_path, FakeEmbedder()) as engine:
        await put(engine, *(f"note {n}" for n in range(200)))
        found = await engine.search(Query(bank=BANK, text="note 7"))
        assert "vectors-pending" in found.degraded and found.hits
        await engine.settle(BANK)
        assert (await engine.search(Query(bank=BANK, text="note 7"))).degraded == ()


async def test_another_revision_of_the_model_makes_all_vectors_anew(tmp_path: Path) -> None:
    async with opened(tmp_path, FakeEmbedder()) as engine:
        await put(engine, "The kitten is asleep", "A car")
        await engine.settle(BANK)
    newer = FakeEmbedder(revision="2")
    async with opened(tmp_path, newer) as engine:
        assert await best(engine, "feline") == "The kitten is asleep"
        assert {"The kitten is asleep", "A car"} <= set(newer.texts)


async def test_vectors_with_meaning_are_not_thrown_away_for_hashed_ones(tmp_path: Path) -> None:
    async with opened(tmp_path, FakeEmbedder()) as engine:
        await put(engine, "The kitten is asleep")
        await engine.settle(BANK)
    async with opened(tmp_path, HashedFeatures()) as engine:
        found = await engine.search(Query(bank=BANK, text="kitten"))
        assert found.mode == "keyword" and found.degraded == ("model-missing",)
        assert "embedder-without-meaning" in engine.health().degraded
    back = FakeEmbedder()
    async with opened(tmp_path, back) as engine:
        assert await best(engine, "feline") == "The kitten is asleep"
        assert back.texts == ["feline"], "the old vectors were still there"


async def test_hashed_features_give_way_to_a_real_model(tmp_path: Path) -> None:
    async with opened(tmp_path, HashedFeatures()) as engine:
        await put(engine, "The kitten is asleep", "A car")
        assert await best(engine, "kittens") == "The kitten is asleep"
    async with opened(tmp_path, FakeEmbedder()) as engine:
        assert await best(engine, "feline") == "The kitten is asleep"


async def test_a_text_changed_while_it_was_being_embedded_gets_its_new_vector(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, FakeEmbedder()) as engine:
        (id,) = await put(engine, "The kitten is asleep")
        async with engine._registry.use(BANK) as bank:
            batch = await bank.database.read(missing.next_pending)
            await engine.change(BANK, id, text="A puppy")
            vectors = pack(FakeEmbedder().embed([one.text for one in batch]))
            computed = [missing.Computed(vector, None) for vector in vectors]

            def store(connection: Connection) -> None:
                model = indexing._adopt(connection, FakeEmbedder().identity, True)
                assert model is not None
                missing.store(connection, model, batch, computed)

            await bank.database.write(store)
        assert await pending(engine) == 1, "the vector of the old text was not stored"
        assert await best(engine, "hound") == "A puppy"


@pytest.mark.usefixtures("few")
async def test_a_large_bank_gets_a_graph_a_snapshot_and_a_tail(tmp_path: Path) -> None:
    async with opened(tmp_path, FakeEmbedder()) as engine:
        await put(engine, "The kitten is asleep", *(f"note {n} of many" for n in range(120)))
        await engine.settle(BANK)
        (snapshot,) = snapshots(tmp_path)
        assert await best(engine, "feline") == "The kitten is asleep"
        await put(engine, "We swim in the lake")
        assert await best(engine, "pond") == "We swim in the lake"
        before = snapshot.stat().st_ino
        await put(engine, *(f"another {n}" for n in range(30)))
        await engine.settle(BANK)
        assert snapshot.stat().st_ino != before, "grown by a tenth, it is written again"
    async with opened(tmp_path, FakeEmbedder()) as engine:
        assert await best(engine, "feline") == "The kitten is asleep"
        assert await best(engine, "pond") == "We swim in the lake"
        await engine.settle(BANK)
        assert await best(engine, "feline") == "The kitten is asleep"
        assert engine.health().degraded == ()


@pytest.mark.usefixtures("few")
async def test_a_broken_snapshot_is_set_aside_and_made_again_while_answers_stay_right(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, FakeEmbedder()) as engine:
        await put(engine, "The kitten is asleep", *(f"note {n} of many" for n in range(120)))
        await engine.settle(BANK)
    (snapshot,) = snapshots(tmp_path)
    content = bytearray(snapshot.read_bytes())
    content[len(content) // 2] ^= 0xFF
    snapshot.write_bytes(content)
    async with opened(tmp_path, FakeEmbedder()) as engine:
        assert await best(engine, "feline") == "The kitten is asleep"
        await engine.settle(BANK)
        assert await best(engine, "feline") == "The kitten is asleep"
        assert snapshot.with_name("vectors.snapshot.damaged").exists()
        assert snapshot.exists(), "a new one was made"
        found = await engine.search(Query(bank=BANK, text="feline"))
        assert found.degraded == ()


@pytest.mark.usefixtures("few")
async def test_erasing_leaves_no_graph_that_remembers(tmp_path: Path) -> None:
    async with opened(tmp_path, FakeEmbedder()) as engine:
        ids = await put(engine, "The kitten is asleep", *(f"note {n}" for n in range(120)))
        await engine.settle(BANK)
        await engine.erase(BANK, ids[:1])
        assert snapshots(tmp_path) == []
        await engine.settle(BANK)
        found = await engine.search(Query(bank=BANK, text="feline", mode="semantic", limit=100))
        assert "The kitten is asleep" not in [hit.item.text for hit in found.hits]


async def test_a_failing_model_leaves_the_vectors_missing_and_says_so(tmp_path: Path) -> None:
    embedder = FakeEmbedder()
    async with opened(tmp_path, embedder) as engine:
        await put(engine, *(f"note {n}" for n in range(100)))
        embedder.is_failing = True
        await engine.settle(BANK)
        assert await pending(engine) == 100
        assert "embedder-failed" in engine.health().degraded
        embedder.is_failing = False
        await engine.settle(BANK)
        assert await pending(engine) == 0
        assert engine.health().degraded == ()


def test_a_process_that_leaves_while_vectors_are_made_ends_in_order(tmp_path: Path) -> None:
    program = """
import sys, anyio
from pathlib import Path
from store.sqlite.engine import open_engine
from store.model import NewMemory, Query

async def main():
    async with open_engine(Path(sys.argv[1])) as engine:
        await engine.put_many("b", [NewMemory(text=f"note number {n} of many") for n in range(400)])
        await engine.search(Query(bank="b", text="a note"))

anyio.run(main)
"""
    for attempt in range(3):
        ended = subprocess.run(
            [sys.executable, "-c", program, str(tmp_path / str(attempt))],
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr.decode()


@pytest.mark.usefixtures("few")
async def test_the_first_search_after_a_restart_already_has_the_graph(tmp_path: Path) -> None:
    async with opened(tmp_path, FakeEmbedder()) as engine:
        await put(engine, *(f"note {n}" for n in range(100)), "The kitten is asleep")
        await engine.settle(BANK)
    async with opened(tmp_path, FakeEmbedder()) as engine:
        found = await engine.search(Query(bank=BANK, text="feline", mode="semantic"))
        assert found.degraded == () and found.hits[0].item.text == "The kitten is asleep"


@pytest.mark.usefixtures("few")
async def test_a_scan_that_takes_too_long_returns_partial_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path, FakeEmbedder()) as engine:
        await put(engine, *(f"note {n}" for n in range(2_000)), "The kitten is asleep")
        await engine.settle(BANK)
    for file in snapshots(tmp_path):
        file.unlink()
    monkeypatch.setattr(stored, "SCAN_SECONDS", 0.0)
    async with opened(tmp_path, FakeEmbedder()) as engine:
        found = await engine.search(Query(bank=BANK, text="feline", mode="semantic"))
        assert {"vectors-partial", "vectors-scanned"} <= set(found.degraded)
        assert found.hits[0].item.text == "The kitten is asleep", "the newest are looked at first"
        await engine.settle(BANK)
        found = await engine.search(Query(bank=BANK, text="feline", mode="semantic"))
        assert found.degraded == ()


@pytest.mark.usefixtures("few")
async def test_a_bank_that_cannot_be_indexed_costs_nobody_else_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(connection: Connection) -> None:
        raise ValueError("nobody expected this")

    async with opened(tmp_path, FakeEmbedder()) as engine:
        await put(engine, "The kitten is asleep")
        with monkeypatch.context() as patched:
            patched.setattr(indexing, "next_pending", broken)
            await engine.settle(BANK)
            assert "indexing-stopped" in engine.health().degraded
        await engine.settle(BANK)
        assert await best(engine, "feline") == "The kitten is asleep"
        assert engine.health().degraded == ()


@pytest.mark.usefixtures("few")
async def test_a_broken_snapshot_that_cannot_be_moved_is_no_reason_to_stop(tmp_path: Path) -> None:
    async with opened(tmp_path, FakeEmbedder()) as engine:
        await put(engine, "The kitten is asleep", *(f"note {n}" for n in range(120)))
        await engine.settle(BANK)
    (snapshot,) = snapshots(tmp_path)
    snapshot.write_bytes(b"broken")
    (snapshot.with_name(snapshot.name + ".damaged") / "in the way").mkdir(parents=True)
    async with opened(tmp_path, FakeEmbedder()) as engine:
        assert await best(engine, "feline") == "The kitten is asleep"
        await engine.settle(BANK)
        assert await best(engine, "feline") == "The kitten is asleep"
        assert engine.health().degraded == ()


@pytest.mark.usefixtures("few")
async def test_an_engine_that_is_cut_off_with_graphs_to_save_ends(tmp_path: Path) -> None:
    with anyio.fail_after(10), anyio.CancelScope() as scope:
        async with opened(tmp_path, FakeEmbedder()) as engine:
            for bank in ("a", "b"):
                new = [NewMemory(text=f"note {n}") for n in range(120)]
                await engine.put_many(bank, new)
                await engine.settle(bank)
            for snapshot in snapshots(tmp_path):
                snapshot.unlink()
            for bank in ("a", "b"):
                async with engine._registry.use(bank) as used:
                    indexer = engine._ranking._of(used)  # type: ignore[attr-defined]  # the real one
                    indexer.index._saved = 0
            scope.cancel()
            await anyio.sleep(5)
    assert len(snapshots(tmp_path)) == 2, "what was to be saved is"

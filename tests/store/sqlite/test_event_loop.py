"""The event loop never waits for a lock that a thread may hold for long (store/README, rule 12)."""

import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import anyio
import pytest

from store.model import NewMemory, Query
from store.sqlite.engine import EmbeddedEngine, open_engine
from store.vectors import snapshot
from tests.support.real_ranking import real_ranking, small_graphs

pytestmark = pytest.mark.anyio

HELD_SECONDS = 1.0
PAUSE_SECONDS = 0.6  # longer than a loaded machine delays the loop, shorter than the lock is held


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[EmbeddedEngine]:
    """An engine with a bank whose vectors are in a graph."""
    with small_graphs():
        async with open_engine(tmp_path / "data", ranking=real_ranking) as engine:
            await engine.put_many("w", [NewMemory(text=f"memory number {n}") for n in range(40)])
            await engine.settle("w")
            yield engine


async def longest_pause(work: Callable[[], Awaitable[object]]) -> float:
    """How long the event loop stood still at most while `work` ran."""
    pauses: list[float] = []
    is_done = False

    async def watch() -> None:
        last = time.monotonic()
        while not is_done:
            await anyio.sleep(0.005)
            now = time.monotonic()
            pauses.append(now - last)
            last = now

    async with anyio.create_task_group() as group:
        group.start_soon(watch)
        await anyio.sleep(0.02)
        await work()
        await anyio.sleep(0.02)
        is_done = True
    return max(pauses)


def hold(lock: threading.Lock) -> None:
    """Hold a lock for a while, as a thread does that serialises a graph or writes a snapshot."""
    assert lock.acquire(timeout=10)
    threading.Timer(HELD_SECONDS, lock.release).start()


async def search(engine: EmbeddedEngine) -> None:
    await engine.search(Query(bank="w", text="memory number 7"))


async def settle(engine: EmbeddedEngine) -> None:
    await engine.put_many("w", [NewMemory(text=f"another memory {n}") for n in range(20)])
    await engine.settle("w")


async def rebuild(engine: EmbeddedEngine) -> None:
    await engine.rebuild("w")
    await engine.settle("w")


async def erase(engine: EmbeddedEngine) -> None:
    (item,) = (await engine.recent("w", limit=1)).items
    await engine.erase("w", [item.id])


@pytest.mark.parametrize("operation", [search, settle, rebuild, erase], ids=lambda f: f.__name__)
async def test_the_loop_runs_while_a_thread_holds_the_lock_of_the_vectors(
    engine: EmbeddedEngine, operation: Callable[[EmbeddedEngine], Awaitable[None]]
) -> None:
    (index,) = engine._ranking._indexers.values()  # type: ignore[attr-defined]
    hold(index.index.cache._lock)

    assert await longest_pause(lambda: operation(engine)) < PAUSE_SECONDS


@pytest.mark.parametrize("operation", [settle, rebuild, erase], ids=lambda f: f.__name__)
async def test_the_loop_runs_while_a_thread_holds_the_files_of_the_bank(
    engine: EmbeddedEngine, operation: Callable[[EmbeddedEngine], Awaitable[None]]
) -> None:
    (opened,) = engine._registry.open_banks()
    hold(opened.files)

    assert await longest_pause(lambda: operation(engine)) < PAUSE_SECONDS


async def test_the_loop_runs_while_an_erase_waits_for_a_snapshot_on_a_slow_disk(
    engine: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    writing = threading.Event()
    write = snapshot.write_snapshot

    def slow_write(*arguments: object) -> None:
        writing.set()
        time.sleep(HELD_SECONDS)
        write(*arguments)  # type: ignore[arg-type]

    async def erase_during_write() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(rebuild, engine)
            assert await anyio.to_thread.run_sync(writing.wait, 10)
            await erase(engine)

    monkeypatch.setattr("store.vectors.cache.write_snapshot", slow_write)

    assert await longest_pause(erase_during_write) < PAUSE_SECONDS
    assert (await engine.check("w")).problems == ()

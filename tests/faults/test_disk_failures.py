"""Full and read-only disks, damaged pages, logs and snapshots: a clear error and no data loss."""

import contextlib
import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import UNSET

from daemon.rpc.services import Services
from store.errors import NotFound, StorageError, StorageFull, StorageReadOnly
from store.model import NewMemory, Query
from store.sqlite.engine import EmbeddedEngine, open_engine
from tests.support.plain_ranking import PlainRanking
from tests.support.wire import running_services

pytestmark = [pytest.mark.anyio, pytest.mark.faults]


def mount(*arguments: str) -> bool:
    return subprocess.run(["mount", *arguments], capture_output=True, check=False).returncode == 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MiB that a test can fill and remount read-only."""
    place = tmp_path / "disk"
    place.mkdir()
    if os.geteuid() != 0 or not mount("-t", "tmpfs", "-o", "size=4m", "none", str(place)):
        pytest.skip("mounting a tmpfs needs root and permission to mount")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


async def put_until_refused(engine: EmbeddedEngine) -> tuple[dict[str, str], StorageError]:
    kept: dict[str, str] = {}
    for n in range(10_000):
        text = f"number {n} " + "words " * 400
        try:
            kept[(await engine.put("w", NewMemory(text=text))).id] = text
        except StorageError as error:
            return kept, error
    raise AssertionError("10,000 puts did not fill the disk")


async def everything(engine: EmbeddedEngine) -> dict[str, str]:
    return {item.id: item.text for item in (await engine.recent("w", limit=5_000)).items}


async def test_a_full_disk_fails_writes_serves_reads_and_recovers_with_free_space(
    small_disk: Path,
) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(1_500_000))
    async with open_engine(small_disk / "data", ranking=PlainRanking) as engine:
        kept, error = await put_until_refused(engine)

        assert isinstance(error, StorageFull)
        assert "/" not in str(error)
        assert len(kept) > 5
        assert await everything(engine) == kept
        assert len((await engine.search(Query(bank="w", text="number 3"))).hits) > 0
        with pytest.raises(StorageFull):
            await engine.put("w", NewMemory(text="still no room " + "words " * 400))
        await engine.search(Query(bank="w", text="number 4"))
        assert engine.health().degraded == ("storage-full",)

        ballast.unlink()
        put = await engine.put("w", NewMemory(text="room again"))
        kept[put.id] = "room again"
        assert engine.health().degraded == ()
        assert await everything(engine) == kept
        assert (await engine.check("w")).problems == ()
    async with open_engine(small_disk / "data", ranking=PlainRanking) as engine:
        assert await everything(engine) == kept


async def test_opening_an_engine_on_a_full_disk_damages_nothing(small_disk: Path) -> None:
    async with open_engine(small_disk / "data", ranking=PlainRanking) as engine:
        put = await engine.put("w", NewMemory(text="there before"))
    filler = small_disk / "filler"
    fill(filler)

    try:
        async with open_engine(small_disk / "data", ranking=PlainRanking) as engine:
            with pytest.raises(StorageError):
                await engine.put("w", NewMemory(text="no room"))
    except StorageFull:
        pass  # opening may fail, too

    filler.unlink()
    async with open_engine(small_disk / "data", ranking=PlainRanking) as engine:
        assert await everything(engine) == {put.id: "there before"}


async def test_sessions_opened_on_a_full_disk_are_saved_once_there_is_space(
    small_disk: Path,
) -> None:
    async with running_services(small_disk / "data") as services:
        saved = await open_session(services)
        fill(small_disk / "filler")
        unsaved = [await open_session(services) for _ in range(30)]
        degraded = (await services.health.report(services.surfaces())).degraded
        assert isinstance(degraded, list)
        assert "sessions are not being saved: no space left on the disk" in degraded

        (small_disk / "filler").unlink()
        assert (await services.health.report(services.surfaces())).degraded is UNSET
    async with running_services(small_disk / "data") as services:
        assert await services.sessions.total() == 31
        assert await open_session(services, resume=saved) == saved
        assert await open_session(services, resume=unsaved[-1]) == unsaved[-1]


async def open_session(services: Services, *, resume: str | None = None) -> str:
    return await services.sessions.open(
        resume=resume, transport="memory", client_name=None, client_version=None, bank=None
    )


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))


async def test_opening_an_engine_on_a_read_only_disk_raises_storage_read_only(
    small_disk: Path,
) -> None:
    async with open_engine(small_disk / "data", ranking=PlainRanking) as engine:
        put = await engine.put("w", NewMemory(text="there before"))
    assert mount("-o", "remount,ro", str(small_disk))

    with pytest.raises(StorageReadOnly):
        async with open_engine(small_disk / "data", ranking=PlainRanking) as engine:
            await engine.put("w", NewMemory(text="x"))

    assert mount("-o", "remount,rw", str(small_disk))
    async with open_engine(small_disk / "data", ranking=PlainRanking) as engine:
        assert await everything(engine) == {put.id: "there before"}


# --- damage -----------------------------------------------------------------------------------


async def make_bank(directory: Path, count: int = 60) -> tuple[Path, dict[str, str]]:
    async with open_engine(directory, ranking=PlainRanking) as engine:
        texts = [
            f"memory {n} about the {n % 7} boats " + "and more " * (n % 9) for n in range(count)
        ]
        puts = await engine.put_many("w", [NewMemory(text=text) for text in texts])
        path = engine._registry.directory(await engine.bank("w")) / "bank.db"
    return path, {put.id: text for put, text in zip(puts, texts, strict=True)}


async def test_corrupted_pages_never_return_altered_memories(tmp_path: Path) -> None:
    """SQLite's integrity check misses most of this damage; the digests of the rows detect it."""
    path, kept = await make_bank(tmp_path / "data")
    sound = path.read_bytes()
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    rng = random.Random(seed)
    noticed = 0
    for _ in range(60):
        content = bytearray(sound)
        at = rng.randrange(100, len(content) - 16)
        content[at : at + 16] = rng.randbytes(16)
        path.write_bytes(content)
        for companion in ("-wal", "-shm"):
            path.with_name(path.name + companion).unlink(missing_ok=True)
        try:
            async with open_engine(tmp_path / "data", ranking=PlainRanking) as engine:
                for id, text in kept.items():
                    try:
                        item = await engine.get("w", id)
                    except StorageError:
                        noticed += 1
                    except NotFound:
                        # A damaged index loses the item but does not alter it; `check` says so.
                        assert (await engine.check("w")).problems
                        noticed += 1
                    else:
                        assert (item.id, item.text) == (id, text)
        except StorageError:
            noticed += 1

    assert noticed > 0
    path.write_bytes(sound)


async def test_a_truncated_write_ahead_log_keeps_a_prefix_of_the_commits(tmp_path: Path) -> None:
    async with open_engine(tmp_path / "data", ranking=PlainRanking) as engine:
        order = [(await engine.put("w", NewMemory(text=f"number {n}"))).id for n in range(25)]
        shutil.copytree(tmp_path / "data", tmp_path / "crashed")
        id = (await engine.bank("w")).id
    log = tmp_path / "crashed" / "banks" / id / "bank.db-wal"
    whole = log.read_bytes()
    frames = (len(whole) - 32) // (4096 + 24)
    counts = []
    for frame in range(0, frames + 1, max(1, frames // 12)):
        place = tmp_path / f"cut{frame}"
        shutil.copytree(tmp_path / "crashed", place)
        (place / "banks" / id / "bank.db-wal").write_bytes(whole[: 32 + frame * (4096 + 24) + 100])
        (place / "banks" / id / "bank.db-shm").write_bytes(os.urandom(32768))
        async with open_engine(place, ranking=PlainRanking) as engine:
            kept = set(await everything(engine))
            assert kept == set(order[: len(kept)])
            assert (await engine.check("w")).problems == ()
            counts.append(len(kept))
        shutil.rmtree(place)

    assert counts == sorted(counts)
    assert counts[0] < counts[-1]


@pytest.mark.parametrize("damage", ["truncated", "garbage", "zero tail", "of another bank"])
async def test_search_works_when_the_vector_snapshot_is_damaged(
    tmp_path: Path, damage: str
) -> None:
    path, kept = await make_bank(tmp_path / "data")
    other, _ = await make_bank(tmp_path / "other")
    snapshot = path.with_name("vectors.snapshot")
    content = b"recalld-vectors" + os.urandom(4000)
    match damage:
        case "truncated":
            snapshot.write_bytes(content[:100])
        case "garbage":
            snapshot.write_bytes(os.urandom(5000))
        case "zero tail":
            snapshot.write_bytes(content + bytes(4096))
        case _:
            shutil.copyfile(other, snapshot)

    async with open_engine(tmp_path / "data") as engine:
        found = await engine.search(Query(bank="w", text="memory 7 about boats", limit=5))

        assert found.hits
        assert all(kept[hit.item.id] == hit.item.text for hit in found.hits)
        assert (await engine.check("w")).problems == ()

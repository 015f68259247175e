"""Backups: verified copies, kept and restored."""

from pathlib import Path

import anyio
import pytest
from anyio.lowlevel import checkpoint

from store.errors import (
    NotFound,
    StorageBusy,
    StorageDamaged,
    StorageFull,
)
from store.model import (
    NewMemory,
    Query,
)
from store.sqlite.connection import Connection, run_on_file
from store.sqlite.engine import EmbeddedEngine, open_engine
from store.sqlite.maintenance import backup
from store.sqlite.maintenance.operations import BACKUPS_KEPT
from tests.store.sqlite.maintenance.contents import fill_bank
from tests.support.clock import Clock
from tests.support.plain_ranking import PlainRanking

pytestmark = pytest.mark.anyio

MARKERS = [f"marker{n:03d}qxj" for n in range(200)]


async def test_a_restored_backup_is_the_bank_as_it_was(
    engine: EmbeddedEngine, tmp_path: Path
) -> None:
    await fill_bank(engine)
    before = await engine.export("w", tmp_path / "before.jsonl")
    made = await engine.back_up("w")
    await engine.put("w", NewMemory(text="after the backup"))

    restored = await engine.restore("w", made.name)

    after = await engine.export("w", tmp_path / "after.jsonl")
    assert after.digest == before.digest
    assert restored.items == made.items
    assert (await engine.check("w")).problems == ()
    names = [entry.name for entry in await engine.backups("w")]
    assert made.name in names
    assert len(names) == 2  # the state before the restore is kept
    await engine.restore("w", next(name for name in names if name != made.name))
    assert (await engine.search(Query(bank="w", text="after the backup"))).hits


async def test_a_damaged_backup_is_not_restored(engine: EmbeddedEngine) -> None:
    await fill_bank(engine)
    made = await engine.back_up("w")
    file = engine._registry.backups(await engine.bank("w")) / f"{made.name}.db"
    content = bytearray(file.read_bytes())
    at = content.index(b"memory 7 ")
    content[at] ^= 1
    file.write_bytes(content)

    with pytest.raises(StorageDamaged):
        await engine.restore("w", made.name)
    with pytest.raises(NotFound):
        await engine.restore("w", "../../catalogue")

    assert (await engine.recent("w")).total > 30


async def test_a_damaged_bank_can_be_restored(tmp_path: Path, clock: Clock) -> None:
    async with open_engine(tmp_path / "data", ranking=PlainRanking, now=clock) as engine:
        await fill_bank(engine)
        total = (await engine.recent("w")).total
        made = await engine.back_up("w")
        path = engine._registry.directory(await engine.bank("w")) / "bank.db"
    path.write_bytes(b"garbage" * 5000)

    async with open_engine(tmp_path / "data", ranking=PlainRanking, now=clock) as engine:
        with pytest.raises(StorageDamaged):
            await engine.recent("w")
        await engine.restore("w", made.name)
        assert (await engine.recent("w")).total == total


async def test_only_the_newest_backups_are_kept(engine: EmbeddedEngine, clock: Clock) -> None:
    await engine.put("w", NewMemory(text="x"))
    made = []
    for _ in range(7):
        made.append((await engine.back_up("w")).name)
        clock.advance(1)

    assert [entry.name for entry in await engine.backups("w")] == list(reversed(made[2:]))


async def test_the_oldest_of_as_many_backups_as_are_kept_can_be_restored(
    engine: EmbeddedEngine, clock: Clock
) -> None:
    await engine.put("w", NewMemory(text="the first state"))
    made = []
    for n in range(BACKUPS_KEPT):
        made.append((await engine.back_up("w")).name)
        clock.advance(1)
        await engine.put("w", NewMemory(text=f"later state {n}"))

    restored = await engine.restore("w", made[0])

    assert restored.items == 1
    assert [item.text for item in (await engine.recent("w")).items] == ["the first state"]
    names = [entry.name for entry in await engine.backups("w")]
    assert made[0] in names
    newest = next(name for name in names if name not in made)
    assert (await engine.restore("w", newest)).items == 1 + BACKUPS_KEPT


async def test_a_backup_made_after_the_clock_went_back_is_kept(
    engine: EmbeddedEngine, clock: Clock
) -> None:
    await engine.put("w", NewMemory(text="x"))
    for _ in range(BACKUPS_KEPT):
        await engine.back_up("w")
        clock.advance(1000)
    clock.advance(-3_600_000)

    made = await engine.back_up("w")

    assert made.name in [entry.name for entry in await engine.backups("w")]


async def test_a_put_during_a_restore_is_in_the_bank_or_in_a_backup(
    engine: EmbeddedEngine,
) -> None:
    await engine.put_many("w", [NewMemory(text=f"memory {n} {'word ' * 50}") for n in range(500)])
    made = await engine.back_up("w")
    acknowledged: set[str] = set()
    refused = 0

    async def write(writer: int) -> None:
        nonlocal refused
        n = 0
        while not is_restored.is_set():
            n += 1
            try:
                put = await engine.put("w", NewMemory(text=f"racing {writer} {n}"))
            except StorageBusy:
                refused += 1
                await checkpoint()
            else:
                acknowledged.add(put.id)

    is_restored = anyio.Event()
    async with anyio.create_task_group() as group:
        for writer in range(4):
            group.start_soon(write, writer)
        await anyio.wait_all_tasks_blocked()
        await engine.restore("w", made.name)
        is_restored.set()

    assert acknowledged
    kept = {item.id for item in (await engine.recent("w", limit=5000)).items}
    for file in engine._registry.backups(await engine.bank("w")).glob("*.db"):
        kept |= run_on_file(file, item_ids)
    assert acknowledged - kept == set()


def item_ids(connection: Connection) -> set[str]:
    return {id for (id,) in connection.execute("SELECT public_id FROM items")}


async def test_nothing_is_restored_if_the_disk_has_no_room_for_a_backup_first(
    engine: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await engine.put("w", NewMemory(text="before"))
    made = await engine.back_up("w")
    await engine.put("w", NewMemory(text="after"))

    def full(*_: object, **__: object) -> None:
        raise StorageFull("no space left on the disk")

    monkeypatch.setattr(backup, "make", full)
    with pytest.raises(StorageFull):
        await engine.restore("w", made.name)

    assert (await engine.recent("w")).total == 2

"""Erasing beside others: two at once, backups at the same time, cancelled callers, odd files."""

from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

import anyio
import pytest

from store.bank import OpenBank
from store.embedding.hashed import HashedFeatures
from store.errors import (
    EraseIncomplete,
    InvalidInput,
    NotFound,
    StorageError,
    StorageFull,
    StoreError,
)
from store.model import NewDocument, NewMemory
from store.search.hybrid import HybridRanking
from store.sqlite.engine import EmbeddedEngine, open_engine
from store.sqlite.maintenance import erase
from tests.store.sqlite.test_cancellation import cancelled_scope, cancelled_task
from tests.support.clock import Clock
from tests.support.plain_ranking import PlainRanking

pytestmark = pytest.mark.anyio

MARKER = "markerqxj"


def residue(directory: Path) -> list[str]:
    """The files that still hold the marker."""
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    return [path.name for path in files if MARKER.encode() in path.read_bytes()]


async def is_there(engine: EmbeddedEngine, id: str) -> bool:
    try:
        await engine.get("w", id)
    except NotFound:
        return False
    return True


async def test_many_erases_at_once_all_succeed_while_vectors_are_made(tmp_path: Path) -> None:
    async with open_engine(
        tmp_path, ranking=lambda background: HybridRanking(background, HashedFeatures())
    ) as engine:
        await engine.put("w", NewMemory(text="kept"))
        await engine.settle("w")  # from now on vectors are made as items come
        new = [NewMemory(text=f"{MARKER} {n}") for n in range(200)]
        ids = [put.id for put in await engine.put_many("w", new)]
        async with anyio.create_task_group() as group:
            for n in range(0, 200, 40):
                group.start_soon(engine.erase, "w", ids[n : n + 40])

        assert residue(tmp_path) == []
        assert (await engine.recent("w")).total == 1
        assert "erase-incomplete" not in engine.health().degraded


async def test_two_resets_at_once_while_vectors_are_made_both_end(tmp_path: Path) -> None:
    async with open_engine(
        tmp_path, ranking=lambda background: HybridRanking(background, HashedFeatures())
    ) as engine:
        await engine.put("w", NewMemory(text="first"))
        await engine.settle("w")
        async with engine._registry.use("w") as opened, anyio.create_task_group() as group:
            await engine.put_many("w", [NewMemory(text=f"memory {n}") for n in range(200)])
            group.start_soon(engine._ranking.reset, opened)
            group.start_soon(engine._ranking.reset, opened)


async def test_erases_and_backups_of_a_bank_wait_for_each_other(
    engine: EmbeddedEngine, tmp_path: Path
) -> None:
    new = [NewMemory(text=f"{MARKER} {n} {'padding ' * 40}") for n in range(100)]
    ids = [put.id for put in await engine.put_many("w", new)]

    async with anyio.create_task_group() as group:
        for n in range(0, 100, 20):
            group.start_soon(engine.back_up, "w")
            group.start_soon(engine.erase, "w", ids[n : n + 20])
            group.start_soon(engine.backups, "w")

    assert residue(tmp_path) == []
    assert (await engine.recent("w")).total == 0


class Interrupting(PlainRanking):
    """Lets a test in between the first step of an erase and the second."""

    between: Callable[[], Awaitable[None]] | None = None

    async def reset(self, bank: OpenBank) -> None:
        if self.between is not None:
            await self.between()


async def test_a_backup_asked_for_between_two_steps_of_an_erase_holds_nothing_of_the_erased(
    tmp_path: Path, clock: Clock
) -> None:
    ranking = Interrupting()
    async with open_engine(tmp_path, ranking=lambda _: ranking, now=clock) as engine:
        put = await engine.put("w", NewMemory(text=f"{MARKER} is here"))
        await engine.put("w", NewMemory(text="kept"))
        async with anyio.create_task_group() as group:

            async def back_up() -> None:
                group.start_soon(engine.back_up, "w")
                with anyio.move_on_after(0.5):  # as long as it takes, if it is let in
                    while not await engine.backups("w"):
                        await anyio.wait_all_tasks_blocked()

            ranking.between = back_up
            await engine.erase("w", [put.id])

        assert len(await engine.backups("w")) == 1
        assert residue(tmp_path) == []


async def test_a_backup_made_before_an_erase_was_finished_goes_when_it_is(
    engine: EmbeddedEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = await engine.put("w", NewMemory(text=f"{MARKER} is here {'and there ' * 500}"))

    def full(*_: object, **__: object) -> int:
        raise StorageFull("no space left on the disk")

    with monkeypatch.context() as patch:
        patch.setattr(erase, "finish", full)
        with pytest.raises(StorageFull):
            await engine.erase("w", [put.id])
    assert "erase-incomplete" in engine.health().degraded
    made = await engine.back_up("w")

    await engine.erase("w", [])

    assert made.name not in [entry.name for entry in await engine.backups("w")]
    assert residue(tmp_path) == []
    assert engine.health().degraded == ()


@pytest.mark.parametrize("cancelled", [cancelled_scope, cancelled_task], ids=["scope", "task"])
async def test_an_erase_cancelled_at_its_nth_wait_leaves_all_or_nothing_or_says_so(
    tmp_path: Path,
    clock: Clock,
    cancelled: Callable[[Coroutine[Any, Any, object], int], Awaitable[bool]],
) -> None:
    outcomes = set()
    for at in range(1, 40):
        directory = tmp_path / str(at)
        async with open_engine(directory, ranking=PlainRanking, now=clock) as engine:
            put = await engine.put("w", NewMemory(text=f"{MARKER} is here"))
            await engine.back_up("w")
            with anyio.fail_after(10):
                was_cancelled = await cancelled(engine.erase("w", [put.id]), at)
            there = await is_there(engine, put.id)
            said = "erase-incomplete" in engine.health().degraded
            left = residue(directory)
            outcomes.add((there, bool(left), said))
            if there:
                assert len(left) >= 2, f"cancelled at wait {at}"
            elif not said:
                assert left == [], f"cancelled at wait {at}"
        async with open_engine(directory, ranking=PlainRanking, now=clock) as engine:
            assert await is_there(engine, put.id) == there
            assert there or residue(directory) == []
            assert engine.health().degraded == ()
        if not was_cancelled:
            break
    else:
        pytest.fail("the erase never came through untouched")
    assert (False, False, False) in outcomes
    if cancelled is cancelled_scope:
        assert outcomes <= {(True, True, False), (False, False, False)}


# --- chunks are erased with their document ----------------------------------------------------


async def _two_chunks(engine: EmbeddedEngine) -> tuple[str, list[str]]:
    body = f"# One\n\n{MARKER} {'said at length ' * 300}\n\n# Two\n\n{'and more of it ' * 300}"
    made = await engine.upsert_document("w", NewDocument(source="s", source_id="d", body=body))
    ids = [chunk.id for chunk in await engine.chunks("w", made.id)]
    assert len(ids) > 1
    return made.id, ids


async def test_a_chunk_alone_cannot_be_erased_and_the_error_names_its_document(
    engine: EmbeddedEngine,
) -> None:
    document, ids = await _two_chunks(engine)
    other = await engine.put("w", NewMemory(text="named with it"))

    with pytest.raises(InvalidInput) as refused:
        await engine.erase("w", [other.id, ids[0]])

    assert document in str(refused.value)
    assert (await engine.recent("w", limit=100)).total == len(ids) + 1
    assert engine.health().degraded == ()


async def test_all_chunks_of_a_document_are_erased_with_its_body(
    engine: EmbeddedEngine, tmp_path: Path
) -> None:
    document, ids = await _two_chunks(engine)

    erased = await engine.erase("w", ids)

    assert (erased.items, erased.documents) == (len(ids), 1)
    assert residue(tmp_path) == []
    with pytest.raises(NotFound):
        await engine.document("w", document)


async def test_forgotten_chunks_are_erased_when_their_whole_document_was_forgotten(
    engine: EmbeddedEngine, tmp_path: Path
) -> None:
    _, ids = await _two_chunks(engine)
    await engine.forget("w", ids[:1])
    with pytest.raises(InvalidInput):
        await engine.erase_forgotten("w")

    await engine.forget("w", ids[1:])
    await engine.erase_forgotten("w")

    assert residue(tmp_path) == []


# --- one bank's trouble -----------------------------------------------------------------------


async def test_a_directory_beside_a_bank_is_left_alone_by_an_erase(
    tmp_path: Path, clock: Clock
) -> None:
    async with open_engine(tmp_path, ranking=PlainRanking, now=clock) as engine:
        put = await engine.put("w", NewMemory(text=f"{MARKER} is here"))
        await engine.back_up("w")
        bank = await engine.bank("w")
        for place in (engine._registry.directory(bank), engine._registry.backups(bank)):
            (place / "somebody's").mkdir()

        await engine.erase("w", [put.id])

        assert residue(tmp_path) == []
        assert engine.health().degraded == ()
        assert (engine._registry.directory(bank) / "somebody's").is_dir()


@pytest.mark.parametrize("error", [PermissionError(13, "no"), IsADirectoryError(21, "no")])
async def test_a_copy_that_cannot_be_deleted_keeps_neither_bank_nor_engine_from_opening(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise error

    async with open_engine(tmp_path, ranking=PlainRanking, now=clock) as engine:
        put = await engine.put("w", NewMemory(text=f"{MARKER} is here"))
        await engine.put("w", NewMemory(text="kept"))
        await engine.put("other", NewMemory(text="not its business"))
        await engine.back_up("w")
        with monkeypatch.context() as patch:
            patch.setattr(erase, "delete_copy", refuse)
            with pytest.raises(EraseIncomplete):
                await engine.erase("w", [put.id])

    with monkeypatch.context() as patch:
        patch.setattr(erase, "delete_copy", refuse)
        async with open_engine(tmp_path, ranking=PlainRanking, now=clock) as engine:
            assert "erase-incomplete" in engine.health().degraded
            for name in ("w", "other"):
                assert (await engine.recent(name)).total == 1

    async with open_engine(tmp_path, ranking=PlainRanking, now=clock) as engine:
        assert engine.health().degraded == ()
        assert residue(tmp_path) == []


async def test_health_speaks_of_an_unfinished_erase_in_a_bank_that_cannot_be_opened(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> int:
        raise StorageFull("no space left on the disk")

    async with open_engine(tmp_path, ranking=PlainRanking, now=clock) as engine:
        put = await engine.put("w", NewMemory(text=f"{MARKER} is here"))
        with monkeypatch.context() as patch:
            patch.setattr(erase, "finish", full)
            with pytest.raises(StorageFull):
                await engine.erase("w", [put.id])
        path = engine._registry.directory(await engine.bank("w")) / "bank.db"
    path.write_bytes(b"garbage" * 1000)

    async with open_engine(tmp_path, ranking=PlainRanking, now=clock) as engine:
        assert engine.health().degraded == ("erase-incomplete",)
        await engine.delete_bank("w")
        assert engine.health().degraded == ()


async def test_files_of_a_deleted_bank_that_cannot_be_removed_do_not_keep_the_engine_from_opening(
    tmp_path: Path, clock: Clock
) -> None:
    async with open_engine(tmp_path, ranking=PlainRanking, now=clock) as engine:
        await engine.create_bank("w")
        await engine.put("other", NewMemory(text="not its business"))
        in_its_place = tmp_path / "banks" / (await engine.bank("w")).id
        in_its_place.write_text("a file where a directory should be")
        with pytest.raises(StorageError):
            await engine.delete_bank("w")
        assert engine.health().degraded == ("deletion-incomplete",)

    async with open_engine(tmp_path, ranking=PlainRanking, now=clock) as engine:
        assert engine.health().degraded == ("deletion-incomplete",)
        assert (await engine.recent("other")).total == 1

    in_its_place.unlink()
    async with open_engine(tmp_path, ranking=PlainRanking, now=clock) as engine:
        assert engine.health().degraded == ()
        assert [bank.name for bank in await engine.banks()] == ["other"]


async def test_a_backup_that_the_file_system_refuses_is_an_error_of_the_engine(
    engine: EmbeddedEngine, tmp_path: Path
) -> None:
    await engine.put("w", NewMemory(text="x"))
    place = tmp_path / "data" / "backups"
    place.write_text("a file where a directory should be")

    with pytest.raises(StoreError):
        await engine.back_up("w")
    assert await engine.backups("w") == []

"""Damage to the word index: `check` finds it, and `repair` and `rebuild` mend it."""

import random
import threading
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from store.errors import StorageDamaged
from store.model import NewMemory, Query
from store.sqlite.connection import Connection
from store.sqlite.engine import EmbeddedEngine, open_engine
from store.sqlite.storage_errors import BROKEN, storage_error
from tests.support.clock import Clock
from tests.support.plain_ranking import PlainRanking

pytestmark = pytest.mark.anyio

WORDS = ["apple", "brook", "cloud", "delta", "ember", "flint", "grove", "haven"]
ITEMS = 60


def text_of(number: int) -> str:
    return f"item{number} {WORDS[number % len(WORDS)]} {WORDS[number // 8 % len(WORDS)]} " * 20


def flip_bytes(connection: Connection, seed: int) -> None:
    """Change some bytes of one block of the index."""
    chance = random.Random(seed)
    blocks = connection.execute("SELECT id, block FROM words_data WHERE id > 1").fetchall()
    id, block = chance.choice(blocks)
    changed = bytearray(block)
    for _ in range(chance.randint(1, 8)):
        changed[chance.randrange(len(changed))] ^= chance.randint(1, 255)
    connection.execute("UPDATE words_data SET block = ? WHERE id = ?", (bytes(changed), id))


def cut_block(connection: Connection, seed: int) -> None:
    chance = random.Random(seed)
    blocks = connection.execute("SELECT id, block FROM words_data").fetchall()
    id, block = chance.choice(blocks)
    cut = block[: chance.randrange(len(block))]
    connection.execute("UPDATE words_data SET block = ? WHERE id = ?", (cut, id))


def lose_blocks(connection: Connection, seed: int) -> None:
    connection.execute("DELETE FROM words_data WHERE id > ?", (10 if seed % 2 else 0,))


def enlarge_sizes(connection: Connection, seed: int) -> None:
    """Lengths at their extremes, which make FTS5 ask for gigabytes."""
    chance = random.Random(seed)
    blocks = connection.execute("SELECT id, block FROM words_data WHERE id > 10").fetchall()
    id, block = chance.choice(blocks)
    at = chance.randrange(4, min(40, len(block)))
    changed = block[:at] + b"\xff\xff\xff\xff\x7f" + block[at + 5 :]
    connection.execute("UPDATE words_data SET block = ? WHERE id = ?", (changed, id))


def lose_version(connection: Connection, seed: int) -> None:
    """Without its version FTS5 cannot open the table, nor drop it."""
    connection.execute("UPDATE words_config SET v = 99 WHERE k = 'version'")


def lose_content(connection: Connection, seed: int) -> None:
    connection.execute("DELETE FROM words_content WHERE id % 3 = ?", (seed % 3,))


DAMAGES: list[tuple[Callable[[Connection, int], None], int]] = [
    *((flip_bytes, seed) for seed in range(12)),
    *((cut_block, seed) for seed in range(6)),
    *((enlarge_sizes, seed) for seed in range(6)),
    *((lose_blocks, seed) for seed in range(2)),
    (lose_version, 0),
    (lose_content, 0),
]


async def is_whole(engine: EmbeddedEngine) -> bool:
    for number in range(0, ITEMS, 7):
        found = await engine.search(Query(bank="w", text=f"item{number}", limit=3))
        if [hit.item.text for hit in found.hits][:1] != [text_of(number)]:
            return False
    return True


@pytest.mark.parametrize(
    ("damage", "seed"), DAMAGES, ids=lambda each: getattr(each, "__name__", each)
)
async def test_damage_to_the_word_index_is_found_and_repaired(
    tmp_path: Path, damage: Callable[[Connection, int], None], seed: int
) -> None:
    async with open_engine(tmp_path, ranking=PlainRanking, now=Clock()) as engine:
        await engine.put_many("w", [NewMemory(text=text_of(number)) for number in range(ITEMS)])
        async with engine._registry.use("w") as opened:
            before = await opened.database.read(_blocks)
            await opened.database.write(lambda connection: damage(connection, seed))
            assert await opened.database.read(_blocks) != before

    async with open_engine(tmp_path, ranking=PlainRanking, now=Clock()) as engine:
        # Some bytes mean nothing, such as the counter that tells caches of a change.
        is_found = bool((await engine.check("w")).problems)
        assert is_found or (damage is flip_bytes and await is_whole(engine))
        repaired = await (engine.rebuild if seed % 2 else engine.repair)("w")
        assert repaired.problems == ()
        assert repaired.items == repaired.words == ITEMS
        assert await is_whole(engine)
        await engine.put("w", NewMemory(text="written after the repair"))
        assert (await engine.check("w")).problems == ()


def _blocks(connection: Connection) -> list[tuple[object, ...]]:
    tables = ("words_data", "words_idx", "words_content", "words_config")
    return [row for table in tables for row in connection.execute(f"SELECT * FROM {table}")]


@pytest.mark.parametrize("error", [MemoryError(), OverflowError("too large")])
async def test_errors_that_only_damage_causes_are_reported_as_damage(
    engine: EmbeddedEngine, error: Exception
) -> None:
    """SQLite asks for as much memory as a damaged length says, and reports that it got none."""
    assert isinstance(error, BROKEN)
    assert isinstance(storage_error(error), StorageDamaged)
    await engine.put("w", NewMemory(text="kept"))

    def work(connection: Connection) -> None:
        raise error

    async with engine._registry.use("w") as opened:
        for run in (opened.database.read, opened.database.write, opened.database.maintain):
            with pytest.raises(StorageDamaged):
                await run(work)
    assert (await engine.recent("w")).total == 1


async def test_a_programming_error_in_an_intact_bank_is_not_called_damage(
    engine: EmbeddedEngine,
) -> None:
    await engine.put("w", NewMemory(text="kept"))

    def work(connection: Connection) -> None:
        raise TypeError("a bug")

    async with engine._registry.use("w") as opened:
        for run in (opened.database.read, opened.database.write, opened.database.maintain):
            with pytest.raises(TypeError):
                await run(work)


async def test_a_check_does_not_use_the_connection_that_writes(engine: EmbeddedEngine) -> None:
    """So no put waits for a check: here the check ends while the writer is busy."""
    await engine.put("w", NewMemory(text="before"))
    proceed = threading.Event()

    def busy(connection: Connection) -> None:
        assert proceed.wait(30)

    async with engine._registry.use("w") as opened, anyio.create_task_group() as group:
        group.start_soon(opened.database.maintain, busy)
        await anyio.wait_all_tasks_blocked()
        try:
            with anyio.fail_after(20):
                assert (await engine.check("w")).problems == ()
        finally:
            proceed.set()
    assert [path.name for path in opened.directory.glob("check*")] == []

"""Checks find each fault by its name, and repair fixes it."""

import json

import pytest

from store.database import Connection
from store.errors import (
    StorageDamaged,
)
from store.model import (
    AgentProfile,
    NewMemory,
    Query,
)
from store.sqlite.engine import EmbeddedEngine
from tests.store.sqlite.maintenance.contents import fill_bank

pytestmark = pytest.mark.anyio

MARKERS = [f"marker{n:03d}qxj" for n in range(200)]


FAULTS = {
    "words-missing": "DELETE FROM words WHERE rowid = (SELECT min(id) FROM items)",
    "words-left-over": "INSERT INTO words (rowid, tokens) VALUES (999999, 'ghost')",
    "vectors-missing": "DELETE FROM vectors WHERE item = (SELECT min(id) FROM items)",
    "words-wrong": "UPDATE words SET tokens = 'other' WHERE rowid = (SELECT min(id) FROM items)",
    "counters-wrong": "UPDATE state SET words = words + 1",
    "rows-damaged": "UPDATE items SET text = 'changed' WHERE id = (SELECT min(id) FROM items)",
    "vectors-wrong": "UPDATE vectors SET bytes = x'00' WHERE item = (SELECT min(id) FROM items)",
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_each_fault_is_found_by_its_name_and_repaired(
    engine: EmbeddedEngine, fault: str
) -> None:
    for n in range(5):
        await engine.put("w", NewMemory(text=f"memory {n}"))

    def damage(connection: Connection) -> None:
        connection.execute(FAULTS[fault])

    async with engine._registry.use("w") as opened:
        await opened.database.write(damage)

    assert fault in {problem.name for problem in (await engine.check("w")).problems}
    assert "damaged" in engine.health().degraded
    repaired = await engine.repair("w")

    assert repaired.problems == ()
    assert repaired.items == (4 if fault == "rows-damaged" else 5)
    assert engine.health().degraded == ()


@pytest.mark.parametrize("number", ["007e", "00fe", "007c", "00fc"])
async def test_a_vector_with_no_number_in_it_is_found_and_made_anew(
    engine: EmbeddedEngine, number: str
) -> None:
    """NaN and infinity, as little-endian half floats."""
    for n in range(5):
        await engine.put("w", NewMemory(text=f"memory {n}"))
    (before,) = await engine._read("w", vectors)

    def damage(connection: Connection) -> None:
        connection.execute(
            f"UPDATE vectors SET bytes = CAST(x'{'0000' * 7}{number}' AS BLOB)"
            " WHERE item = (SELECT min(item) FROM vectors)"
        )

    async with engine._registry.use("w") as opened:
        await opened.database.write(damage)

    found = (await engine.check("w")).problems
    assert [(problem.name, problem.count) for problem in found] == [("vectors-wrong", 1)]
    assert (await engine.repair("w")).problems == ()
    assert await engine._read("w", vectors) == [before]


def vectors(connection: Connection) -> list[list[bytes]]:
    return [[row[0] for row in connection.execute("SELECT bytes FROM vectors ORDER BY item")]]


@pytest.mark.parametrize(
    "fault",
    [
        "fields = '{'",
        "fields = CAST(x'7bff7d' AS TEXT)",
        "fields = replace(fields, 'Developer', 'Director')",
        "agent_role = CAST(x'ff' AS TEXT)",
        "updated_at = 5",
    ],
)
async def test_a_damaged_profile_is_found_and_put_aside(engine: EmbeddedEngine, fault: str) -> None:
    await engine.put_profile("w", AgentProfile(agent_role="dev", title="Developer"))
    await engine.put_profile("w", AgentProfile(agent_role="qa", title="Tester"))

    def damage(connection: Connection) -> None:
        connection.execute(f"UPDATE profiles SET {fault} WHERE agent_role = 'dev'")

    async with engine._registry.use("w") as opened:
        await opened.database.write(damage)
        directory = opened.directory

    found = (await engine.check("w")).problems
    assert [(problem.name, problem.part) for problem in found] == [("rows-damaged", "profiles")]
    with pytest.raises(StorageDamaged):
        await engine.export("w", directory / "file")
    assert (await engine.repair("w")).problems == ()
    assert [profile.agent_role for profile in await engine.profiles("w")] == ["qa"]
    (line,) = (directory / "damaged.jsonl").read_bytes().splitlines()
    assert json.loads(line)["damaged"] == "profile"


async def test_a_damaged_row_is_never_returned_and_is_put_aside_by_repair(
    engine: EmbeddedEngine,
) -> None:
    put = await engine.put("w", NewMemory(text="the true text"))

    def damage(connection: Connection) -> None:
        connection.execute("UPDATE items SET text = CAST(x'ff686579' AS TEXT)")

    async with engine._registry.use("w") as opened:
        await opened.database.write(damage)
        directory = opened.directory

    with pytest.raises(StorageDamaged):
        await engine.get("w", put.id)
    with pytest.raises(StorageDamaged):
        await engine.recent("w")

    assert (await engine.repair("w")).items == 0
    (line,) = (directory / "damaged.jsonl").read_text().splitlines()
    assert json.loads(line)["public_id"] == put.id


async def test_a_rebuild_makes_words_and_vectors_again(engine: EmbeddedEngine) -> None:
    await fill_bank(engine)
    before = await engine.search(Query(bank="w", text="memory 7"))

    def lose(connection: Connection) -> None:
        connection.execute("DELETE FROM words")

    async with engine._registry.use("w") as opened:
        await opened.database.write(lose)
    checked = await engine.rebuild("w")

    assert checked.problems == ()
    after = await engine.search(Query(bank="w", text="memory 7"))
    assert {hit.item.id for hit in after.hits} == {hit.item.id for hit in before.hits}

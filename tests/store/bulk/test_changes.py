"""Bulk changes of items and their undo."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from store.errors import InvalidInput, NotFound, UndoExpired
from store.model import Filters, NewCard, NewDocument, NewMemory, Query
from store.sqlite.engine import EmbeddedEngine, open_engine
from tests.support.clock import Clock
from tests.support.plain_ranking import PlainRanking

pytestmark = pytest.mark.anyio

DAY_MS = 24 * 3600 * 1000


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def engine(tmp_path: Path, clock: Clock) -> AsyncGenerator[EmbeddedEngine]:
    async with open_engine(tmp_path, ranking=PlainRanking, now=clock) as opened:
        yield opened


async def put(engine: EmbeddedEngine, text: str, *tags: str, bank: str = "work") -> str:
    return (await engine.put(bank, NewMemory(text=text, tags=tags))).id


async def tags_of(engine: EmbeddedEngine, id: str, bank: str = "work") -> tuple[str, ...]:
    return (await engine.get(bank, id)).tags


async def test_tags_are_added_and_removed_and_one_undo_brings_them_back(
    engine: EmbeddedEngine,
) -> None:
    first = await put(engine, "one", "draft", "x")
    second = await put(engine, "two", "draft")
    done = await put(engine, "three", "done")

    changed = await engine.tag("work", filters=Filters(), add=("done",), remove=("draft",))
    assert changed.count == 2
    assert await tags_of(engine, first) == ("x", "done")
    assert await tags_of(engine, second) == ("done",)
    found = await engine.search(Query(bank="work", text="done", mode="keyword"))
    assert {hit.item.id for hit in found.hits} == {first, second, done}

    assert changed.token is not None
    assert await engine.undo("work", changed.token) == 2
    assert await tags_of(engine, first) == ("x", "draft")
    assert await tags_of(engine, done) == ("done",)
    with pytest.raises(UndoExpired):
        await engine.undo("work", changed.token)


async def test_an_undo_of_tags_keeps_the_tags_that_were_set_meanwhile(
    engine: EmbeddedEngine,
) -> None:
    id = await put(engine, "one")
    changed = await engine.tag("work", ids=[id], add=("a",))
    await engine.change("work", id, tags=("a", "b"))

    assert changed.token is not None
    await engine.undo("work", changed.token)

    assert await tags_of(engine, id) == ("b",)


async def test_tags_can_be_undone_for_a_day(engine: EmbeddedEngine, clock: Clock) -> None:
    id = await put(engine, "one")
    changed = await engine.tag("work", ids=[id], add=("a",))
    clock.now += DAY_MS + 1

    assert changed.token is not None
    with pytest.raises(UndoExpired):
        await engine.undo("work", changed.token)
    assert await tags_of(engine, id) == ("a",)


async def test_moved_items_keep_everything_and_one_undo_moves_them_back(
    engine: EmbeddedEngine,
) -> None:
    id = await put(engine, "one", "x")
    (outcome,) = await engine.put_cards(
        "work", [NewCard(category="key_point", title="Friday", summary="We release on Fridays")]
    )
    before = await engine.get("work", id)

    moved = await engine.move("work", "archive", filters=Filters())

    assert moved.count == 2
    after = await engine.get("archive", id)
    assert (after.text, after.tags, after.created_at) == ("one", ("x",), before.created_at)
    assert (await engine.card("archive", outcome.id)).title == "Friday"
    with pytest.raises(NotFound):
        await engine.get("work", id)

    assert moved.token is not None
    assert await engine.undo("work", moved.token) == 2
    assert (await engine.get("work", id)).text == "one"
    with pytest.raises(NotFound):
        await engine.get("archive", id)


async def test_an_id_that_the_other_bank_has_is_skipped_and_stays(engine: EmbeddedEngine) -> None:
    id = await put(engine, "one")
    await engine.move("work", "archive", ids=[id])
    await engine.put("work", NewMemory(text="two"))
    moved_back = await engine.move("archive", "work", ids=[id])

    assert moved_back.count == 0
    assert moved_back.skipped == (id,)
    assert (await engine.get("archive", id)).text == "one"


async def test_a_move_to_the_same_bank_or_of_a_chunk_is_refused_and_changes_nothing(
    engine: EmbeddedEngine,
) -> None:
    id = await put(engine, "one")
    made = await engine.upsert_document(
        "work", NewDocument(source="notes", source_id="a", body="some text")
    )
    (chunk,) = await engine.chunks("work", made.id)
    with pytest.raises(InvalidInput, match="another bank"):
        await engine.move("work", "work", ids=[id])
    with pytest.raises(InvalidInput, match="part of a document"):
        await engine.move("work", "archive", ids=[id, chunk.id])
    with pytest.raises(InvalidInput, match="either ids or filters"):
        await engine.move("work", "archive")

    assert (await engine.get("work", id)).text == "one"
    assert [bank.name for bank in await engine.banks()] == ["work"]


async def test_erased_items_leave_no_step_behind(engine: EmbeddedEngine) -> None:
    id = await put(engine, "one")
    changed = await engine.tag("work", ids=[id], add=("private",))
    await engine.erase("work", [id])

    assert changed.token is not None
    with pytest.raises(UndoExpired):
        await engine.undo("work", changed.token)


async def test_an_export_of_some_items_has_their_documents_and_nothing_else(
    engine: EmbeddedEngine, tmp_path: Path
) -> None:
    await put(engine, "one", "draft")
    two = await put(engine, "two")
    made = await engine.upsert_document(
        "work", NewDocument(source="notes", source_id="a", body="some text")
    )
    await engine.upsert_document("work", NewDocument(source="notes", source_id="b", body="more"))

    by_tag = await engine.export("work", tmp_path / "a", filters=Filters(tags=("draft",)))
    (chunk,) = await engine.chunks("work", made.id)
    by_id = await engine.export("work", tmp_path / "b", ids=[two, chunk.id])
    imported = await engine.import_file("other", tmp_path / "b")

    assert by_tag.records == 1
    assert by_id.records == 3  # the document, its chunk and one memory
    assert imported.created_by_type == {"item": 1, "chunk": 1, "document": 1}

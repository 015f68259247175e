"""Questions that name a time, through the engine with a fake clock."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from store.model import MODES, Filters, Mode, NewDocument, NewMemory, Query
from store.search.hybrid import HybridRanking
from store.sqlite.engine import EmbeddedEngine, open_engine
from tests.support.clock import Clock
from tests.support.embedder import FakeEmbedder

#: A Tuesday.
NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)


def at(month: int, day: int, year: int = 2026) -> int:
    return int(datetime(year, month, day, 9, tzinfo=UTC).timestamp() * 1000)


EVENTS = (
    (at(5, 3), "Moved the session store to Redis"),
    (at(9, 20), "Version 2.0 was released"),
    (at(9, 25), "The release notes got a typo fixed"),
    (at(10, 2), "Fixed a leak in the session store"),
    (at(11, 10), "Chose bcrypt for password hashing"),
    (at(11, 12), "The nightly build failed on ARM"),
    (at(11, 16), "Rotated the signing keys"),
    (at(11, 17), "Started the audit of the session store"),
)


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[EmbeddedEngine]:
    clock = Clock(int(NOW.timestamp() * 1000))

    def ranks(background: object) -> HybridRanking:
        return HybridRanking(background, FakeEmbedder(), now=clock)  # type: ignore[arg-type]  # a task group

    async with open_engine(tmp_path / "data", ranking=ranks, now=clock) as engine:
        await engine.put_many(
            "b", [NewMemory(text=text, kind="event", occurred_at=when) for when, text in EVENTS]
        )
        yield engine


async def ask(
    engine: EmbeddedEngine, text: str, mode: Mode = "hybrid", filters: Filters | None = None
) -> list[str]:
    query = Query(bank="b", text=text, mode=mode, filters=filters or Filters())
    return [hit.item.text for hit in (await engine.search(query)).hits]


@pytest.mark.parametrize("mode", MODES)
async def test_what_happened_last_week_returns_the_items_of_last_week_first(
    engine: EmbeddedEngine, mode: Mode
) -> None:
    found = await ask(engine, "What happened last week?", mode)
    assert found[:2] == ["The nightly build failed on ARM", "Chose bcrypt for password hashing"]
    assert (await ask(engine, "What did we do yesterday?", mode))[0] == "Rotated the signing keys"
    assert (await ask(engine, "what happened on 3 May?", mode))[0].startswith("Moved")
    assert (await ask(engine, "What happened in May?", mode))[0].startswith("Moved")


@pytest.mark.parametrize("mode", MODES)
async def test_a_subject_decides_among_the_items_of_the_time(
    engine: EmbeddedEngine, mode: Mode
) -> None:
    for question, expected in (
        ("what happened to the session store in May?", "Moved the session store to Redis"),
        ("what happened to the session store in October?", "Fixed a leak in the session store"),
        ("what happened to the session store today?", "Started the audit of the session store"),
    ):
        assert (await ask(engine, question, mode))[0] == expected


async def test_since_the_release_begins_when_it_was_released(engine: EmbeddedEngine) -> None:
    found = await ask(engine, "What happened since the release?")
    after = [text for when, text in reversed(EVENTS) if when >= at(9, 20)]
    assert found[: len(after)] == after


async def test_a_time_without_items_changes_nothing(engine: EmbeddedEngine) -> None:
    assert await ask(engine, "the session store in 2019") == await ask(engine, "the session store")


async def test_a_span_in_the_filters_has_precedence(engine: EmbeddedEngine) -> None:
    only_may = Filters(since=at(5, 1), until=at(6, 1))
    found = await ask(engine, "What happened to the session store last week?", filters=only_may)
    assert found == ["Moved the session store to Redis"]


async def test_other_filters_apply_to_the_items_of_the_time(engine: EmbeddedEngine) -> None:
    await engine.put(
        "b", NewMemory(text="Ana wrote tests", kind="event", user="ana", occurred_at=at(11, 11))
    )
    found = await ask(engine, "What happened last week?", filters=Filters(user="ana"))
    assert found == ["Ana wrote tests"]


async def test_chunks_of_documents_are_no_events_of_their_date(engine: EmbeddedEngine) -> None:
    await engine.upsert_document(
        "b", NewDocument(source="git", source_id="a.md", body="How to deploy")
    )
    assert "How to deploy" not in (await ask(engine, "What happened today?"))[:1]


async def test_items_of_the_asked_time_score_seven_tenths(engine: EmbeddedEngine) -> None:
    found = await engine.search(Query(bank="b", text="What happened last week?"))
    assert [hit.score for hit in found.hits[:2]] == [0.7, 0.7]


@pytest.mark.parametrize("mode", MODES)
async def test_a_newer_statement_comes_before_the_one_that_it_corrects(
    engine: EmbeddedEngine, mode: Mode
) -> None:
    await engine.put("b", NewMemory(text="We deploy on Tuesdays", occurred_at=at(3, 1)))
    await engine.put("b", NewMemory(text="We deploy on Wednesdays now", occurred_at=at(4, 1)))
    found = await ask(engine, "On which day do we deploy?", mode)
    assert found[0] == "We deploy on Wednesdays now"

"""Search through the engine: keywords, meaning, context, filters, and degraded modes."""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from store.errors import StorageFull
from store.model import MODES, Filters, Mode, NewCard, NewDocument, NewMemory, Query
from store.postgres.engine import open_postgres_engine
from store.search import hybrid, plan
from store.search.hybrid import HybridRanking
from store.sqlite.database import Database
from store.sqlite.engine import EmbeddedEngine, open_engine
from tests.store.ranking.test_tokenizer import HOSTILE
from tests.support.clock import Clock
from tests.support.embedder import FakeEmbedder

BOTH_ENGINES = True

BANK = "b"


@pytest.fixture
def embedder() -> FakeEmbedder:
    return FakeEmbedder()


@pytest.fixture
async def engine(
    request: pytest.FixtureRequest, tmp_path: Path, clock: Clock, embedder: FakeEmbedder
) -> AsyncIterator[EmbeddedEngine]:
    def ranks(background: object) -> HybridRanking:
        return HybridRanking(background, embedder, now=clock)  # type: ignore[arg-type]  # a task group

    if getattr(request, "param", "sqlite") == "postgres":
        url: str = request.getfixturevalue("url")
        async with open_postgres_engine(url, ranking=ranks, now=clock) as other:
            yield other  # type: ignore[misc]
    else:
        async with open_engine(tmp_path / "data", ranking=ranks, now=clock) as engine:
            yield engine


async def put(engine: EmbeddedEngine, *texts: str, session: str | None = None) -> list[str]:
    new = [NewMemory(text=text, session=session) for text in texts]
    return [made.id for made in await engine.put_many(BANK, new)]


async def ask(engine: EmbeddedEngine, text: str, **how: object) -> list[str]:
    found = await engine.search(Query(bank=BANK, text=text, **how))  # type: ignore[arg-type]  # any field
    return [hit.item.text for hit in found.hits]


async def ask_into(
    found: list[list[str]], engine: EmbeddedEngine, text: str, **how: object
) -> None:
    """Ask in a task of its own, and leave the answer there."""
    found.append(await ask(engine, text, **how))


@pytest.mark.parametrize("mode", MODES)
async def test_superseded_cards_do_not_displace_current_ones(
    engine: EmbeddedEngine, mode: Mode
) -> None:
    for version in range(60):
        card = NewCard(category="decision", title="deploy", summary=f"deploy deploy {version}")
        await engine.put_cards(BANK, [card])
    await put(
        engine,
        *(
            f"note {n} has many words and says deploy only in passing, among others"
            for n in range(12)
        ),
    )
    found = await ask(engine, "deploy", mode=mode, limit=10)
    assert len(found) == 10
    assert sum(text.startswith("note") for text in found) >= 9


@pytest.mark.embedded
@pytest.mark.parametrize("mode", MODES)
async def test_a_full_disk_hides_nothing_that_is_there(
    engine: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch, mode: Mode
) -> None:
    await put(engine, "The kitten is asleep")
    await engine.settle(BANK)
    await put(engine, "A kitten purrs")

    async def full(self: Database, work: object) -> None:
        raise StorageFull("no space left on the disk")

    monkeypatch.setattr(Database, "write", full)
    found = await engine.search(Query(bank=BANK, text="kitten", mode=mode))
    assert "The kitten is asleep" in [hit.item.text for hit in found.hits]
    assert found.degraded == (() if mode == "keyword" else ("vectors-pending",))


@pytest.mark.parametrize("mode", MODES)
async def test_while_vectors_are_missing_an_item_is_found_by_any_of_its_words(
    engine: EmbeddedEngine, mode: Mode
) -> None:
    await put(engine, *(f"remark {n}" for n in range(hybrid.AT_ONCE + 20)), "The kitten is asleep")
    text = "Which kitten would somebody like?"
    found = await engine.search(Query(bank=BANK, text=text, mode=mode))
    assert found.hits[0].item.text == "The kitten is asleep" and found.hits[0].score > 0.08
    if mode != "keyword":
        assert found.degraded == ("vectors-pending",) and found.mode == "hybrid"


async def test_a_model_that_raises_anything_costs_only_the_meaning(
    engine: EmbeddedEngine, embedder: FakeEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put(engine, "The kitten is asleep")

    def broken(texts: object) -> None:
        raise ValueError("of another kind")

    monkeypatch.setattr(embedder, "embed", broken)
    found = await engine.search(Query(bank=BANK, text="kitten"))
    assert found.mode == "keyword" and found.degraded == ("embedder-failed",)
    assert found.hits[0].item.text == "The kitten is asleep"


async def test_a_new_memory_is_found_by_its_meaning(engine: EmbeddedEngine) -> None:
    await put(engine, "The kitten is asleep", "The puppy barks", "A new automobile")
    assert (await ask(engine, "feline", mode="semantic"))[0] == "The kitten is asleep"
    await put(engine, "We swim every day")
    assert (await ask(engine, "pond", mode="semantic"))[0] == "We swim every day"
    assert (await ask(engine, "hound"))[0] == "The puppy barks"
    assert await ask(engine, "feline", mode="keyword") == []


async def test_a_process_that_never_asked_for_meaning_never_uses_the_model(
    engine: EmbeddedEngine, embedder: FakeEmbedder
) -> None:
    await put(engine, "The kitten is asleep")
    await ask(engine, "kitten", mode="keyword")
    assert embedder.texts == []


async def test_hits_carry_score_snippet_matches_and_on_demand_their_parts(
    engine: EmbeddedEngine,
) -> None:
    await put(engine, "intro " * 100 + "the kitten sleeps here " + "outro " * 100, "other")
    found = await engine.search(Query(bank=BANK, text="kitten sleeps", explain=True))
    hit = found.hits[0]
    assert len(hit.snippet) <= 240
    assert [hit.snippet[a:b] for a, b in hit.matches] == ["kitten", "sleeps"]
    assert hit.parts is not None and {"keyword", "vector", "context", "cosine"} <= set(hit.parts)
    plain = await engine.search(Query(bank=BANK, text="kitten sleeps"))
    assert plain.hits[0].parts is None
    assert plain.hits[0].score == hit.score


async def test_an_item_is_found_by_its_id_with_certainty(engine: EmbeddedEngine) -> None:
    first, *_ = await put(engine, "The kitten is asleep", "The puppy barks")
    found = await engine.search(Query(bank=BANK, text=first))
    assert found.hits[0].item.id == first and found.hits[0].score >= 0.9
    filtered = Query(bank=BANK, text=first, filters=Filters(session="elsewhere"))
    assert (await engine.search(filtered)).hits == ()


async def test_the_exact_text_of_a_memory_scores_nine_tenths_or_more(
    engine: EmbeddedEngine,
) -> None:
    await put(engine, "Deploy with the blue script on Fridays", *(f"note {n}" for n in range(20)))
    for mode in ("keyword", "hybrid"):
        query = Query(bank=BANK, text="deploy with the blue script on fridays", mode=mode)
        assert (await engine.search(query)).hits[0].score >= 0.9


async def test_answers_below_the_least_score_are_counted_not_given(engine: EmbeddedEngine) -> None:
    await put(engine, "The kitten is asleep", "Zebra", "Quantum")
    found = await engine.search(Query(bank=BANK, text="kitten asleep", min_score=0.5))
    assert [hit.item.text for hit in found.hits] == ["The kitten is asleep"]
    assert found.below >= 1


async def test_a_reply_is_found_through_the_question_before_it(engine: EmbeddedEngine) -> None:
    await put(engine, "Which editor do you like?", "Helix, by far.", session="talk")
    await put(engine, *(f"Remark {n} on something" for n in range(30)), session="other")
    assert "Helix, by far." in (await ask(engine, "favourite editor"))[:2]


async def test_chunks_of_a_document_lend_each_other_context(engine: EmbeddedEngine) -> None:
    body = "\n\n".join(
        [f"# Part {n}\n\n" + f"plain words of part {n} " * 40 for n in range(4)]
        + ["# Felines\n\n" + "the kitten and the cat " * 40, "# After\n\n" + "more of it " * 60]
    )
    await engine.upsert_document(BANK, NewDocument(source="s", source_id="1", body=body))
    found = await engine.search(Query(bank=BANK, text="kitten cat", explain=True))
    assert "kitten" in found.hits[0].item.text
    assert any(hit.parts and hit.parts["context"] > 0 for hit in found.hits[1:])


async def test_filters_are_part_of_the_search_not_of_its_end(engine: EmbeddedEngine) -> None:
    await put(engine, *(f"kitten number {n}" for n in range(200)), session="many")
    await put(engine, "an old feline", "one kitten more", session="few")
    await engine.settle(BANK)
    for mode in MODES:
        query = Query(bank=BANK, text="kitten", mode=mode, filters=Filters(session="few"), limit=5)
        found = await engine.search(query)
        assert {hit.item.session for hit in found.hits} == {"few"}
        assert len(found.hits) == (1 if mode == "keyword" else 2)


async def test_a_filter_that_leaves_many_is_searched_as_well(
    engine: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "FEW", 5)
    await put(engine, *(f"kitten number {n}" for n in range(300)), session="many")
    await put(engine, *(f"feline thing {n}" for n in range(20)), session="some")
    await engine.settle(BANK)
    for mode in MODES:
        text = "feline thing" if mode == "keyword" else "cat"
        query = Query(bank=BANK, text=text, mode=mode, filters=Filters(session="some"), limit=10)
        found = await engine.search(query)
        assert len(found.hits) == 10
        assert {hit.item.session for hit in found.hits} == {"some"}


async def test_common_words_are_searched_by_pairs_and_by_the_newest(
    engine: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "POSTINGS", 20)
    await put(engine, *(f"alpha note {n}" for n in range(60)))
    await put(engine, "alpha beta gamma together")
    await put(engine, *(f"beta gamma note {n}" for n in range(60)))
    answers = await ask(engine, "alpha beta gamma", mode="keyword")
    assert answers[0] == "alpha beta gamma together"
    assert (await ask(engine, "alpha", mode="keyword"))[0].startswith("alpha")
    rare = await ask(engine, "alpha together", mode="keyword")
    assert rare[0] == "alpha beta gamma together"


async def test_forgotten_and_changed_items_are_searched_as_they_are_now(
    engine: EmbeddedEngine,
) -> None:
    first, second = await put(engine, "The kitten is asleep", "The puppy barks")
    assert await ask(engine, "cat", mode="semantic", limit=1) == ["The kitten is asleep"]
    forgotten = await engine.forget(BANK, [first])
    assert await ask(engine, "cat", mode="semantic") == ["The puppy barks"]
    assert forgotten.token is not None
    await engine.undo(BANK, forgotten.token)
    assert await ask(engine, "cat", mode="semantic", limit=1) == ["The kitten is asleep"]
    await engine.change(BANK, second, text="A feline after all, a kitten, a cat")
    assert await ask(engine, "cat", mode="semantic", limit=1) == [
        "A feline after all, a kitten, a cat"
    ]
    assert (await ask(engine, "barks", mode="keyword")) == []


async def test_words_for_the_keyword_side_may_differ_from_the_question(
    engine: EmbeddedEngine,
) -> None:
    await put(engine, "xyzzy token", "The kitten is asleep")
    assert (await ask(engine, "feline", keywords="xyzzy", mode="keyword")) == ["xyzzy token"]


async def test_a_filter_that_hardly_narrows_gives_the_answers_of_none(
    engine: EmbeddedEngine,
) -> None:
    await put(engine, *(f"note {n} about a {'kitten' if n % 3 else 'puppy'}" for n in range(200)))
    await engine.put(BANK, NewMemory(text="a kitten happened", kind="event", actor="me"))
    await engine.settle(BANK)
    for mode in MODES:
        everything = await ask(engine, "feline note 7", mode=mode)
        assert (
            await ask(engine, "feline note 7", mode=mode, kinds=("memory", "event")) == everything
        )
        memories = await ask(engine, "kitten happened", mode=mode, kinds=("memory",))
        assert len(memories) == 10 and "a kitten happened" not in memories


async def test_weights_of_the_query_decide(engine: EmbeddedEngine) -> None:
    await put(engine, "kitten kitten kitten", "the word feline as such", "noise")
    by_words = await ask(engine, "feline", keyword_weight=1.0, vector_weight=0.0)
    assert by_words[0] == "the word feline as such"
    by_meaning = await ask(engine, "feline", keyword_weight=0.0)
    assert by_meaning[0] == "kitten kitten kitten"


async def test_a_failing_model_costs_meaning_and_says_so_until_it_is_back(
    engine: EmbeddedEngine, embedder: FakeEmbedder
) -> None:
    await put(engine, "The kitten is asleep")
    embedder.is_failing = True
    found = await engine.search(Query(bank=BANK, text="kitten"))
    assert [hit.item.text for hit in found.hits] == ["The kitten is asleep"]
    assert found.mode == "keyword" and found.degraded == ("embedder-failed",)
    assert "embedder-failed" in engine.health().degraded
    embedder.is_failing = False
    found = await engine.search(Query(bank=BANK, text="feline"))
    assert found.mode == "hybrid" and found.degraded == ()
    assert "embedder-failed" not in engine.health().degraded


async def test_a_model_that_fails_after_working_costs_meaning_for_that_question_alone(
    engine: EmbeddedEngine, embedder: FakeEmbedder
) -> None:
    await put(engine, "The kitten is asleep")
    assert (await engine.search(Query(bank=BANK, text="feline"))).mode == "hybrid"
    embedder.is_failing = True
    found = await engine.search(Query(bank=BANK, text="kitten"))
    assert [hit.item.text for hit in found.hits] == ["The kitten is asleep"]
    assert found.mode == "keyword" and found.degraded == ("embedder-failed",)
    embedder.is_failing = False
    assert (await engine.search(Query(bank=BANK, text="kitten"))).mode == "hybrid"


async def test_a_model_that_became_slow_is_awaited_outside_the_transaction(
    engine: EmbeddedEngine, embedder: FakeEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hybrid, "LATE_SECONDS", 0.01)
    await put(engine, "The kitten is asleep")
    await ask(engine, "puppy")
    embedder.gate.clear()
    found: list[list[str]] = []
    asking = partial(ask_into, found, engine, "feline", mode="semantic")
    async with anyio.create_task_group() as group:
        group.start_soon(asking)
        assert await anyio.to_thread.run_sync(embedder.waiting.wait, 10)
        await anyio.sleep(0.05)  # longer than a reader waits
        assert not found
        assert await ask(engine, "kitten", mode="keyword"), "readers are free meanwhile"
        embedder.gate.set()
    assert found == [["The kitten is asleep"]]


async def test_cancelling_a_query_does_not_cancel_equal_queries_of_others(
    engine: EmbeddedEngine, embedder: FakeEmbedder
) -> None:
    await put(engine, "The kitten is asleep")
    embedder.gate.clear()
    found: list[list[str]] = []
    asking = partial(ask_into, found, engine, "feline", mode="semantic")
    async with anyio.create_task_group() as group:
        with anyio.move_on_after(0.05):
            await asking()
        assert not found
        group.start_soon(asking)
        await anyio.wait_all_tasks_blocked()
        embedder.gate.set()
    assert found == [["The kitten is asleep"]]


async def test_an_empty_bank_and_an_empty_query_have_no_answers(engine: EmbeddedEngine) -> None:
    await engine.create_bank(BANK)
    for mode in MODES:
        assert await ask(engine, "anything", mode=mode) == []
    await put(engine, "The kitten is asleep")
    assert await ask(engine, "", mode="keyword") == []
    assert await ask(engine, " ... ", mode="keyword") == []


async def test_every_hostile_string_is_a_query_in_every_mode(engine: EmbeddedEngine) -> None:
    await put(engine, "The kitten is asleep", "tokens words rowid items")
    for text in HOSTILE:
        for mode in MODES:
            await engine.search(Query(bank=BANK, text=text, mode=mode))


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(max_size=100))
async def test_any_string_is_a_query(engine: EmbeddedEngine, text: str) -> None:
    await put(engine, "The kitten is asleep")
    await engine.search(Query(bank=BANK, text=text))


async def test_equal_answers_come_newest_first_and_always_in_the_same_order(
    engine: EmbeddedEngine,
) -> None:
    new = [NewMemory(text="the same kitten", allow_duplicate=True) for _ in range(15)]
    ids = [made.id for made in await engine.put_many(BANK, new)]
    for mode in MODES:
        query = Query(bank=BANK, text="kitten", mode=mode, limit=15)
        orders = [[hit.item.id for hit in (await engine.search(query)).hits] for _ in range(3)]
        assert orders[0] == orders[1] == orders[2] == ids[::-1]

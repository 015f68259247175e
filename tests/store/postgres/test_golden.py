"""One export in both engines, and the same answers: ids, order, scores and snippets."""

import random
from pathlib import Path

import pytest
from anyio.abc import TaskGroup

from store.embedding.hashed import HashedFeatures
from store.engine import Engine
from store.model import Filters, NewCard, NewDocument, NewMemory, Query
from store.postgres.engine import open_postgres_engine
from store.search.hybrid import HybridRanking
from store.sqlite.engine import open_engine
from tests.support.clock import Clock

pytestmark = pytest.mark.anyio

WORDS = [
    "boat",
    "river",
    "harbour",
    "captain",
    "storm",
    "anchor",
    "sail",
    "winter",
    "lantern",
    "bridge",
    "market",
    "silver",
    "copper",
    "door",
    "train",
    "ticket",
    "garden",
    "kettle",
    "violin",
    "letter",
    "doctor",
    "mountain",
    "summer",
    "pocket",
    "engine",
    "window",
]
PEOPLE = ("Ana", "Bo", "Chen", "Dora")
QUESTIONS = 50


async def fill(engine: Engine) -> None:
    """Conversations, facts with all labels, documents, cards, and something forgotten."""
    chance = random.Random(13)

    def sentence(least: int = 4, most: int = 14) -> str:
        return " ".join(chance.choices(WORDS, k=chance.randint(least, most)))

    for session in range(12):
        turns = [
            NewMemory(
                text=f"[{chance.choice(PEOPLE)}]: {sentence()}{chance.choice('.?!')}",
                kind="event",
                session=f"session {session}",
                occurred_at=1_690_000_000_000 + (session * 40 + turn) * 3_600_000,
            )
            for turn in range(25)
        ]
        await engine.put_many("golden", turns)
    facts = [
        NewMemory(
            text=sentence(),
            title=chance.choice(("", sentence(2, 4))),
            tags=tuple(chance.sample(WORDS, 2)),
            user=chance.choice((None, "u1", "u2")),
            source=chance.choice((None, "chat", "mail")),
            metadata={"level": chance.randint(1, 3), "ok": chance.random() < 0.5},
            confidence=chance.choice((None, 0.25, 0.75)),
        )
        for _ in range(300)
    ]
    put = await engine.put_many("golden", facts)
    for number in range(8):
        body = "\n\n".join(f"# {sentence(2, 3)}\n\n{sentence(60, 200)}" for _ in range(4))
        await engine.upsert_document(
            "golden", NewDocument(source="docs", source_id=f"{number}.md", body=body)
        )
    for _ in range(30):
        card = NewCard(category="rule", title=sentence(2, 5), summary=sentence())
        await engine.put_cards("golden", [card])
    await engine.forget("golden", [each.id for each in put[::17]])


def queries(questions: int = QUESTIONS) -> list[Query]:
    chance = random.Random(29)
    found: list[Query] = []
    for _ in range(questions):
        text = " ".join(chance.choices((*WORDS, "what", "did", "the", *PEOPLE), k=6))
        filters = chance.choice(
            (
                Filters(user="u1"),
                Filters(session="session 3"),
                Filters(tags=("boat",)),
                Filters(contains="SILVER"),
                Filters(metadata={"level": 2, "ok": True}),
                Filters(sources=("docs",), min_confidence=0.5),
            )
        )
        found += [
            Query(bank="golden", text=text, mode="hybrid", explain=True),
            Query(bank="golden", text=text, mode="keyword"),
            Query(bank="golden", text=text, mode="semantic"),
            Query(bank="golden", text=text, mode="hybrid", filters=filters),
        ]
    return found


async def test_both_engines_answer_two_hundred_queries_equally(
    tmp_path: Path, url: str, clock: Clock
) -> None:
    def ranking(background: TaskGroup) -> HybridRanking:
        return HybridRanking(background, HashedFeatures(is_chosen=True), now=clock)

    path = tmp_path / "golden.jsonl"
    async with open_engine(tmp_path / "origin", ranking=ranking, now=clock) as origin:
        await fill(origin)
        exported = await origin.export("golden", path)
    async with (
        open_engine(tmp_path / "data", ranking=ranking, now=clock) as embedded,
        open_postgres_engine(url, ranking=ranking, now=clock) as server,
    ):
        for engine in (embedded, server):
            await engine.import_file("golden", path)
            await engine.settle("golden")
        again = await server.export("golden", tmp_path / "again.jsonl")
        assert again.digest == exported.digest

        hits = 0
        for query in queries():
            ours, theirs = await embedded.search(query), await server.search(query)
            assert [hit.item for hit in ours.hits] == [hit.item for hit in theirs.hits], query
            for one, other in zip(ours.hits, theirs.hits, strict=True):
                assert one.score == pytest.approx(other.score, abs=1e-9)
                assert (one.snippet, one.matches) == (other.snippet, other.matches)
                assert (one.parts or {}) == pytest.approx(other.parts or {}, abs=1e-9)
            assert (ours.below, ours.mode, ours.degraded) == (
                theirs.below,
                theirs.mode,
                theirs.degraded,
            )
            hits += len(ours.hits)
        assert hits > 1_000

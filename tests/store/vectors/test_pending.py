"""Turns of conversations: their tokens are computed, replaced, and deleted with their vectors."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np

from store.embedding.embedder import TokenVectors
from store.model import Filters, NewDocument, NewMemory, Query
from store.search.hybrid import HybridRanking
from store.sqlite.connection import Connection
from store.sqlite.engine import EmbeddedEngine, open_engine
from tests.support.embedder import FakeEmbedder

BANK = "b"
TURN = "[8 May 2023] Ana: I moved to Lisbon"


class FakeTokenEmbedder(FakeEmbedder):
    """Vectors by word, and one token for each word of a text."""

    token_dims = 128

    def embed_tokens(self, texts: Sequence[str]) -> TokenVectors:
        tokens = []
        for text in texts:
            rows = np.zeros((max(1, len(text.split())), 128), dtype=np.float32)
            for at, word in enumerate(text.split() or ["-"]):
                rows[at, sum(map(ord, word)) % 128] = 1.0
            tokens.append(rows)
        return TokenVectors(self.embed(texts), tokens)


@asynccontextmanager
async def opened(directory: Path) -> AsyncIterator[EmbeddedEngine]:
    def ranking(background: object) -> HybridRanking:
        return HybridRanking(background, FakeTokenEmbedder())  # type: ignore[arg-type]  # a task group

    async with open_engine(directory, ranking=ranking) as engine:
        yield engine


async def rows(engine: EmbeddedEngine, sql: str) -> list[Any]:
    async with engine._registry.use(BANK) as bank:
        return await bank.database.read(lambda connection: connection.execute(sql).fetchall())


async def write(engine: EmbeddedEngine, sql: str) -> None:
    def run(connection: Connection) -> None:
        connection.execute(sql)

    async with engine._registry.use(BANK) as bank:
        await bank.database.write(run)


async def test_only_turns_get_tokens(tmp_path: Path) -> None:
    async with opened(tmp_path) as engine:
        await engine.put(BANK, NewMemory(text=TURN))
        await engine.put(BANK, NewMemory(text="a fact", session="s"))
        await engine.put(BANK, NewMemory(text="an event", session="s", kind="event"))
        await engine.put(BANK, NewMemory(text="a loose event", kind="event"))
        await engine.upsert_document(
            BANK, NewDocument(source="x", source_id="1", body="Ana: a document")
        )
        await engine.settle(BANK)

        found = await rows(
            engine,
            "SELECT items.text, turns.speaker, length(turns.tokens) FROM turns"
            " JOIN items ON items.id = turns.item ORDER BY items.id",
        )

    assert found == [(TURN, "ana", 4 * 64), ("an event", None, 2 * 64)]


async def test_a_forgotten_and_an_erased_turn_lose_their_tokens(tmp_path: Path) -> None:
    async with opened(tmp_path) as engine:
        one = await engine.put(BANK, NewMemory(text=TURN))
        two = await engine.put(BANK, NewMemory(text="[9 May 2023] Ana: and I like it"))
        await engine.settle(BANK)
        await engine.forget(BANK, [one.id])
        assert len(await rows(engine, "SELECT item FROM turns")) == 1
        await engine.erase(BANK, [two.id], reason="test")
        assert await rows(engine, "SELECT item FROM turns") == []


async def test_a_rebuild_computes_the_tokens_again(tmp_path: Path) -> None:
    async with opened(tmp_path) as engine:
        await engine.put(BANK, NewMemory(text=TURN))
        await engine.settle(BANK)
        before = await rows(engine, "SELECT * FROM turns")
        await engine.rebuild(BANK)
        await engine.settle(BANK)
        assert await rows(engine, "SELECT * FROM turns") == before


async def test_turns_of_an_older_version_are_computed_after_a_search(tmp_path: Path) -> None:
    async with opened(tmp_path) as engine:
        await engine.put(BANK, NewMemory(text=TURN))
        await engine.settle(BANK)
        await write(engine, "UPDATE turns SET tokens = NULL, speaker = NULL, traits = 0")
    async with opened(tmp_path) as engine:
        found = await engine.search(Query(bank=BANK, text="Lisbon"))
        assert found.hits
        assert "vectors-pending" not in found.degraded
        await engine.settle(BANK)
        assert await rows(engine, "SELECT speaker FROM turns WHERE tokens IS NOT NULL") == [
            ("ana",)
        ]


async def test_a_check_finds_broken_tokens_and_a_repair_renews_them(tmp_path: Path) -> None:
    async with opened(tmp_path) as engine:
        await engine.put(BANK, NewMemory(text=TURN))
        await engine.settle(BANK)
        await write(engine, "UPDATE turns SET tokens = x'0102'")
        checked = await engine.check(BANK)
        assert [problem.name for problem in checked.problems] == ["vectors-wrong"]

        assert (await engine.repair(BANK)).problems == ()
        await engine.settle(BANK)
        assert await rows(engine, "SELECT length(tokens) FROM turns") == [(4 * 64,)]


async def test_a_question_names_a_speaker_only_if_two_turns_carry_the_label(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as engine:
        heading = "Lisbon: a city in Portugal"
        await engine.put(BANK, NewMemory(text=heading, session="s"))
        for text in ("Ana: I like the sea", "Ana: and the hills", "Ben: so do I", "Ben: yes"):
            await engine.put(BANK, NewMemory(text=text, session="s"))
        await engine.settle(BANK)
        query = Query(bank=BANK, text="what does Ana like", explain=True, limit=5)
        hits = {hit.item.text: hit.parts or {} for hit in (await engine.search(query)).hits}

    assert hits["Ana: I like the sea"]["speaker"] == 1.0
    assert hits["Ben: so do I"]["speaker"] == 0.0
    assert "speaker" not in hits.get(heading, {})


async def test_turns_keep_filters(tmp_path: Path) -> None:
    async with opened(tmp_path) as engine:
        for session in ("s", "t"):
            await engine.put(BANK, NewMemory(text=f"Ana: I like {session}", session=session))
        await engine.settle(BANK)
        filters = Filters(session="t")
        found = await engine.search(Query(bank=BANK, text="what does Ana like", filters=filters))

    assert [hit.item.session for hit in found.hits] == ["t"]

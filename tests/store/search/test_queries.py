"""Any string is a query: ten thousand of them, and the ones people use to break things."""

import random
from pathlib import Path

import anyio
import msgspec
import pytest

from store.model import NewMemory, Query
from store.sqlite.engine import EmbeddedEngine, open_engine

pytestmark = pytest.mark.anyio

HOSTILE = [
    "", " ", "\x00", "a\x00b", "\ud800", "\udfff tail", '"', "''", "`", "*", "a*", "^a", "-a",
    "a AND b", "AND", "OR", "NOT", "NEAR(a b)", "tokens:a", "words:boat", "{a b}:c", "a + b", "()",
    "(((", "rate-limit", "docs/auth.md", "user's", "C++", "what is auth?", "' OR 1=1 --", "; DROP",
    "%", "_", "\\", "\n\n", "\t", "\u202e", "\ufeff", "🧠" * 50, "東京", "a" * 100_000,
    "a " * 5_000,
    "\"unbalanced", "{", "}", "[", "]", "rank", "bm25(words)", "SELECT * FROM items", "../..",
    "𝕳𝖊𝖑𝖑𝖔", "e\u0301" * 100, "\x1b[31m", "NULL", "None", "1e999", "-1", "0x10", "<script>",
]  # fmt: skip
ALPHABET = "ab \"'*^-+():{}[]\\/%_.,;AND OR NOT NEAR é東\u0301\u200b\x00\ud83d\n"


def fuzzed(count: int, seed: int) -> list[str]:
    dice = random.Random(seed)
    return ["".join(dice.choices(ALPHABET, k=dice.randrange(0, 24))) for _ in range(count)]


async def ask_all(engine: EmbeddedEngine, queries: list[str], mode: str) -> int:
    answered = 0

    async def ask(some: list[str]) -> None:
        nonlocal answered
        for text in some:
            query = Query(bank="w", text=text, mode=mode, limit=3)  # type: ignore[arg-type]  # drawn
            found = msgspec.json.encode(await engine.search(query))
            for inside in (b"sqlite", b"SELECT", b"fts5", b"words_"):
                assert inside not in found or inside.decode() in text
            answered += 1

    async with anyio.create_task_group() as group:
        for start in range(4):
            group.start_soon(ask, queries[start::4])
    return answered


async def test_ten_thousand_fuzzed_queries_and_every_hostile_one_are_answered(
    tmp_path: Path,
) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    async with open_engine(tmp_path / "data") as engine:
        await engine.put_many(
            "w", [NewMemory(text=f"a b {word} boat 東京 AND") for word in ("one", "é", "C++", "x")]
        )

        assert await ask_all(engine, fuzzed(10_000, seed), "keyword") == 10_000
        assert await ask_all(engine, fuzzed(500, seed + 1), "hybrid") == 500
        assert await ask_all(engine, fuzzed(500, seed + 2), "semantic") == 500
        assert await ask_all(engine, HOSTILE, "keyword") == len(HOSTILE)
        assert await ask_all(engine, HOSTILE, "hybrid") == len(HOSTILE)
        assert await ask_all(engine, HOSTILE, "semantic") == len(HOSTILE)


async def test_hostile_texts_are_kept_and_come_back_as_they_were(engine: EmbeddedEngine) -> None:
    storable = [text for text in HOSTILE if text.strip() and "\x00" not in text]
    storable = [text for text in storable if not any("\ud800" <= sign <= "\udfff" for sign in text)]
    for text in storable:
        put = await engine.put(
            "w", NewMemory(text=text, title=text[:1000], metadata={text[:99]: text[:99]})
        )
        item = await engine.get("w", put.id)
        assert (item.text, item.metadata) == (text, {text[:99]: text[:99]})

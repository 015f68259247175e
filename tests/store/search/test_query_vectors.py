"""Vectors of queries are kept, but never shared between banks."""

from pathlib import Path
from typing import Any

import pytest

from store.embedding.hashed import HashedFeatures
from store.model import NewMemory, Query
from store.search.hybrid import HybridRanking
from store.sqlite.engine import open_engine
from tests.support.clock import Clock

pytestmark = pytest.mark.anyio


class Counting(HashedFeatures):
    """Counts how often a text is embedded."""

    def __init__(self) -> None:
        super().__init__()
        self.embedded: list[str] = []

    def embed(self, texts: Any) -> Any:
        self.embedded += texts
        return super().embed(texts)


async def test_a_question_is_embedded_once_for_each_bank(tmp_path: Path) -> None:
    """Otherwise the time of a search tells whether another bank was asked the same question."""
    embedder = Counting()
    async with open_engine(
        tmp_path, ranking=lambda group: HybridRanking(group, embedder), now=Clock()
    ) as engine:
        for bank in ("one", "two"):
            await engine.put(bank, NewMemory(text=f"in {bank}"))
        for bank in ("one", "one", "two", "two"):
            await engine.search(Query(bank=bank, text="the same question"))
    assert embedder.embedded.count("the same question") == 2

"""Search over `/api/v1`: explanation and near misses."""

from pathlib import Path
from typing import cast

import pytest

from daemon.api.searching import SearchArguments, search_memories
from daemon.tools.context import Context
from daemon.tools.toolkit import Toolkit
from store.engine import Engine
from store.model import Found, Hit, Item, Query
from tests.support.memory import remembering_web

pytestmark = pytest.mark.anyio

BANK = "/api/v1/banks/work"


class ScoredEngine:
    """An engine whose search finds three items with known scores."""

    def __init__(self) -> None:
        self.asked: list[Query] = []

    async def search(self, query: Query) -> Found:
        self.asked.append(query)
        hits = tuple(
            Hit(
                item=Item(
                    rowid=number,
                    id=f"m{number}",
                    kind="memory",
                    text=f"memory {number}",
                    occurred_at=0,
                    created_at=0,
                    updated_at=0,
                ),
                score=score,
            )
            for number, score in enumerate((0.9, 0.6, 0.2))
        )
        return Found(hits=hits)


async def test_hits_and_near_misses_are_divided_by_the_score() -> None:
    engine = ScoredEngine()
    toolkit = Toolkit(engine=cast("Engine", engine), now=lambda: 0)
    arguments = SearchArguments(bank="work", query="q", min_score=0.7, near_misses=1)

    found = await search_memories(toolkit, arguments, cast("Context", None))

    assert [hit.memory.id for hit in found.hits] == ["m0"]
    assert [hit.memory.id for hit in found.near_misses] == ["m1"]
    assert found.below == 2
    assert engine.asked[0].min_score == 0.0, "the engine must not hide the near misses"


async def test_a_condition_applies_to_hits_and_near_misses(tmp_path: Path) -> None:
    async with remembering_web(tmp_path) as (web, _):
        await web.client.post(f"{BANK}/memories", json={"text": "deploy one", "tags": ["a"]})
        await web.client.post(f"{BANK}/memories", json={"text": "deploy two"})

        found = await web.client.post(
            f"{BANK}/search", json={"query": "deploy", "near_misses": 3, "where": {"tags": ["a"]}}
        )

        assert [hit["memory"]["text"] for hit in found.json()["hits"]] == ["deploy one"]
        assert found.json()["near_misses"] == []


async def test_a_search_in_an_unknown_bank_is_404_and_creates_nothing(tmp_path: Path) -> None:
    async with remembering_web(tmp_path) as (web, _):
        found = await web.client.post(f"{BANK}/search", json={"query": "x"})

        assert found.status_code == 404
        assert (await web.client.get("/api/v1/banks")).json() == {"banks": []}

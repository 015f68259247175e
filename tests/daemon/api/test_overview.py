"""Facets, growth and the map over `/api/v1`; `tests/store/bulk` tests their figures."""

import pytest

from tests.daemon.api.test_memories import add, web
from tests.support.web import Web

pytestmark = pytest.mark.anyio

__all__ = ["web"]  # the fixture

WORK = "/api/v1/banks/work"


async def test_facets_follow_the_filters(web: Web) -> None:
    await add(web, "one", tags=["a"], source="shell")
    await add(web, "two", tags=["a", "b"])
    every = (await web.client.get(f"{WORK}/facets")).json()
    some = (await web.client.get(f"{WORK}/facets", params={"sources": "shell"})).json()

    assert every["tags"] == [{"value": "a", "count": 2}, {"value": "b", "count": 1}]
    assert some["tags"] == [{"value": "a", "count": 1}]


async def test_growth_ends_today_with_all_memories(web: Web) -> None:
    await add(web, "one")
    await add(web, "two", occurred_at="2020-01-01T00:00:00Z")
    days = (await web.client.get(f"{WORK}/growth", params={"days": 7})).json()["days"]

    assert len(days) == 7
    assert days[-1]["added"] == 1
    assert days[-1]["total"] == 2


async def test_the_map_of_a_bank_without_vectors_is_empty(web: Web) -> None:
    await add(web, "one")
    found = (await web.client.get(f"{WORK}/map")).json()

    assert found["points"] == []
    assert found["total"] == 1
    assert (await web.client.get(f"{WORK}/map", params={"limit": 0})).status_code == 400

"""Health and connected clients over `/api/v1`."""

from pathlib import Path

import pytest

from daemon.operations.remedies import REMEDIES
from tests.daemon.api.test_banks import READER, TOKENS
from tests.support.memory import remembering_web
from tests.support.web import token_file

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[4]


async def test_the_owner_sees_problems_calls_and_search_times(tmp_path: Path) -> None:
    async with remembering_web(tmp_path) as (web, toolkit):
        await toolkit.engine.create_bank("work")
        search = "/api/v1/banks/work/search"
        for _ in range(3):
            assert (await web.client.post(search, json={"query": "x"})).status_code == 200
        health = (await web.client.get("/api/v1/health")).json()

    assert health["status"] == "healthy"
    assert health["problems"] == []
    assert len(health["calls"]["per_minute"]) == 60
    assert sum(health["calls"]["per_minute"]) == health["calls"]["total"] == 3
    assert health["calls"]["in_flight"] == 0
    assert len(health["search_latency_ms"]["recent"]) == 3
    assert health["search_latency_ms"]["p50"] <= health["search_latency_ms"]["p95"]
    assert health["slow_calls"] == []
    assert health["rss_bytes"] > 1_000_000


async def test_other_callers_see_the_status_only(tmp_path: Path) -> None:
    tokens = token_file(tmp_path, TOKENS)
    async with remembering_web(tmp_path, server__token_file=tokens) as (web, _):
        header = {"authorization": f"Bearer {READER}"}
        health = await web.client.get("/api/v1/health", headers=header)
        clients = await web.client.get("/api/v1/clients", headers=header)

    assert set(health.json()) == {"status", "version"}
    assert clients.status_code == 403


async def test_clients_are_listed_with_their_names_and_transports(tmp_path: Path) -> None:
    async with remembering_web(tmp_path) as (web, _):
        session = await web.open()
        await web.post({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}, session)
        clients = (await web.client.get("/api/v1/clients")).json()["clients"]

    found = {(each["name"], each["version"], each["transport"]) for each in clients}
    assert ("test", "1", "http") in found


def test_every_reason_in_the_operations_page_has_a_remedy() -> None:
    page = (ROOT / "docs" / "operations.md").read_text()
    table = page.partition("Reasons include:")[2].partition("## ")[0]
    reasons = {
        word
        for line in table.splitlines()
        if line.startswith("| `")
        for word in line.split("|")[1].replace("`", "").replace(",", " ").split()
    }

    assert reasons == set(REMEDIES)

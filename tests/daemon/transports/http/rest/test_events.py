"""`GET /api/v1/events`: changes of banks and progress of syncs as server-sent events."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from daemon.transports.http.edge.messages import Pace
from tests.daemon.api.test_banks import READER, TOKENS
from tests.support.memory import remembering_web
from tests.support.web import Web, token_file

pytestmark = pytest.mark.anyio

EVENTS = "/api/v1/events"


class Reader:
    """Reads a stream event by event."""

    def __init__(self, lines: Any) -> None:
        self._lines = lines

    async def next(self) -> tuple[str, dict[str, Any]]:
        kind = ""
        with anyio.fail_after(5):
            async for line in self._lines:
                if line.startswith("event: "):
                    kind = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    return kind, json.loads(line.removeprefix("data: "))
        raise AssertionError("the stream has ended")

    async def comment(self) -> str:
        with anyio.fail_after(5):
            async for line in self._lines:
                if line.startswith(":"):
                    return str(line)
        raise AssertionError("the stream has ended")


@asynccontextmanager
async def reading(web: Web, path: str = EVENTS, **headers: str) -> AsyncGenerator[Reader]:
    async with web.client.stream("GET", path, headers=headers) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "text/event-stream"
        reader = Reader(answer.aiter_lines())
        assert await reader.next() == ("health", {"status": "healthy"})
        yield reader


async def test_a_write_is_reported_with_the_bank_it_changed(tmp_path: Path) -> None:
    async with remembering_web(tmp_path) as (web, _), reading(web) as reader:
        await web.client.post("/api/v1/banks/work/memories", json={"text": "one"})
        kind, data = await reader.next()

    assert kind == "change"
    assert data["bank"] == "work"
    assert data["name"] == "changed"


async def test_many_writes_in_a_short_time_become_few_events(tmp_path: Path) -> None:
    async with remembering_web(tmp_path) as (web, _), reading(web) as reader:
        for _ in range(50):
            web.services.events.bank_changed("work")
        web.services.events.bank_changed("other")
        seen = [(await reader.next())[1]["bank"] for _ in range(2)]

    assert seen == ["work", "other"]


async def test_a_reader_of_one_bank_hears_nothing_of_others(tmp_path: Path) -> None:
    async with (
        remembering_web(tmp_path) as (web, _),
        reading(web, f"{EVENTS}?bank=work") as reader,
    ):
        web.services.events.bank_changed("private")
        web.services.events.bank_changed("work")
        assert (await reader.next())[1]["bank"] == "work"


async def test_a_token_hears_of_its_banks_only(tmp_path: Path) -> None:
    tokens = token_file(tmp_path, TOKENS)
    bearer = {"authorization": f"Bearer {READER}"}
    async with remembering_web(tmp_path, server__token_file=tokens) as (web, _):
        refused = await web.client.get(f"{EVENTS}?bank=private", headers=bearer)
        async with reading(web, EVENTS, **bearer) as reader:
            web.services.events.bank_changed("private")
            web.services.events.sync_went_on("notes", "listing", 1, 2, is_running=True)
            web.services.events.bank_changed("work")
            assert (await reader.next())[1]["bank"] == "work"

    assert refused.status_code == 403


async def test_the_stream_is_kept_alive_by_comments(tmp_path: Path) -> None:
    async with (
        remembering_web(tmp_path, pace=Pace(keep_alive=0.05)) as (web, _),
        reading(web) as reader,
    ):
        assert await reader.comment() == ": alive"


async def test_an_unknown_parameter_is_refused(tmp_path: Path) -> None:
    async with remembering_web(tmp_path) as (web, _):
        answer = await web.client.get(f"{EVENTS}?banks=work")

    assert answer.status_code == 400
    assert "banks" in answer.json()["error"]["message"]

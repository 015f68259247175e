"""The daemon leaves while calls run: each call is answered with an error and a retry advice."""

import json
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from daemon.transports.http.edge.messages import Pace
from tests.support.web import BOTH, Web, call, modern, running_web

pytestmark = pytest.mark.anyio

SLOW = {"seconds": 60}


async def leave(web: Web, *requests: httpx.Request) -> list[httpx.Response]:
    """The answers to requests that are running when the daemon leaves."""
    answers: dict[int, httpx.Response] = {}

    async def send(place: int, request: httpx.Request) -> None:
        answers[place] = await web.client.send(request)

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            for place, request in enumerate(requests):
                group.start_soon(send, place, request)
            await web.services.gate.until(lambda: web.services.gate.in_flight == len(requests))
            web.server.refuse_new()
            web.services.shutdown.depart()
            await web.server.close()
    return [answers[place] for place in range(len(requests))]


def post(web: Web, body: Any, headers: dict[str, str], path: str = "/mcp") -> httpx.Request:
    return web.client.build_request("POST", path, json=body, headers={"accept": BOTH, **headers})


async def test_every_call_is_answered(tmp_path: Path) -> None:
    async with running_web(tmp_path) as web:
        session = await web.open()
        old = await web.open("2025-03-26")
        message, headers = modern("tools/call", {"name": "slow", "arguments": SLOW}, id="m")
        legacy, batch, modernly, rest = await leave(
            web,
            post(web, call("slow", SLOW, id="l"), session),
            post(web, [call("slow", SLOW, id="b")], old),
            post(web, message, headers),
            post(web, SLOW, {}, "/tools/slow"),
        )
    for id, answer in (
        ("l", legacy.json()),
        ("b", batch.json()[0]),
        ("m", modernly.json()),
    ):
        assert answer["id"] == id
        assert answer["error"]["data"]["kind"] == "daemon_lost"
        assert answer["error"]["data"]["retrySafe"] is False
        assert "check before asking again" in answer["error"]["message"]
    assert rest.status_code == 503
    assert rest.json()["error"]["code"] == "unavailable"
    assert "the daemon is stopping; it may or may not" in rest.json()["error"]["message"]


async def test_a_stream_ends_with_the_answer(tmp_path: Path) -> None:
    async with running_web(tmp_path, pace=Pace(commit=0.01)) as web:
        session = await web.open()
        message, headers = modern("tools/call", {"name": "slow", "arguments": SLOW}, id="m")
        given = {"accept": BOTH, **headers}
        with anyio.fail_after(10):
            async with (
                web.client.stream("POST", "/mcp", json=message, headers=given) as one,
                web.client.stream(
                    "POST", "/mcp", json=call("slow", SLOW, id="l"), headers={**given, **session}
                ) as two,
            ):
                web.services.shutdown.depart()
                await web.server.close()
                for id, stream in (("m", one), ("l", two)):
                    lines = [line async for line in stream.aiter_lines()]
                    last = [line for line in lines if line.startswith("data: {")][-1]
                    answer = json.loads(last.removeprefix("data: "))
                    assert (answer["id"], answer["error"]["code"]) == (id, -32603)

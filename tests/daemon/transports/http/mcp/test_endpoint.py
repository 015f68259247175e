"""The endpoint in both eras: media types, malformed bodies, limits, paths."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.support.web import BOTH, Web, call, modern, request, running_web

pytestmark = pytest.mark.anyio


@pytest.fixture
async def web(tmp_path: Path) -> AsyncGenerator[Web]:
    async with running_web(tmp_path, limits__frame_bytes=4096) as running:
        yield running


@pytest.mark.parametrize("path", ["/mcp", "/mcp/", "/"])
async def test_the_bare_origin_is_an_endpoint_too(web: Web, path: str) -> None:
    message, headers = modern("server/discover")
    assert (await web.post(message, headers, path)).status_code == 200


@pytest.mark.parametrize("path", ["/mcp/nonsense", "/mcp2", "//mcp", "/mcp/../mcp", "/%2e"])
async def test_other_paths_are_404(web: Web, path: str) -> None:
    answer = await web.raw(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{web.port}\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 404")
    assert b'{"error":{"code":"not_found","message":' in answer


@pytest.mark.parametrize("verb", ["PUT", "PATCH", "HEAD", "TRACE"])
async def test_other_verbs_are_405_with_an_allow_header(web: Web, verb: str) -> None:
    answer = await web.client.request(verb, "/mcp")
    assert answer.status_code == 405
    assert "POST" in answer.headers["allow"]


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("application/json", 200),
        ("application/json; charset=utf-8", 200),
        ("Application/JSON", 200),
        ('application/json;charset="UTF-8"', 200),
        ("application/json; profile=x; charset=utf-8", 200),
        ('application/json; title="a; charset=latin-1"', 200),
        ("application/json; odata.metadata=none;", 200),
        ("application/json; charset=latin-1", 415),
        ('application/json; x=y; Charset="latin-1"', 415),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("multipart/form-data; boundary=x", 415),
        ("", 415),
    ],
)
async def test_only_json_is_accepted(web: Web, kind: str, status: int) -> None:
    message, headers = modern("tools/list")
    assert (await web.post(message, {**headers, "content-type": kind})).status_code == status


@pytest.mark.parametrize(
    ("coding", "status"),
    [("identity", 200), ("Identity", 200), ("gzip", 415), ("identity, gzip", 415), ("br", 415)],
)
async def test_compressed_bodies_are_rejected(web: Web, coding: str, status: int) -> None:
    message, headers = modern("tools/list")
    answer = await web.post(message, {**headers, "content-encoding": coding})
    assert answer.status_code == status


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        (BOTH, 200),
        ("*/*", 200),
        ("application/*, text/*", 200),
        ("text/event-stream;q=0.9, application/json", 200),
        ("application/json", 406),
        ("text/event-stream", 406),
        ("text/html", 406),
        ("application/json, text/event-stream;q=0", 406),
    ],
)
async def test_both_kinds_of_answer_must_be_acceptable(web: Web, accept: str, status: int) -> None:
    message, headers = modern("tools/list")
    assert (await web.post(message, {**headers, "accept": accept})).status_code == status


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{bad", -32700),
        (b"", -32700),
        (b"\xff\xfe", -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"} {}', -32700),
        (b"[" * 3000, -32700),
        (b"[" * 2000 + b"]" * 2000, -32600),
        (b"true", -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}', -32602),
        (b'{"jsonrpc":"2.0","id":1}', -32600),
    ],
)
async def test_a_malformed_message_is_400(web: Web, body: bytes, code: int) -> None:
    answer = await web.post(body)
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == code


async def test_a_body_past_the_limit_is_413_and_one_at_the_limit_is_not(web: Web) -> None:
    message, headers = modern("tools/call", {"name": "echo", "arguments": {"text": ""}})
    room = 4096 - len(json.dumps(message))
    message["params"]["arguments"]["text"] = "x" * room
    assert (await web.post(message, headers)).status_code == 200
    message["params"]["arguments"]["text"] = "x" * (room + 1)
    assert (await web.post(message, headers)).status_code == 413

    async def pieces() -> AsyncGenerator[bytes]:
        for _ in range(5):
            yield b" " * 1000

    chunked = await web.client.post(
        "/mcp", content=pieces(), headers={"content-type": "application/json"}
    )
    assert chunked.status_code == 413


async def test_the_limiter_answers_429_with_retry_after(tmp_path: Path) -> None:
    async with running_web(tmp_path, limits__requests_per_minute=3) as web:
        session = await web.open()
        legacy = [await web.post(call("echo", {"text": "x"}), session) for _ in range(4)]
        assert [a.status_code for a in legacy] == [200, 200, 200, 429]
        assert 1 <= int(legacy[-1].headers["retry-after"]) <= 60
        assert legacy[-1].json()["error"]["code"] == -32001
        assert (await web.post(request("ping"), session)).status_code == 200
        modernly = [await web.modern("tools/list") for _ in range(4)]
        assert [a.status_code for a in modernly] == [200, 200, 200, 429]
        assert (await web.modern("server/discover")).status_code == 200
        rest = [await web.client.post("/tools/echo", json={"text": "x"}) for _ in range(4)]
        assert [a.status_code for a in rest] == [200, 200, 200, 429]
        assert rest[-1].json()["error"]["code"] == "rate_limited"
        assert int(rest[-1].headers["retry-after"]) >= 1


async def test_mcp_can_be_turned_off(tmp_path: Path) -> None:
    async with running_web(tmp_path, server__mcp=False) as web:
        message, headers = modern("server/discover")
        assert (await web.post(message, headers)).status_code == 404
        assert (await web.client.get("/health")).json() == {"status": "ok"}
        assert "/mcp" not in (await web.client.get("/openapi.json")).text


async def test_both_eras_and_several_versions_are_served_at_once(web: Web) -> None:
    sessions = [await web.open(v) for v in ("2024-11-05", "2025-03-26", "2025-11-25")]
    for session in sessions:
        assert (await web.post(request("ping"), session)).json()["result"] == {}
        assert (await web.modern("ping")).status_code == 404
        ignored = {"mcp-session-id": session["mcp-session-id"]}
        assert (await web.modern("tools/list", headers=ignored)).status_code == 200

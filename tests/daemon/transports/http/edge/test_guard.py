"""The guard: Host, Origin, CORS, and the limits of a connection."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import pytest

from daemon.exit_codes import Exit
from daemon.transports.http.edge.connection import PROBE_SLOTS
from daemon.transports.http.edge.messages import Pace
from daemon.transports.http.server import Bound, parse_bind
from tests.support.web import BOTH, Web, modern, running_web, token_file
from tests.support.wire import settings_for

pytestmark = pytest.mark.anyio

ROUTES = ("/mcp", "/", "/health", "/metrics", "/tools/list", "/tools/echo", "/openapi.json", "/x")


@pytest.fixture
async def web(tmp_path: Path) -> AsyncGenerator[Web]:
    async with running_web(tmp_path) as running:
        yield running


#: {port} is ours, {other} is not.
HOSTILE_HOSTS = (
    "evil.example",
    "evil.example:{port}",
    "localhost",
    "127.0.0.1",
    "localhost:{other}",
    "127.0.0.1:{other}",
    "localhost.:{port}",
    "localhost.evil.example:{port}",
    "evil.localhost:{port}",
    "127.0.0.1.evil.example:{port}",
    "127.0.0.1.nip.io:{port}",
    "127.0.0.2:{port}",
    "127.1:{port}",
    "2130706433:{port}",
    "0x7f000001:{port}",
    "0177.0.0.1:{port}",
    "0.0.0.0:{port}",
    "0:{port}",
    "[::]:{port}",
    "[::ffff:127.0.0.1]:{port}",
    "::1:{port}",
    "[0:0:0:0:0:0:0:1]:{port}",
    "user@127.0.0.1:{port}",
    "127.0.0.1:{port}@evil.example",
    "127.0.0.1:{port}/",
    "127.0.0.1:{port} evil.example",
    "127.0.0.1:{port},evil.example",
    "127.0.0.1:0{port}",
    "127.0.0.1:{port}.",
    "xn--localhost:{port}",
    "lоcalhost:{port}",
    "",
)
HOSTILE_ORIGINS = (
    "null",
    "http://evil.example",
    "https://evil.example:{port}",
    "http://localhost.evil.example",
    "http://evil.example/http://localhost",
    "http://127.0.0.1.evil.example:{port}",
    "http://localhost:{port}.evil.example",
    "http://user@localhost:{port}",
    "http://localhost:{port}/",
    "http://LOCALHOST:{port}",
    "file://",
    "chrome-extension://abcdefgh",
    "http://0.0.0.0:{port}",
    "http://127.0.0.2:{port}",
    "http://[::ffff:127.0.0.1]:{port}",
    "localhost:{port}",
    "http://localhost:999999",
    "http://localhost, http://evil.example",
    " ",
)


def _request(web: Web, verb: str, path: str, *headers: str) -> bytes:
    message, routing = modern("tools/call", {"name": "echo", "arguments": {"text": "x"}})

    body = json.dumps(message) if verb == "POST" else ""
    lines = [
        f"{verb} {path} HTTP/1.1",
        *headers,
        "Content-Type: application/json",
        f"Accept: {BOTH}",
        *(f"{name}: {value}" for name, value in routing.items()),
        f"Content-Length: {len(body)}",
    ]
    return "\r\n".join(lines).encode("utf-8") + b"\r\n\r\n" + body.encode()


def _calls(web: Web) -> int:
    return sum(web.services.meter._calls.values())


async def test_hostile_hosts_and_origins_reach_no_handler(web: Web) -> None:
    """More than forty pairs on every kind of route are rejected before any handler runs."""
    good_host = f"Host: 127.0.0.1:{web.port}"
    pairs: list[tuple[str, ...]] = [
        (f"Host: {host.format(port=web.port, other=web.port + 1)}",) for host in HOSTILE_HOSTS
    ]
    pairs += [(good_host, f"Origin: {origin.format(port=web.port)}") for origin in HOSTILE_ORIGINS]
    pairs += [
        (),
        (good_host, "Host: evil.example"),
        ("Host: evil.example", good_host),
        (good_host, good_host),
        (good_host, "Origin: http://localhost", "Origin: http://evil.example"),
        ("Host: evil.example", "Origin: http://localhost"),
    ]
    assert len(pairs) >= 40
    verbs = ("POST", "GET", "OPTIONS", "DELETE")
    for number, headers in enumerate(pairs):
        verb, route = verbs[number % 4], ROUTES[number % len(ROUTES)]
        for chosen in {("POST", "/mcp"), (verb, route)}:
            answer = await web.raw(_request(web, *chosen, *headers))
            status = answer.split(b" ")[1] if answer else b"closed"
            assert status in (b"403", b"400"), (headers, chosen, answer[:200])
            assert b"access-control-allow-origin" not in answer.lower()
    absolute = f"http://127.0.0.1:{web.port}/mcp"
    answer = await web.raw(_request(web, "POST", absolute, "Host: 127.0.0.1"))
    assert answer.startswith(b"HTTP/1.1 403")
    assert _calls(web) == 0


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST", "[::1]"])
@pytest.mark.parametrize(
    "origin", [None, "http://localhost:3000", "https://127.0.0.1", "http://[::1]:8080"]
)
async def test_loopback_hosts_and_origins_are_accepted(
    web: Web, host: str, origin: str | None
) -> None:
    headers = [f"Host: {host}:{web.port}"]
    if origin is not None:
        headers.append(f"Origin: {origin}")
    answer = await web.raw(_request(web, "POST", "/mcp", *headers))
    assert answer.startswith(b"HTTP/1.1 200")
    assert (b"access-control-allow-origin" in answer) == (origin is not None)


async def test_configured_origins_and_hosts_are_accepted(tmp_path: Path) -> None:
    flags: dict[str, Any] = {
        "server__cors_origins": "https://app.example",
        "server__hosts": "memory.lan:7331",
    }
    async with running_web(tmp_path, **flags) as web:
        answer = await web.raw(
            _request(web, "POST", "/mcp", "Host: memory.lan:7331", "Origin: https://app.example")
        )
        assert answer.startswith(b"HTTP/1.1 200")
        assert b"access-control-allow-origin: https://app.example" in answer
        other = await web.raw(
            _request(web, "POST", "/mcp", "Host: memory.lan:7331", "Origin: https://app2.example")
        )
        assert other.startswith(b"HTTP/1.1 403")


async def test_a_preflight_lists_the_allowed_headers(web: Web) -> None:
    answer = await web.client.options(
        "/mcp",
        headers={
            "origin": "http://localhost:3000",
            "access-control-request-method": "POST",
            "access-control-request-headers": "content-type, mcp-param-region, x-evil",
        },
    )
    assert answer.status_code == 204
    assert answer.headers["access-control-allow-origin"] == "http://localhost:3000"
    allowed = answer.headers["access-control-allow-headers"].lower()
    assert "mcp-session-id" in allowed
    assert "mcp-param-region" in allowed
    assert "x-evil" not in allowed


@pytest.mark.parametrize(
    "data",
    [
        b"GET /health HTTP/1.1\r\nHost: {host}\r\nContent-Length: 5\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: {host}\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: {host}\r\nContent-Length: -1\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: xchunked\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost : {host}\r\n\r\n",
        b"GET /health HTTP/9.9\r\nHost: {host}\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
)
async def test_ambiguous_requests_are_rejected(web: Web, data: bytes) -> None:
    host = f"127.0.0.1:{web.port}".encode()
    answer = await web.raw(data.replace(b"{host}", host))
    assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 403")), answer[:200]


async def test_headers_are_limited_in_number_and_size(web: Web) -> None:
    start = f"GET /health HTTP/1.1\r\nHost: 127.0.0.1:{web.port}\r\n".encode()
    many = start + b"".join(b"x-%d: y\r\n" % n for n in range(120)) + b"\r\n"
    large = start + b"x: " + b"y" * 20_000 + b"\r\n\r\n"
    endless = start + b"x: " + b"y" * 40_000
    long = b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n\r\n"
    for data in (many, large, endless, long):
        assert (await web.raw(data)).startswith(b"HTTP/1.1 431")


async def test_keep_alive_pipelining_and_expect_work(web: Web) -> None:
    get = f"GET /health HTTP/1.1\r\nHost: 127.0.0.1:{web.port}\r\n\r\n".encode()
    async with await anyio.connect_tcp("127.0.0.1", web.port) as stream:
        await stream.send(get * 3)
        out = b""
        with anyio.fail_after(5):
            while out.count(b'{"status":"ok"}') < 3:
                out += await stream.receive()
    body = b'{"text":"x"}'
    head = (
        f"POST /tools/echo HTTP/1.1\r\nHost: 127.0.0.1:{web.port}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        "Expect: 100-continue\r\n\r\n"
    )
    async with await anyio.connect_tcp("127.0.0.1", web.port) as stream:
        await stream.send(head.encode())
        with anyio.fail_after(5):
            assert (await stream.receive()).startswith(b"HTTP/1.1 100")
            await stream.send(body)
            out = b""
            while b'{"result":"x"}' not in out:
                out += await stream.receive()


async def test_slow_heads_and_bodies_time_out(tmp_path: Path) -> None:
    async with running_web(tmp_path, pace=Pace(head=0.2, body=0.2)) as web:
        start = f"POST /tools/echo HTTP/1.1\r\nHost: 127.0.0.1:{web.port}\r\n".encode()
        assert (await web.raw(start)).startswith(b"HTTP/1.1 408")
        assert (await web.raw(b"")).startswith(b"HTTP/1.1 408")
        body = start + b"Content-Type: application/json\r\nContent-Length: 10\r\n\r\n{"
        assert (await web.raw(body)).startswith(b"HTTP/1.1 408")


async def test_one_http_connection_too_many_is_503(tmp_path: Path) -> None:
    async with running_web(tmp_path, limits__connections=3) as web:
        streams = [await anyio.connect_tcp("127.0.0.1", web.port) for _ in range(3)]
        get = f"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:{web.port}\r\n\r\n".encode()
        assert (await web.raw(get)).startswith(b"HTTP/1.1 503")
        for stream in streams:
            await stream.aclose()


async def test_health_is_answered_beyond_the_connection_limit(tmp_path: Path) -> None:
    async with running_web(tmp_path, limits__connections=3) as web:
        streams = [await anyio.connect_tcp("127.0.0.1", web.port) for _ in range(3)]
        get = f"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1:{web.port}\r\n\r\n".encode()
        for _ in range(2 * PROBE_SLOTS):  # each probe gives its slot back
            assert (await web.raw(get)).startswith(b"HTTP/1.1 200")
        streams += [await anyio.connect_tcp("127.0.0.1", web.port) for _ in range(PROBE_SLOTS)]
        assert (await web.raw(get)).startswith(b"HTTP/1.1 503")
        for stream in streams:
            await stream.aclose()


@pytest.mark.parametrize(
    "bind", ["0.0.0.0:0", "[::]:0", "192.168.7.7:0", "8.8.8.8:80", "localhost.evil:0", "x", ":1"]
)
def test_an_address_outside_loopback_needs_a_token_file(tmp_path: Path, bind: str) -> None:
    with pytest.raises(Exit, match=r"server\.(bind|token_file)"):
        Bound(settings_for(tmp_path, server__bind=bind))


def test_a_wildcard_address_with_a_token_file_is_allowed(tmp_path: Path) -> None:
    tokens = token_file(tmp_path, f'[[token]]\nname = "a"\nsecret = "{"s" * 32}"\n')
    bound = Bound(settings_for(tmp_path, server__bind="0.0.0.0:0", server__token_file=tokens))
    bound.listener.close()
    assert parse_bind("[::1]:7331") == ("::1", 7331)

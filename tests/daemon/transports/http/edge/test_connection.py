"""Rejected requests: never written into a response, never before earlier requests."""

from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest

from daemon.transports.http.edge.messages import Pace
from tests.support.web import Web, running_web

pytestmark = pytest.mark.anyio


@pytest.fixture
async def web(tmp_path: Path) -> AsyncGenerator[Web]:
    async with running_web(tmp_path, pace=Pace(head=0.2, body=0.2)) as running:
        yield running


def post(web: Web, tool: str, body: bytes, *, length: int | None = None) -> bytes:
    head = f"POST /tools/{tool} HTTP/1.1\r\nHost: 127.0.0.1:{web.port}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {length or len(body)}\r\n\r\n"
    return head.encode() + body


async def everything(web: Web, *pieces: bytes) -> bytes:
    """All bytes until the server closes the connection."""
    out = b""
    with anyio.fail_after(10):
        async with await anyio.connect_tcp("127.0.0.1", web.port) as stream:
            for piece in pieces:
                await stream.send(piece)
            while True:
                try:
                    out += await stream.receive()
                except anyio.EndOfStream:
                    return out


def statuses(out: bytes) -> list[int]:
    """The statuses of the responses, which must follow one another without gaps."""
    found: list[int] = []
    while out:
        head, _, rest = out.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 "), out[:80]
        found.append(int(head.split(b" ")[1]))
        lengths = [
            int(line.split(b":")[1])
            for line in head.lower().split(b"\r\n")
            if line.startswith(b"content-length:")
        ]
        out = rest[lengths[0] :]
    return found


GARBAGE = b"this is not HTTP\r\n\r\n"


async def test_requests_before_garbage_are_answered_first(web: Web) -> None:
    slow, echo = post(web, "slow", b'{"seconds":0.1}'), post(web, "echo", b'{"text":"x"}')
    assert statuses(await everything(web, echo + GARBAGE)) == [200, 400]
    assert statuses(await everything(web, slow + echo + GARBAGE)) == [200, 200, 400]


async def test_an_incomplete_head_does_not_break_a_long_response(web: Web) -> None:
    slow = post(web, "slow", b'{"seconds":0.5}')
    assert statuses(await everything(web, slow + b"GET / HT")) == [200, 408]


async def test_the_body_timeout_does_not_run_while_we_do_not_read(web: Web) -> None:
    """We do not read while earlier requests are answered; the client is not to blame."""
    slow = post(web, "slow", b'{"seconds":0.5}')
    large = post(web, "echo", b'{"text":"%s"}' % (b"x" * 600_000))
    assert statuses(await everything(web, slow + large + GARBAGE)) == [200, 200, 400]


async def test_a_missing_body_is_408_and_ends_the_handler(web: Web) -> None:
    out = await everything(web, post(web, "echo", b'{"text":', length=100))
    assert statuses(out) == [408]


async def test_a_malformed_pipelined_body_is_rejected_after_earlier_requests(web: Web) -> None:
    slow = post(web, "slow", b'{"seconds":0.1}')
    head = f"POST /tools/echo HTTP/1.1\r\nHost: 127.0.0.1:{web.port}\r\n"
    head += "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"
    assert statuses(await everything(web, slow + head.encode())) == [200, 400]
    assert statuses(await everything(web, head.encode())) == [400]


async def test_an_event_stream_is_not_written_into(web: Web) -> None:
    """Half of a pipelined request arrives during an event stream; the stream ends properly."""
    message = (
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow",'
        b'"arguments":{"seconds":0.6,"steps":3},"_meta":{"progressToken":1,'
        b'"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
        b'"io.modelcontextprotocol/clientCapabilities":{}}}}'
    )
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{web.port}\r\n"
        "Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n"
        "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: slow\r\n"
        f"Content-Length: {len(message)}\r\n\r\n"
    )
    out = await everything(web, head.encode() + message, b"GET /")
    first, second, _ = out.partition(b"HTTP/1.1 408")
    assert second
    assert first.endswith(b"0\r\n\r\n")
    assert b'"result"' in first


@pytest.mark.parametrize("coding", ["gzip, chunked", "gzip", "chunked, identity", "Chunked, gzip"])
async def test_an_unknown_transfer_coding_is_rejected(web: Web, coding: str) -> None:
    head = f"POST /tools/echo HTTP/1.1\r\nHost: 127.0.0.1:{web.port}\r\n"
    head += f"Content-Type: application/json\r\nTransfer-Encoding: {coding}\r\n\r\n"
    body = b'c\r\n{"text":"x"}\r\n0\r\n\r\n'
    assert statuses(await everything(web, head.encode() + body)) == [400]


@pytest.mark.parametrize("version", ["2.0", "0.9", "1.2", "3.0"])
async def test_another_http_version_is_rejected(web: Web, version: str) -> None:
    head = f"GET /health HTTP/{version}\r\nHost: 127.0.0.1:{web.port}\r\n\r\n"
    assert statuses(await everything(web, head.encode())) in ([505], [400])


async def test_http_1_0_has_no_transfer_codings(web: Web) -> None:
    head = f"POST /tools/echo HTTP/1.0\r\nHost: 127.0.0.1:{web.port}\r\n"
    head += "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert statuses(await everything(web, head.encode() + b"0\r\n\r\n")) == [400]


async def test_rejected_connections_are_counted(web: Web) -> None:
    for _ in range(2):
        assert statuses(await everything(web, GARBAGE)) == [400]
    assert statuses(await everything(web, b"GET /")) == [408]
    text = (await web.client.get("/metrics")).text
    assert 'recalld_http_refused_total{status="400"} 2' in text
    assert 'recalld_http_refused_total{status="408"} 1' in text


@pytest.mark.parametrize("how", ["announced", "chunked"])
async def test_a_client_that_is_still_sending_can_read_the_rejection(web: Web, how: str) -> None:
    size = 30_000_000
    head = f"POST /tools/echo HTTP/1.1\r\nHost: 127.0.0.1:{web.port}\r\n"
    head += "Content-Type: application/json\r\n"
    if how == "announced":
        pieces = [f"{head}Content-Length: {size}\r\n\r\n".encode(), b" " * size]
    else:
        pieces = [f"{head}Transfer-Encoding: chunked\r\n\r\n{size:x}\r\n".encode(), b" " * size]
    assert statuses(await everything(web, *pieces)) == [413]

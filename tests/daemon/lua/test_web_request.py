"""HTTP requests of scripts: only to allowed hosts, never to this machine by accident."""

import socket
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest

from daemon.lua.web_request import RequestRefused, WebRequest, perform


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path.startswith("/away"):
            self.send_response(302)
            self.send_header("location", "http://example.org/x")
            self.send_header("content-length", "0")
            self.end_headers()
            return
        if self.path.startswith("/around"):
            self.send_response(302)
            self.send_header("location", "/around")
            self.send_header("content-length", "0")
            self.end_headers()
            return
        body = f"{self.command} {self.path} {self.headers.get('x-key')}".encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_PUT = do_GET

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.send_response(201)
        self.send_header("content-type", self.headers["content-type"])
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_port
    server.shutdown()
    server.server_close()


async def get(url: str, *rules: str, **more: Any) -> dict[str, Any]:
    return await perform(WebRequest(method="GET", url=url, **more), rules)


async def test_a_named_loopback_host_is_reached(port: int) -> None:
    url = f"http://127.0.0.1:{port}/x"
    for rule in ("127.0.0.1", f"127.0.0.1:{port}"):
        found = await get(url, rule, headers={"x-key": "k"}, parameters={"q": "a b"})
        assert (found["status"], found["ok"]) == (200, True)
        assert found["body"] == b"GET /x?q=a+b k"
    assert (await get(f"http://localhost:{port}/", "localhost"))["status"] == 200


async def test_a_body_is_sent(port: int) -> None:
    request = WebRequest(
        method="POST", url=f"http://127.0.0.1:{port}/", body=b'{"a":1}', is_json=True
    )
    found = await perform(request, ("127.0.0.1",))
    assert (found["status"], found["body"]) == (201, b'{"a":1}')
    assert found["headers"]["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("url", "rules", "reason"),
    [
        ("http://example.com/", (), "is off; allow_hosts lists"),
        ("http://example.com/", ("other.com",), "the host example.com is not in allow_hosts"),
        ("http://example.com.evil.org/", ("example.com",), "is not in allow_hosts"),
        ("http://notexample.com/", ("*.example.com",), "is not in allow_hosts"),
        ("http://127.0.0.1:{port}/", ("*",), "an address of this machine or a link-local one"),
        ("http://localhost:{port}/", ("*",), "an address of this machine or a link-local one"),
        ("http://127.0.0.1:{port}/", ("127.0.0.1:1",), "is not in allow_hosts"),
        ("http://0x7f000001:{port}/", ("*",), "an address of this machine"),
        ("http://[::ffff:127.0.0.1]:{port}/", ("*",), "an address of this machine"),
        ("http://0.0.0.0:{port}/", ("*",), "an address of this machine"),
        ("http://169.254.169.254/latest/", ("*",), "a link-local one"),
        ("file:///etc/passwd", ("*",), "only http and https"),
        ("http:///x", ("*",), "only http and https"),
        ("http://127.0.0.1:{port}/away", ("127.0.0.1",), "example.org is not in allow_hosts"),
        ("http://127.0.0.1:{port}/around", ("127.0.0.1",), "more than 10 redirects"),
    ],
)
async def test_a_request_is_refused(
    port: int, url: str, rules: tuple[str, ...], reason: str
) -> None:
    with pytest.raises(RequestRefused, match=reason):
        await get(url.replace("{port}", str(port)), *rules)


async def test_a_request_has_a_time_limit() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        with pytest.raises(RequestRefused, match="timed out"):
            await get(url, "127.0.0.1", seconds=0.2)


async def test_a_closed_port_is_a_plain_reason() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/"
    with pytest.raises(RequestRefused, match=r"127\.0\.0\.1: .*refused"):
        await get(url, "127.0.0.1")

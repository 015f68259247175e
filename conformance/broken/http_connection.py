"""HTTP/1.1 parsing for the reference server: request heads, bodies and timeouts."""

from __future__ import annotations

import contextlib
import json
import select
import socket
import time
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any

from conformance.broken.reference import LIMIT

if TYPE_CHECKING:
    from conformance.broken.http_server import HttpServer

ARRIVAL_SECONDS = 1.5
"""Timeout for receiving a request, and for an idle connection."""


class HttpError(Exception):
    """An HTTP status and the JSON-RPC error in its body."""

    def __init__(self, status: int, code: int = -32600, id: Any = None) -> None:
        super().__init__(status)
        self.status = status
        self.code = code
        self.id = id


class HttpConnection(BaseHTTPRequestHandler):
    """One HTTP connection. Subclasses implement `work` to answer a request."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: HttpServer
    gone = False
    who = ""

    def log_message(self, format: str, *args: Any) -> None:
        """Write no access log."""

    def _is(self, quirk: str) -> bool:
        return bool(self.server.core.quirk(quirk))

    def work(self, body: bytes) -> None:
        raise NotImplementedError

    # -- input ------------------------------------------------------------------------------------

    def handle_one_request(self) -> None:
        self._start_clock()
        try:
            super().handle_one_request()
        except ConnectionError:
            self.close_connection = True
        finally:
            self._stop_clock()

    def _start_clock(self) -> None:
        self.server.deadlines[self] = time.monotonic() + ARRIVAL_SECONDS

    def _stop_clock(self) -> None:
        self.server.deadlines.pop(self, None)

    def too_slow(self) -> None:
        """Close the connection because the request took too long to arrive."""
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def parse_request(self) -> bool:
        if self._is("http_slow_head"):
            self._stop_clock()
        is_fine = super().parse_request()
        if is_fine and self._is("http_closing"):
            self.close_connection = True
        if is_fine and self._is("http_only_11") and self.request_version != "HTTP/1.1":
            self.send_error(505)
            return False
        return is_fine

    def handle_expect_100(self) -> bool:
        if self._is("http_no_continue"):
            self.send_error(417)
            return False
        return super().handle_expect_100()

    def _within(self) -> None:
        if self._is("http_slow_body"):
            self._stop_clock()
        try:
            body = self._body()
            self._stop_clock()
            self.work(body)
        except HttpError as error:
            answer: dict[str, Any] = {"jsonrpc": "2.0"}
            if error.id is not None:
                answer["id"] = error.id
            answer["error"] = {"code": error.code, "message": "refused"}
            headers = (
                {"Allow": "GET, POST, DELETE"} if error.status == 405 else self.challenge(error)
            )
            self.send(error.status, json.dumps(answer).encode(), headers)

    def challenge(self, error: HttpError) -> dict[str, str] | None:
        """The headers of a 401; subclasses add them."""
        return None

    do_POST = do_GET = do_DELETE = do_PUT = do_PATCH = _within

    def _body(self) -> bytes:
        lengths = self.headers.get_all("content-length", [])
        coding = self.headers.get("transfer-encoding")
        if len(set(lengths)) > 1 and not self._is("http_two_lengths"):
            self.close_connection = True
            raise HttpError(400)
        if coding is not None and lengths and not self._is("http_smuggled"):
            self.close_connection = True
            raise HttpError(400)
        if lengths and int(lengths[0]) > LIMIT and not self._is("http_no_limit"):
            self.close_connection = True
            raise HttpError(413)
        if coding is not None and not self._is("http_no_chunks"):
            return self._chunks()
        return self.rfile.read(int(lengths[0])) if lengths else b""

    def _chunks(self) -> bytes:
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return body

    def hung_up(self) -> bool:
        """Whether the client disconnected. Pipelined bytes do not count as a disconnect."""
        ready, _, _ = select.select([self.connection], [], [], 0)
        try:
            return bool(ready) and not self.connection.recv(1, socket.MSG_PEEK)
        except OSError:
            return True

    # -- output -----------------------------------------------------------------------------------

    def send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        kind = "text/html" if self._is("http_html") else "application/json"
        self.send_header("Content-Type", kind)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def begin_stream(self) -> None:
        """Send the head of a stream. The stream ends when the connection closes."""
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        if not self._is("http_cached"):
            self.send_header("Cache-Control", "no-cache")
        if not self._is("http_buffered"):
            self.send_header("X-Accel-Buffering", "no")
        self.end_headers()

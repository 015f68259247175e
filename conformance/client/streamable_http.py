"""Streamable HTTP, through the same line-based wire as the other transports.

A relay sits between a case and the server. It sends each line of the case as one POST, with the
headers of a correct client, and turns each message in the response (a JSON body or the events of a
stream) into one line. Cases about tools or ids therefore run unchanged over HTTP. Cases about HTTP
itself (status codes, headers, sessions) send requests directly; see
`conformance.suites.http_requests`.

The relay behaves as a correct client: it keeps its session id, opens the standalone stream after
`notifications/initialized`, sends its protocol version, and cancels modern calls by disconnecting.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Literal
from urllib.parse import urlsplit

from conformance.client.http_headers import head_of, headers_for, status_of
from conformance.client.sse import EventStream, parse
from conformance.client.unix_socket import SocketWire
from conformance.client.wire import NoServer

SECONDS = 60.0
WHOLE_SECONDS = 10.0
"""Time limit for reading a complete response; a stream can stay open forever."""


class HttpEndpoint:
    """An MCP endpoint, given by its URL."""

    transport: Literal["stdio", "unix", "http"] = "http"

    def __init__(
        self,
        url: str,
        *,
        timeout: float = 5.0,
        token: str | None = None,
        other_token: str | None = None,
        foreign_token: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"--http wants a URL like http://127.0.0.1:7331/mcp, not {url!r}")
        self.url = url
        self.host = parts.hostname
        self.secure = parts.scheme == "https"
        self.port = parts.port or (443 if self.secure else 80)
        self.path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self.own_headers = dict(headers or {})
        """Headers that the user adds to every request."""
        self.exclusive = False
        self.last_status = ""
        """The status line and body of the last response that was no message."""
        self.timeout = timeout
        self.token = token
        self.other_token = other_token
        self.foreign_token = foreign_token

    def connect(self) -> SocketWire:
        """Open a wire; the server sees a new client."""
        try:
            socket.create_connection((self.host, self.port), self.timeout).close()
        except OSError as error:
            raise NoServer(f"cannot connect to {self.url}: {error.strerror or error}") from error
        ours, theirs = socket.socketpair()
        relay = Relay(self, theirs)
        relay.start()
        return RelayWire(ours, relay)

    def raw_socket(self, seconds: float) -> socket.socket:
        """A TCP connection to the server, with TLS for https."""
        plain = socket.create_connection((self.host, self.port), seconds)
        if not self.secure:
            return plain
        return ssl.create_default_context().wrap_socket(plain, server_hostname=self.host)

    def open(self, seconds: float = SECONDS) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if self.secure else http.client.HTTPConnection
        connection = kind(self.host, self.port, timeout=seconds)
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def signed(self, headers: dict[str, str]) -> dict[str, str]:
        """Add the user's headers and our bearer token, unless the request sets them."""
        given = {name.lower() for name in headers}
        own = {name: value for name, value in self.own_headers.items() if name.lower() not in given}
        headers = {**own, **headers}
        if "Authorization" in headers:
            return {
                name: value for name, value in headers.items() if value or name != "Authorization"
            }
        if self.token is None:
            return headers
        return {**headers, "Authorization": f"Bearer {self.token}"}

    def ask(
        self,
        method: str,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
        *,
        path: str | None = None,
    ) -> Reply:
        """Send one request, adding only the bearer token, and read the whole response."""
        connection = self.open(WHOLE_SECONDS + self.timeout)
        try:
            connection.request(method, path or self.path, body, self.signed(headers or {}))
            with contextlib.closing(connection.getresponse()) as response:
                return Reply(response)
        finally:
            connection.close()

    def stream(
        self, method: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> EventStream:
        """Send one request and read the response as a stream."""
        connection = self.open()
        try:
            connection.request(method, self.path, body, self.signed(headers or {}))
        except BaseException:
            connection.close()
            raise
        return EventStream(connection, head_seconds=WHOLE_SECONDS + self.timeout)

    def describe(self) -> str:
        return f"http: {self.url}"

    def close(self) -> None:
        pass


class Reply:
    """A response, read to its end; reading a stream stops after `WHOLE_SECONDS`."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.head = status_of(response)
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        if "text/event-stream" not in self.headers.get("content-type", ""):
            self.body = response.read()
            return
        until = time.monotonic() + WHOLE_SECONDS
        self.body = b""
        with contextlib.suppress(TimeoutError):
            while time.monotonic() < until and (chunk := response.read1(65536)):
                self.body += chunk

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def messages(self) -> list[Any]:
        """The messages of a response, JSON or stream."""
        if "text/event-stream" not in self.headers.get("content-type", ""):
            return [self.json] if self.body else []
        return [event.message for event in parse(self.body) if event.data]


class RelayWire(SocketWire):
    """The case's end of a relay."""

    def __init__(self, connection: socket.socket, relay: Relay) -> None:
        super().__init__(connection)
        self._relay = relay

    @property
    def pid(self) -> int | None:
        return None

    def speak(self, revision: str, note: Callable[[bool, bytes], None]) -> None:
        self._relay.revision = revision
        self._relay.note = note


class Relay(threading.Thread):
    """Translates between lines and HTTP for one client."""

    def __init__(self, endpoint: HttpEndpoint, side: socket.socket) -> None:
        super().__init__(daemon=True, name="http-relay")
        self._endpoint = endpoint
        self._side = side
        self._writing = threading.Lock()
        self._state = threading.Condition()
        self._open: dict[str, socket.socket] = {}
        self._duplicate_ids: set[str] = set()
        self._running = 0
        self._session: str | None = None
        self._version: str | None = None
        self.revision: str | None = None
        """The revision of the client; a modern one labels messages that carry no version."""
        self.note: Callable[[bool, bytes], None] | None = None

    def _headers(self, message: Any) -> dict[str, str]:
        return headers_for(message, self._session, self._version, self.revision)

    def _record(self, sent: bool, head: str) -> None:
        if self.note is not None:
            self.note(sent, head.encode())

    # -- from the case to the server --------------------------------------------------------------

    def run(self) -> None:
        rest = b""
        with contextlib.suppress(OSError):
            while chunk := self._side.recv(262144):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    if line.strip():
                        self._post(line)
        with self._state:  # calls in flight are still answered after the end of input
            self._state.wait_for(lambda: self._running == 0, timeout=SECONDS)
        self._leave()

    def _post(self, line: bytes) -> None:
        message = _read(line)
        if self._is_modern_cancel(message):
            return
        with contextlib.suppress(OSError, http.client.HTTPException):
            connection = self._endpoint.open()
            headers = self._endpoint.signed(self._headers(message))
            self._record(True, head_of("POST", self._endpoint.path, headers))
            connection.request("POST", self._endpoint.path, line, headers)
            is_call = isinstance(message, list) or (isinstance(message, dict) and "id" in message)
            key = json.dumps(message.get("id")) if isinstance(message, dict) else ""
            with self._state:
                if key in self._open:
                    self._duplicate_ids.add(key)
            refusable = message if _is_request(message) else None
            if _method(message) == "initialize":
                self._read(connection, refusable, opens=True)
            elif is_call and not (isinstance(message, dict) and "method" not in message):
                self._begin(key, connection, refusable)
            else:
                self._read(connection, notice=_is_notification(message))
                if (
                    isinstance(message, dict)
                    and message.get("method") == "notifications/initialized"
                ):
                    self._listen()

    def _begin(self, key: str, connection: http.client.HTTPConnection, refusable: Any) -> None:
        sock = connection.sock  # `Connection: close` makes HTTPConnection drop it
        with self._state:
            self._running += 1
            self._open[key] = sock

        def read() -> None:
            try:
                with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
                    self._read(connection, refusable)
            finally:
                with self._state:
                    self._running -= 1
                    if self._open.get(key) is sock:
                        del self._open[key]
                    self._state.notify_all()

        threading.Thread(target=read, daemon=True).start()

    def _is_modern_cancel(self, message: Any) -> bool:
        """Whether to cancel by disconnecting: modern clients send no notification."""
        if self._session is not None or not isinstance(message, dict):
            return False
        if message.get("method") != "notifications/cancelled" or "id" in message:
            return False
        params = message.get("params")
        key = json.dumps(params.get("requestId")) if isinstance(params, dict) else ""
        with self._state:
            sock = self._open.get(key)
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        return True

    # -- from the server to the case --------------------------------------------------------------

    def _read(
        self,
        connection: http.client.HTTPConnection,
        asked: Any = None,
        *,
        opens: bool = False,
        notice: bool = False,
    ) -> None:
        with contextlib.closing(connection):
            response = connection.getresponse()
            self._record(False, status_of(response))
            with response:
                if opens and response.status == 200:
                    self._session = response.getheader("mcp-session-id") or self._session
                if "text/event-stream" in (response.getheader("content-type") or ""):
                    for data in _events(response):
                        self._note(data, opens)
                        self._write(data)
                    return
                body = response.read().strip()
                if response.status >= 400:
                    self._endpoint.last_status = (
                        f"{status_of(response)} {body[:300].decode('utf-8', 'replace')}"
                    )
                if response.status == 429:
                    body = _rate_limited(response.getheader("retry-after"), asked)
                self._note(body, opens)
                # If two requests share an id, it is unknown which one the error rejects.
                is_sure = asked is not None and json.dumps(asked["id"]) not in self._duplicate_ids
                if notice and response.status >= 400:
                    return  # the status refuses a notification; the body may be anything
                if response.status >= 400 and (is_sure or asked is None):
                    body = _addressed(body, asked["id"] if asked else None, response)
                if body:
                    self._write(body.replace(b"\n", b" "))

    def _note(self, body: bytes, opens: bool) -> None:
        if opens:
            message = _read(body)
            result = message.get("result") if isinstance(message, dict) else None
            if isinstance(result, dict) and isinstance(result.get("protocolVersion"), str):
                self._version = result["protocolVersion"]

    def _listen(self) -> None:
        """Open the standalone stream, which is optional for servers."""
        if self._session is None:
            return
        connection = self._endpoint.open()
        sock = connection.sock
        headers = {**self._headers(None), "Accept": "text/event-stream"}
        headers.pop("Content-Type")
        connection.request("GET", self._endpoint.path, headers=self._endpoint.signed(headers))
        response = connection.getresponse()
        if response.status != 200:
            response.close()
            connection.close()
            return

        def read() -> None:
            trouble = contextlib.suppress(OSError, http.client.HTTPException, ValueError)
            with trouble, contextlib.closing(connection), response:
                for data in _events(response):
                    self._write(data)

        self._standalone = sock
        threading.Thread(target=read, daemon=True).start()

    _standalone: socket.socket | None = None

    def _write(self, line: bytes) -> None:
        with self._writing, contextlib.suppress(OSError):
            self._side.sendall(line + b"\n")

    def _leave(self) -> None:
        """End the session and all streams of the case."""
        for sock in [*self._open.values(), self._standalone]:
            if sock is not None:
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)
        if self._session is not None:
            with contextlib.suppress(OSError, http.client.HTTPException):
                self._endpoint.ask("DELETE", None, self._headers(None))
        with contextlib.suppress(OSError):
            self._side.shutdown(socket.SHUT_WR)
        self._side.close()


def _rate_limited(hint: str | None, asked: Any) -> bytes:
    """A status 429 as an error that the peer recognises."""
    seconds = float(hint) if hint is not None and hint.strip().isdigit() else 1.0
    error = {"code": -32000, "message": "HTTP 429", "data": {"retryAfter": seconds}}
    id = asked["id"] if asked is not None else None
    return json.dumps({"jsonrpc": "2.0", "id": id, "error": error}).encode()


def _events(response: http.client.HTTPResponse) -> Any:
    data: list[bytes] = []
    while line := response.readline():
        line = line.rstrip(b"\r\n")
        if line.startswith(b"data:"):
            data.append(line[5:].lstrip(b" "))
        elif not line and data:
            whole = b"\n".join(data)
            data = []
            if whole.strip():
                yield whole.replace(b"\n", b" ")


def _is_notification(message: Any) -> bool:
    return isinstance(message, dict) and "method" in message and "id" not in message


def _is_request(message: Any) -> bool:
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        return False
    id = message.get("id")
    is_named = isinstance(message.get("method"), str)
    return is_named and isinstance(id, str | int) and not isinstance(id, bool)


def _addressed(body: bytes, id: Any, response: http.client.HTTPResponse) -> bytes:
    """An error status as an error response to its request.

    An error without an id gets the id of its request. A body that is no message becomes an error
    with code 0, so that the case learns at once that the request was refused.
    """
    answer = _read(body)
    if isinstance(answer, dict) and "error" in answer:
        return body if answer.get("id") is not None else json.dumps({**answer, "id": id}).encode()
    if isinstance(answer, dict) and "result" in answer:
        return body
    text = f"{response.status} {response.reason}: {body[:200].decode('utf-8', 'replace')}"
    error = {"code": 0, "message": f"HTTP {text}"}
    return json.dumps({"jsonrpc": "2.0", "id": id, "error": error}).encode()


def _method(message: Any) -> Any:
    return message.get("method") if isinstance(message, dict) else None


def _read(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None

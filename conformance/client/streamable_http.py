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

import base64
import contextlib
import http.client
import json
import socket
import threading
import time
from typing import Any, Literal
from urllib.parse import urlsplit

from conformance import revisions
from conformance.client.sse import EventStream, parse
from conformance.client.unix_socket import SocketWire
from conformance.client.wire import NoServer

ACCEPT = "application/json, text/event-stream"
SECONDS = 60.0
WHOLE_SECONDS = 10.0
"""Time limit for reading a complete response; a stream can stay open forever."""
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
VERSION = "io.modelcontextprotocol/protocolVersion"


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
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme != "http" or parts.hostname is None:
            raise ValueError(f"--http wants a URL like http://127.0.0.1:7331/mcp, not {url!r}")
        self.url = url
        self.host = parts.hostname
        self.port = parts.port or 80
        self.path = parts.path or "/"
        self.timeout = timeout
        self.token = token
        self.other_token = other_token

    def connect(self) -> SocketWire:
        """Open a wire; the server sees a new client."""
        try:
            socket.create_connection((self.host, self.port), self.timeout).close()
        except OSError as error:
            raise NoServer(f"cannot connect to {self.url}: {error.strerror or error}") from error
        ours, theirs = socket.socketpair()
        Relay(self, theirs).start()
        return SocketWire(ours)

    def open(self, seconds: float = SECONDS) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=seconds)
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def signed(self, headers: dict[str, str]) -> dict[str, str]:
        """Add our bearer token, unless Authorization is given ("" removes the header)."""
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
            connection.request(
                "POST",
                self._endpoint.path,
                line,
                self._endpoint.signed(headers_for(message, self._session, self._version)),
            )
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
                self._read(connection)
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
        self, connection: http.client.HTTPConnection, asked: Any = None, *, opens: bool = False
    ) -> None:
        with contextlib.closing(connection):
            response = connection.getresponse()
            with response:
                if opens and response.status == 200:
                    self._session = response.getheader("mcp-session-id") or self._session
                if "text/event-stream" in (response.getheader("content-type") or ""):
                    for data in _events(response):
                        self._note(data, opens)
                        self._write(data)
                    return
                body = response.read().strip()
                self._note(body, opens)
                # If two requests share an id, it is unknown which one the error rejects.
                is_sure = asked is not None and json.dumps(asked["id"]) not in self._duplicate_ids
                if is_sure and response.status >= 400:
                    body = _addressed(body, asked["id"])
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
        headers = {**headers_for(None, self._session, self._version), "Accept": "text/event-stream"}
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
                headers = headers_for(None, self._session, self._version)
                self._endpoint.ask("DELETE", None, headers)
        with contextlib.suppress(OSError):
            self._side.shutdown(socket.SHUT_WR)
        self._side.close()


def headers_for(message: Any, session: str | None, version: str | None) -> dict[str, str]:
    """The headers of a correct client for this message."""
    headers = {"Content-Type": "application/json", "Accept": ACCEPT}
    params = message.get("params") if isinstance(message, dict) else None
    meta = params.get("_meta") if isinstance(params, dict) else None
    is_handshake = _method(message) == "initialize" and "protocolVersion" in (params or {})
    if isinstance(meta, dict) and VERSION in meta and not is_handshake:
        method = str(message.get("method"))
        headers["MCP-Protocol-Version"] = str(meta[VERSION])
        headers["Mcp-Method"] = encoded(method)
        member = NAMED.get(method)
        if member is not None and isinstance(params, dict):
            headers["Mcp-Name"] = encoded(str(params.get(member, "")))
        return headers
    if session is not None:
        headers["Mcp-Session-Id"] = session
        if version is not None and version >= "2025-06-18":
            headers["MCP-Protocol-Version"] = version
    elif isinstance(message, dict) and "method" in message and message["method"] != "initialize":
        headers["MCP-Protocol-Version"] = revisions.ALL[-1] if _is_bare(message) else "2025-11-25"
    return headers


def _is_bare(message: dict[str, Any]) -> bool:
    """Whether this is a notification. Outside a session it can only be modern."""
    return "id" not in message


def encoded(value: str) -> str:
    """A header value; base64 between markers if it is not plain printable ASCII."""
    is_plain = value.isascii() and value.isprintable() and value == value.strip()
    if is_plain and not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    return "=?base64?" + base64.b64encode(value.encode("utf-8", "surrogatepass")).decode() + "?="


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


def _is_request(message: Any) -> bool:
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        return False
    id = message.get("id")
    is_named = isinstance(message.get("method"), str)
    return is_named and isinstance(id, str | int) and not isinstance(id, bool)


def _addressed(body: bytes, id: Any) -> bytes:
    """Add the id of the request to an error response that carries none."""
    answer = _read(body)
    if not isinstance(answer, dict) or "error" not in answer or answer.get("id") is not None:
        return body
    return json.dumps({**answer, "id": id}).encode()


def _method(message: Any) -> Any:
    return message.get("method") if isinstance(message, dict) else None


def _read(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None

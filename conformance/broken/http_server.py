"""The reference server over Streamable HTTP.

This module checks methods, headers and credentials and chooses status codes. `http_connection.py`
parses requests, `http_sessions.py` holds sessions and streams, and `reference.py` handles the
messages. Each modern POST gets its own connection; legacy POSTs use the one of their session.
"""

from __future__ import annotations

import json
import re
import secrets
import threading
import time
from http.server import ThreadingHTTPServer
from typing import Any

from conformance import revisions
from conformance.broken import methods
from conformance.broken.defects.registry import Defect
from conformance.broken.header_checks import check_mirrored_headers
from conformance.broken.http_connection import HttpConnection, HttpError
from conformance.broken.http_sessions import SPEAKING, Session, Stream
from conformance.broken.reference import Connection, Server
from conformance.client.streamable_http import HttpEndpoint
from conformance.revisions import CLIENT_CAPABILITIES, B, D

VERSION = revisions.PROTOCOL_VERSION
MODERN = revisions.E
METADATA = "/.well-known/oauth-protected-resource"
LOCAL = re.compile(r"http://(localhost|127\.0\.0\.1)(:\d+)?")
TOKENS = ("reference-one", "reference-two")
FOREIGN = "reference-for-another-server"
PATH = "/mcp"
EARLIER = {**methods.LEGACY, **methods.MODERN}
KEEP_ALIVE = 0.3
RETRY_MS = 200


class Handler(HttpConnection):
    """One HTTP connection: answers POST, GET and DELETE on the MCP endpoint."""

    server: HttpServer

    def challenge(self, error: HttpError) -> dict[str, str] | None:
        if error.status != 401 or self._is("http_no_challenge"):
            return None
        host = self.headers.get("host", "")
        return {"WWW-Authenticate": f'Bearer resource_metadata="http://{host}{METADATA}"'}

    def work(self, body: bytes) -> None:
        if self.path == METADATA and self.command == "GET":
            host = "elsewhere.example" if self._is("http_other_resource") else self.headers["host"]
            found: dict[str, Any] = {
                "resource": f"http://{host}{PATH}",
                "authorization_servers": ["https://auth.example.com"],
            }
            if self._is("http_no_auth_servers"):
                del found["authorization_servers"]
            status = 404 if self._is("http_no_metadata") else 200
            self.send(status, json.dumps(found).encode(), {"Content-Type": "application/json"})
            return
        self._guard()
        if self.path != PATH and not self._is("http_any_path"):
            raise HttpError(404)
        verbs = {"POST": self._post, "GET": self._get, "DELETE": self._delete}
        verb = verbs.get(self.command)
        if verb is None:
            status = 200 if self._is("http_put") else 405
            self.send(status, b"", {"Allow": "GET, POST, DELETE"})
        else:
            verb(body)

    def _guard(self) -> None:
        origin = self.headers.get("origin")
        trusting = self._is("http_origin") or (self._is("http_null") and origin == "null")
        trusting = trusting or (self._is("http_get_origin") and self.command == "GET")
        trusting = trusting or (self._is("http_delete_origin") and self.command == "DELETE")
        if origin is not None and self._is("http_origin_prefix"):
            trusting = trusting or origin.startswith(("http://localhost", "http://127.0.0.1"))
        if origin is not None and self._is("http_origin_https"):
            trusting = trusting or origin.startswith("https://")
        if origin is not None and not trusting and not LOCAL.fullmatch(origin):
            raise HttpError(403)
        if origin is not None and self._is("http_no_origin"):
            raise HttpError(403)
        host = self.headers.get("host", "").partition(":")[0]
        known = host in ("localhost", "127.0.0.1")
        known = known or (self._is("http_host_prefix") and host.startswith("localhost"))
        if not known and not self._is("http_host"):
            raise HttpError(403)
        self.who = self.headers.get("authorization", "").removeprefix("Bearer ")
        kind = "http_any_audience" if self.who == FOREIGN else "http_unsigned"
        forged = self.who == FOREIGN or self.who.count(".") == 2
        accepted = (forged and self._is(kind)) or self._is("http_no_auth")
        if self.who not in TOKENS and not accepted:
            raise HttpError(401)

    # -- POST -------------------------------------------------------------------------------------

    def _post(self, body: bytes) -> None:
        kind = self.headers.get("content-type", "").partition(";")[0].strip()
        if kind != "application/json" and not self._is("http_type"):
            raise HttpError(415)
        accept = self.headers.get("accept", "*/*")
        if "json" not in accept and "*/*" not in accept and not self._is("http_accept"):
            raise HttpError(406)
        try:
            message = json.loads(body.decode("utf-8"))
        except (ValueError, RecursionError):
            raise HttpError(200 if self._is("http_malformed") else 400, -32700) from None
        params = message.get("params") if isinstance(message, dict) else None
        meta = params.get("_meta") if isinstance(params, dict) else None
        method = message.get("method") if isinstance(message, dict) else None
        opens = method == "initialize" and isinstance(params, dict) and "protocolVersion" in params
        if isinstance(meta, dict) and VERSION in meta and "id" in message and not opens:
            self._modern(body, message, meta)
        elif self.headers.get("mcp-protocol-version", "").strip() == MODERN:
            self._modern_without(body, message)
        else:
            self._legacy(body, message)

    def _modern_without(self, body: bytes, message: Any) -> None:
        """A message whose header says modern, but whose body has no modern `_meta`."""
        if isinstance(message, dict) and "method" in message and "id" not in message:
            if isinstance(message["method"], str) or self._is("http_any_note"):
                self._accepted()
                return
            raise HttpError(400)
        if not isinstance(message, dict) or "method" not in message:
            raise HttpError(400)
        id = message["id"] if isinstance(message["id"], str | int) else None
        raise HttpError(200 if self._is("http_meta") else 400, -32602, id)

    def _modern(self, body: bytes, message: dict[str, Any], meta: dict[str, Any]) -> None:
        self.server.met_modern = True
        id = message["id"] if isinstance(message["id"], str | int) else None
        check_mirrored_headers(self.headers, self.server.core.quirk, message, meta, id)
        if not isinstance(meta.get(CLIENT_CAPABILITIES), dict):
            raise HttpError(400, -32602, id)
        stream = Stream()
        connection = Connection(self.server.core, lambda data: stream.put(json.loads(data)))
        try:
            if self._is("http_asks_modern"):
                stream.put({"jsonrpc": "2.0", "id": "srv", "method": "ping"})
            connection.handle_line(body)
            if self._is("http_foreign_notes") and connection.in_flight:
                foreign = {"progressToken": "somebody else's", "progress": 1}
                connection.notify("notifications/progress", foreign)
            self._answer(stream, connection, message, modern=True)
        finally:
            connection.finish(10 if self._is("http_deaf_hangup") else 0)

    def _legacy(self, body: bytes, message: Any) -> None:
        version = self.headers.get("mcp-protocol-version")
        method = message.get("method") if isinstance(message, dict) else None
        known = version is None or version in revisions.ALL or self._is("http_odd_version")
        known = known and not (version is None and self._is("http_need_version"))
        if not known and method != "initialize":
            raise HttpError(400, -32022)
        if self._is("http_one_era") and self.server.met_modern:
            raise HttpError(400)
        opens = method == "initialize" and self.headers.get("mcp-session-id") is None
        session = self._open() if opens else self._session(message)
        stream = session.new_stream()
        speaking = SPEAKING.set(stream)
        try:
            if not _wants_answer(message, session.connection.revision):
                session.connection.handle_line(body)
                self._accepted()
                return
            session.connection.handle_line(body)
            self._answer(stream, session.connection, message, session if opens else None)
        finally:
            SPEAKING.reset(speaking)
            session.seen = time.monotonic()

    def _open(self) -> Session:
        handle = "same" if self._is("http_same_handle") else secrets.token_hex(16)
        if self._is("http_invisible_handle"):
            handle = f"{handle[:8]} {handle[8:]}"
        return Session(self.server.core, handle, self.who)

    def _session(self, message: Any = None) -> Session:
        handle = self.headers.get("mcp-session-id")
        id = message.get("id") if isinstance(message, dict) else None
        if handle is None:
            known = isinstance(message, dict) and str(message.get("method")) in EARLIER
            status = 404 if self._is("http_missing_404") else 400
            raise HttpError(status, -32602 if known else -32600, id)
        sessions = self.server.sessions
        session = sessions.get(handle)
        if session is not None and session.is_idle and not self._is("http_never_expires"):
            sessions.pop(handle).end()
            session = None
        lenient = self._is("http_any_session")
        lenient = lenient or (self._is("http_get_any") and self.command == "GET")
        if session is None and lenient:
            session = sessions.setdefault(handle, Session(self.server.core, handle, self.who))
            session.connection.revision = D
        if session is None or (session.owner != self.who and not self._is("http_any_owner")):
            raise HttpError(404, id=id)
        session.seen = time.monotonic()
        return session

    def _accepted(self) -> None:
        if self._is("http_notes_200"):
            self.send(200, b"{}")
        else:
            self.send(202, b"")

    # -- response ---------------------------------------------------------------------------------

    def _answer(
        self,
        stream: Stream,
        connection: Connection,
        message: Any,
        opening: Session | None = None,
        *,
        modern: bool = False,
    ) -> None:
        """Answer with JSON if the response is the first message, otherwise with a stream."""
        gone = False
        while not (gone := self.hung_up()) and not stream.after(0, 0.05) and not stream.detached:
            if not connection.in_flight and not connection.listens and not stream.messages:
                stream.finish()
                break
        first = stream.messages[0] if stream.messages else None
        if gone and not modern and self._is("http_hangup_cancels"):
            connection.cancel(message.get("id"))
        if first is None or not _is_answer(first):
            primes = not modern and (connection.revision == D or self._is("http_primes_all"))
            self._stream(stream, 0, connection, primes=primes, calls=True)
            if not modern and self.gone and self._is("http_hangup_cancels"):
                connection.cancel(message.get("id"))
            return
        stream.finish()
        status, headers = _status(first, modern), {}
        if isinstance(first, dict) and isinstance(first.get("error"), dict):
            code = first["error"].get("code")
            for quirk, spoiled in (
                ("http_not_404", -32601),
                ("http_unsupported_200", -32022),
                ("http_capability_200", -32021),
            ):
                if self._is(quirk) and code == spoiled:
                    status = 200
            if first.get("id") is None:
                first = {name: value for name, value in first.items() if name != "id"}
            if opening is not None:
                status = 400
        if opening is not None:
            if status == 200:
                self.server.sessions[opening.handle] = opening
            if status == 200 or self._is("http_early_session"):
                headers["Mcp-Session-Id"] = opening.handle
        if modern and self._is("http_minting"):
            headers["Mcp-Session-Id"] = "x"
        if self._is("http_crossed") and isinstance(first, dict):
            first = {**first, "id": 1}
        self.send(status, json.dumps(first).encode(), headers)

    # -- GET, DELETE ------------------------------------------------------------------------------

    def _get(self, _body: bytes) -> None:
        if self.headers.get("mcp-protocol-version") == MODERN:
            raise HttpError(200 if self._is("http_get") else 405)
        session = self._session()
        if "text/event-stream" not in self.headers.get("accept", "") and not self._is(
            "http_get_accept"
        ):
            raise HttpError(406)
        if self._is("http_get_json"):
            self.send(200, b"{}")
            return
        last = self.headers.get("last-event-id")
        if last is None:
            if session.standalone.readers:
                raise HttpError(409)
            start = len(session.standalone.messages)
            primes = session.connection.revision == D or self._is("http_primes_all")
            self._stream(session.standalone, start, session.connection, primes=primes)
            return
        label, _, number = last.rpartition(".")
        known = dict(session.streams)
        if self._is("http_foreign_replay"):
            for other in self.server.sessions.values():
                known.update(other.streams)
        stream = known.get(label)
        if stream is None or not number.isdigit():
            if not self._is("http_guesses_replay"):
                raise HttpError(400)
            stream, number = max(known.values(), key=lambda s: len(s.messages)), "0"
        if self._is("http_replays_all"):
            for other_stream in session.streams.values():
                if other_stream is not stream and other_stream is not session.standalone:
                    stream.messages = [*stream.messages, *other_stream.messages]
        self._stream(stream, int(number), session.connection, primes=False)

    def _delete(self, _body: bytes) -> None:
        if self.headers.get("mcp-protocol-version") == MODERN:
            raise HttpError(200 if self._is("http_delete") else 405)
        session = self._session()
        if not self._is("http_undying"):
            self.server.sessions.pop(session.handle, None)
            session.end()
        self.send(204, b"")

    # -- streams ----------------------------------------------------------------------------------

    def _stream(
        self,
        stream: Stream,
        number: int,
        connection: Connection,
        *,
        primes: bool,
        calls: bool = False,
    ) -> None:
        """Write a stream, starting after its first `number` messages, until it ends."""
        self.begin_stream()
        stream.readers += 1
        try:
            self._write_events(stream, number, connection, primes=primes, calls=calls)
        except OSError:
            self.gone = True
        finally:
            stream.readers -= 1

    def _write_events(
        self, stream: Stream, number: int, connection: Connection, *, primes: bool, calls: bool
    ) -> None:
        write = self.wfile.write
        if primes and not self._is("http_no_priming"):
            write(b"id: %s.%d\ndata:\n\n" % (stream.label.encode(), number))
        quiet = time.monotonic()
        endless = self._is("http_endless")
        while True:
            fresh = stream.after(number, 0.05)
            for message in fresh:
                number += 1
                self._write_event(stream, number, message)
                quiet = time.monotonic()
                if calls and _is_answer(message):
                    stream.finish()
            if stream.detached and calls:
                if not self._is("http_no_retry"):
                    write(b"retry: %d\n\n" % RETRY_MS)
                stream.detached = False
                return
            over = stream.done and number >= len(stream.messages)
            if over and (not endless or stream.label == ""):
                return
            if calls and not (fresh or stream.done or connection.in_flight or connection.listens):
                return  # the call was cancelled, so no message will follow
            if self.hung_up():
                self.gone = True
                return
            if time.monotonic() - quiet > KEEP_ALIVE and not self._is("http_quiet"):
                write(b":\n\n")
                quiet = time.monotonic()

    def _write_event(self, stream: Stream, number: int, message: Any) -> None:
        label = f"id: {stream.label}.{number}\n".encode() if stream.label else b""
        if self._is("http_same_ids"):
            label = f"id: {number}\n".encode()
        data = json.dumps(message).encode()
        if self._is("http_split_data"):
            data = json.dumps(message, indent=1).encode()  # lines without "data:"
        if self._is("http_modern_endless") and _is_answer(message):
            data += b"\n\n: and more may come"
        self.wfile.write(label + b"data: " + data + b"\n\n")
        if self._is("http_modern_endless") and _is_answer(message):
            time.sleep(3)


def _is_answer(message: Any) -> bool:
    return isinstance(message, list) or (isinstance(message, dict) and "method" not in message)


def _wants_answer(message: Any, revision: str | None) -> bool:
    """Whether a body needs a response: it holds a request or an invalid message."""
    if isinstance(message, list):
        if revision != B or not message:
            return True
        return any(_wants_answer(element, None) for element in message)
    if not isinstance(message, dict):
        return True
    is_note = isinstance(message.get("method"), str) and "id" not in message
    is_response = "method" not in message and ("result" in message) != ("error" in message)
    return not (is_note or is_response)


def _status(answer: Any, modern: bool) -> int:
    error = answer.get("error") if isinstance(answer, dict) else None
    if not isinstance(error, dict):
        return 200
    code = error.get("code")
    if modern and code == -32601:
        return 404
    if modern and code in (-32020, -32021, -32022):
        return 400
    return 400 if answer.get("id") is None or code == -32700 else 200


class HttpServer(ThreadingHTTPServer):
    """The HTTP server, on a free port by default."""

    daemon_threads = True
    request_queue_size = 1024  # one case opens 400 connections at once, and one thread accepts them

    def __init__(self, defect: Defect, address: tuple[str, int] = ("127.0.0.1", 0)) -> None:
        super().__init__(address, Handler)
        self.core = Server(defect)
        self.sessions: dict[str, Session] = {}
        self.met_modern = False
        self.deadlines: dict[HttpConnection, float] = {}

    def service_actions(self) -> None:
        now = time.monotonic()
        for handler, deadline in list(self.deadlines.items()):
            if now > deadline:
                handler.too_slow()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors caused by disconnecting clients."""


class HttpReferenceServer(HttpEndpoint):
    """A reference server over HTTP in this process; `close` stops it."""

    def __init__(self, defect: Defect) -> None:
        self._servers = [HttpServer(defect)]
        port = self._servers[0].server_address[1]
        if defect.quirks.get("http_everywhere"):
            self._servers.append(HttpServer(defect, ("127.0.0.2", port)))
        super().__init__(
            f"http://127.0.0.1:{port}{PATH}",
            token=TOKENS[0],
            other_token=TOKENS[1],
            foreign_token=FOREIGN,
        )
        for server in self._servers:
            threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()

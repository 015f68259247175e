"""The reference server over HTTP: small, correct, and wrong in one way when asked to be.

Only what the H and S cases look at is here: statuses, headers and sessions around a server that
can open, ping, discover and list no tools.
"""

from __future__ import annotations

import base64
import json
import re
import secrets
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from conformance import revisions
from conformance.broken.flaw import Flaw
from conformance.http import HttpEndpoint

VERSION = revisions.PROTOCOL_VERSION
MODERN = revisions.E
LOCAL = re.compile(r"http://(localhost|127\.0\.0\.1)(:\d+)?")


class Refused(Exception):
    """A status, and the error that goes with it."""

    def __init__(self, status: int, code: int = -32600, id: Any = None) -> None:
        super().__init__(status)
        self.status = status
        self.code = code
        self.id = id


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server: WebServer

    def log_message(self, format: str, *args: Any) -> None:
        """A reference server is quiet."""

    def _is(self, quirk: str) -> bool:
        return bool(self.server.flaw.quirks.get(quirk))

    def do_POST(self) -> None:
        self._within(self._post)

    def do_GET(self) -> None:
        self._within(self._get)

    def do_DELETE(self) -> None:
        self._within(self._delete)

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self._send(200 if self._is("http_put") else 405, b"", {"Allow": "GET, POST, DELETE"})

    def _within(self, work: Any) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        try:
            self._guard()
            work(body)
        except Refused as refused:
            answer: dict[str, Any] = {"jsonrpc": "2.0"}
            if refused.id is not None:
                answer["id"] = refused.id
            answer["error"] = {"code": refused.code, "message": "refused"}
            self._send(refused.status, json.dumps(answer).encode())

    def _guard(self) -> None:
        origin = self.headers.get("origin")
        trusting = self._is("http_origin") or (self._is("http_null") and origin == "null")
        trusting = trusting or (self._is("http_get_origin") and self.command == "GET")
        trusting = trusting or (self._is("http_delete_origin") and self.command == "DELETE")
        if origin is not None and not trusting and not LOCAL.fullmatch(origin):
            raise Refused(403)
        if origin is not None and self._is("http_no_origin"):
            raise Refused(403)
        host = self.headers.get("host", "").partition(":")[0]
        if host not in ("localhost", "127.0.0.1") and not self._is("http_host"):
            raise Refused(403)

    # -- POST ---------------------------------------------------------------------------------

    def _post(self, body: bytes) -> None:
        kind = self.headers.get("content-type", "").partition(";")[0].strip()
        if kind != "application/json" and not self._is("http_type"):
            raise Refused(415)
        accept = self.headers.get("accept", "*/*")
        if "json" not in accept and "*/*" not in accept and not self._is("http_accept"):
            raise Refused(406)
        try:
            message = json.loads(body)
        except ValueError:
            raise Refused(200 if self._is("http_malformed") else 400, -32700) from None
        params = message.get("params") or {}
        meta = params.get("_meta") or {}
        legacy_open = message.get("method") == "initialize" and "protocolVersion" in params
        if VERSION in meta and not legacy_open:
            self._modern(message, params, meta)
        elif self.headers.get("mcp-protocol-version") == MODERN and "id" in message:
            raise Refused(200 if self._is("http_meta") else 400, -32602, message["id"])
        else:
            self._legacy(message, params)

    def _modern(self, message: dict[str, Any], params: Any, meta: dict[str, Any]) -> None:
        id = message["id"]
        header = self.headers.get
        if not self._is("http_no_version") and header("mcp-protocol-version") is None:
            raise Refused(400, -32020, id)
        said = header("mcp-protocol-version")
        if said is not None and said.strip() != meta[VERSION] and not self._is("http_any_version"):
            raise Refused(400, -32020, id)
        method = header("mcp-method")
        if method is None and not self._is("http_no_method"):
            raise Refused(400, -32020, id)
        wanted = message["method"]
        if self._is("http_method_case") and method is not None:
            method, wanted = method.lower(), wanted.lower()
        if method is not None and method.strip() != wanted and not self._is("http_any_method"):
            raise Refused(400, -32020, id)
        if self._is("http_strict_case") and "MCP-METHOD" in list(self.headers):
            raise Refused(400, -32020, id)
        if message["method"] == "tools/call":
            self._name(id, params.get("name"))
        more = {"Mcp-Session-Id": "x"} if self._is("http_minting") else {}
        if message["method"] == "server/discover":
            result = {
                "resultType": "complete",
                "supportedVersions": list(reversed(revisions.ALL)),
                "capabilities": {},
                "ttlMs": 0,
                "cacheScope": "private",
            }
            self._result(id, result, more)
        elif message["method"] == "tools/call":
            raise Refused(200, -32602, id)
        else:
            raise Refused(200 if self._is("http_not_404") else 404, -32601, id)

    def _name(self, id: Any, name: str) -> None:
        said = self.headers.get("mcp-name")
        if said is None:
            if self._is("http_no_name"):
                return
            raise Refused(400, -32020, id)
        if said.startswith("=?base64?") and not self._is("http_plain_name"):
            try:
                said = base64.b64decode(said[9:-2], validate=True).decode()
            except ValueError:
                if self._is("http_bad_base64"):
                    return
                raise Refused(400, -32020, id) from None
        if said != name and not self._is("http_any_name"):
            raise Refused(400, -32020, id)

    def _legacy(self, message: dict[str, Any], params: dict[str, Any]) -> None:
        version = self.headers.get("mcp-protocol-version")
        known = version is None or version in revisions.ALL or self._is("http_odd_version")
        known = known and not (version is None and self._is("http_need_version"))
        if not known and message.get("method") != "initialize":
            raise Refused(400, -32022)
        if message.get("method") == "initialize":
            self._open(message, params)
            return
        if version == MODERN and "id" not in message:
            self._accepted()
            return
        self._session()
        if "id" not in message:
            self._accepted()
        elif message["method"] == "ping":
            self._result(1 if self._is("http_crossed") else message["id"], {})
        else:
            raise Refused(200, -32601, message["id"])

    def _open(self, message: dict[str, Any], params: dict[str, Any]) -> None:
        version = params.get("protocolVersion")
        handle = secrets.token_hex(16)
        if self._is("http_same_handle"):
            handle = "same"
        if not isinstance(version, str):
            if self._is("http_early_session"):
                body = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "no"}}
                self._send(400, json.dumps(body).encode(), {"Mcp-Session-Id": handle})
                return
            raise Refused(400, -32602, message["id"])
        agreed = version if version in revisions.LEGACY else revisions.D
        self.server.sessions.add(handle)
        result = {
            "protocolVersion": agreed,
            "capabilities": {},
            "serverInfo": {"name": "reference", "version": "1"},
        }
        id = 1 if self._is("http_crossed") else message["id"]
        self._result(id, result, {"Mcp-Session-Id": handle})

    def _session(self) -> None:
        handle = self.headers.get("mcp-session-id")
        if handle is None:
            raise Refused(404 if self._is("http_missing_404") else 400)
        if handle not in self.server.sessions and not self._is("http_any_session"):
            raise Refused(404)

    def _accepted(self) -> None:
        if self._is("http_notes_200"):
            self._send(200, b"{}")
        else:
            self._send(202, b"")

    # -- GET, DELETE --------------------------------------------------------------------------

    def _get(self, _body: bytes) -> None:
        if self.headers.get("mcp-protocol-version") != MODERN:
            self._session()
        if self._is("http_get"):
            self._send(200, b"")
            return
        raise Refused(405)

    def _delete(self, _body: bytes) -> None:
        if self.headers.get("mcp-protocol-version") == MODERN:
            raise Refused(200 if self._is("http_delete") else 405)
        self._session()
        if not self._is("http_undying"):
            self.server.sessions.discard(self.headers.get("mcp-session-id", ""))
        self._send(204, b"")

    # -- out ----------------------------------------------------------------------------------

    def _result(self, id: Any, result: Any, headers: dict[str, str] | None = None) -> None:
        if self._is("http_crossed"):
            id = 1
        body = json.dumps({"jsonrpc": "2.0", "id": id, "result": result}).encode()
        self._send(200, body, headers)

    def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        kind = "text/html" if self._is("http_html") else "application/json"
        self.send_header("Content-Type", kind)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


class WebServer(ThreadingHTTPServer):
    """The server, on a free port."""

    daemon_threads = True

    def __init__(self, flaw: Flaw) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.flaw = flaw
        self.sessions: set[str] = set()


class HostedWeb(HttpEndpoint):
    """A reference server over HTTP in this process, until the endpoint is closed."""

    def __init__(self, flaw: Flaw) -> None:
        self._server = WebServer(flaw)
        super().__init__(f"http://127.0.0.1:{self._server.server_address[1]}/mcp")
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

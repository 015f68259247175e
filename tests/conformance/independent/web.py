"""The HTTP transport of the independent server."""

from __future__ import annotations

import base64
import re
import secrets
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.conformance.independent.server import (
    KEY,
    LOCAL,
    NEW,
    OLD,
    OPTIONS,
    Client,
    decode,
    encode,
    failure,
)

SESSIONS: dict[str, Client] = {}
ENDED: set[str] = set()
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30

    def log_message(self, *_: Any) -> None:
        pass

    def reply(self, status: int, body: Any = None, **headers: str) -> None:
        data = b"" if body is None else encode(body)
        self.send_response(status)
        if data:
            self.send_header("Content-Type", "application/json")
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def is_foreign(self) -> bool:
        origin, host = self.headers.get("Origin"), self.headers.get("Host", "")
        foreign = origin is not None and not LOCAL.fullmatch(origin)
        return foreign or host.partition(":")[0] not in ("127.0.0.1", "localhost")

    def do_GET(self) -> None:
        self.reply(403 if self.is_foreign() else 405, Allow="POST")

    def do_PUT(self) -> None:
        self.do_GET()

    def do_DELETE(self) -> None:
        session = self.headers.get("Mcp-Session-Id")
        if self.is_foreign():
            self.reply(403)
        elif OPTIONS.stateless or session is None:
            self.reply(405, Allow="POST")
        elif session not in SESSIONS:
            self.reply(404)
        else:
            del SESSIONS[session]
            self.reply(204)

    def body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.close_connection = True
        whole = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            whole += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return whole

    def do_POST(self) -> None:
        lengths = self.headers.get_all("Content-Length", [])
        too_long = int((lengths or ["0"])[0]) > 64 * 1024 * 1024
        if len(set(lengths)) > 1 or too_long:
            self.close_connection = True
            self.reply(413 if too_long else 400)
            return
        raw = self.body()
        if (status := self.refusal()) is not None:
            self.reply(status)
            return
        try:
            message = decode(raw)
        except ValueError:
            self.reply(400, failure(None, -32700, "Parse error"))
        else:
            self.route(message)

    def refusal(self) -> int | None:
        kind = self.headers.get("Content-Type", "").partition(";")[0].strip()
        accept = self.headers.get("Accept", "*/*")
        if self.is_foreign():
            return 403
        if self.path != "/mcp":
            return 404
        if kind != "application/json":
            return 415
        return None if re.search(r"\*/\*|application/(json|\*)", accept) else 406

    def route(self, message: Any) -> None:
        params = message.get("params") if isinstance(message, dict) else None
        meta = params.get("_meta") if isinstance(params, dict) else None
        version = self.headers.get("MCP-Protocol-Version")
        opening = isinstance(message, dict) and message.get("method") == "initialize"
        named = isinstance(meta, dict) and any(str(name).startswith(KEY) for name in meta)
        if not opening and (named or version == NEW):
            self.modern(message, meta if isinstance(meta, dict) else {}, version)
        else:
            self.legacy(message, version, opening=opening)

    def modern(self, message: Any, meta: dict[str, Any], version: str | None) -> None:
        id = message.get("id") if isinstance(message, dict) else None
        if not isinstance(message, dict) or "id" not in message:
            valid = isinstance(message, dict) and isinstance(message.get("method"), str)
            self.reply(202 if valid else 400)
            return
        if (wrong := self.mismatch(message, meta, version)) is not None:
            self.reply(400, failure(id, -32020, wrong))
            return
        answer = Client().answer(message)
        code = answer.get("error", {}).get("code") if isinstance(answer, dict) else None
        in_header = code in (-32022, -32021, -32600) or (code == -32602 and "_meta" in str(answer))
        self.reply(404 if code == -32601 else 400 if in_header else 200, answer)

    def mismatch(self, message: Any, meta: dict[str, Any], version: str | None) -> str | None:
        said = meta.get(KEY + "protocolVersion")
        if version is None:
            return "MCP-Protocol-Version is missing"
        if isinstance(said, str) and said != version.strip():
            return "MCP-Protocol-Version differs from the body"
        methods = self.headers.get_all("Mcp-Method", [])
        if len(methods) != 1 or self.decoded(methods[0]) != message.get("method"):
            return "Mcp-Method is missing, repeated or differs from the body"
        member = NAMED.get(str(message.get("method")))
        if member is not None:
            wanted = (message.get("params") or {}).get(member)
            name = self.headers.get("Mcp-Name")
            if name is None or self.decoded(name) != wanted:
                return "Mcp-Name is missing or differs from the body"
        return None

    @staticmethod
    def decoded(value: str) -> str | None:
        value = value.strip()
        if not (value.startswith("=?base64?") and value.endswith("?=")):
            return value
        try:
            return base64.b64decode(value[9:-2], validate=True).decode()
        except ValueError:
            return None

    def legacy(self, message: Any, version: str | None, *, opening: bool) -> None:
        if version is not None and version not in OLD and not opening:
            self.reply(400, failure(None, -32600, "unsupported MCP-Protocol-Version"))
            return
        headers: dict[str, str] = {}
        if OPTIONS.stateless:
            client = Client()
            client.version = None if opening else version or "2025-03-26"
        elif opening:
            client = Client()
        else:
            session = self.headers.get("Mcp-Session-Id")
            if session not in SESSIONS:
                status = 400 if session is None else 404
                self.reply(status, failure(None, -32600, "no session"))
                return
            client = SESSIONS[session]
        answer = client.answer(message)
        if opening and not OPTIONS.stateless and isinstance(answer, dict) and "result" in answer:
            handle = secrets.token_urlsafe(18)
            SESSIONS[handle] = client
            headers["Mcp_Session_Id"] = handle
        bad = isinstance(answer, dict) and answer.get("id") is None
        self.reply(202 if answer is None else 400 if bad else 200, answer, **headers)

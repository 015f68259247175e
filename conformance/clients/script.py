"""Scripted servers: each provokes some duties of a client. A script knows no transport.

legacy    speaks the revisions with a handshake. Before it answers `tools/list`, it sends a ping, a
          request and a notification that no client knows, and a request for roots to clients that
          declare them.
refuses   answers `initialize` with a version that does not exist.
forgets   as legacy; over HTTP it ends the session after the first `tools/list`.
modern    speaks 2026-07-28 only. The first call of each tool asks for input.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any, Literal

from conformance import revisions

ScriptName = Literal["legacy", "refuses", "forgets", "modern"]
SCRIPTS: tuple[ScriptName, ...] = ("legacy", "refuses", "forgets", "modern")
NO_SUCH_VERSION = "1999-01-01"
PING, UNKNOWN, ROOTS = "conform-ping", "conform-unknown", "conform-roots"
STATE = 'conform state: é "quoted" {not json'
QUESTION = "who"
INFO = {"name": "mcp-conform-scripted", "version": "1"}
NUMBERS = {
    "type": "object",
    "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
    "required": ["a", "b"],
}
ELICITATION = {
    "method": "elicitation/create",
    "params": {
        "mode": "form",
        "message": "Who is asking?",
        "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
    },
}
ADD, MIRRORED, INVALID = "add_numbers", "conform_mirrored", "conform_invalid_header"

Message = dict[str, Any]


@dataclass(frozen=True)
class Heard:
    """One message of the client, and the HTTP request that carried it."""

    raw: bytes
    message: Any
    """The decoded JSON; None if it is not JSON."""
    headers: dict[str, str] | None = None
    """Lower-case names; None on stdio."""
    verb: str = "POST"
    session: str | None = None
    """The session that was valid when the message arrived."""
    lost: bool = False
    """Whether the server answered that the session has ended."""


@dataclass
class Transcript:
    """Everything that a client sent to one script."""

    script: str
    transport: str
    heard: list[Heard] = field(default_factory=list)
    agreed: str | None = None
    """The version of the handshake."""

    def messages(self) -> list[Message]:
        return [h.message for h in self.heard if isinstance(h.message, dict)]

    def requests(self, method: str | None = None) -> list[Message]:
        return [
            m
            for m in self.messages()
            if "method" in m and "id" in m and method in (None, m["method"])
        ]

    def answers(self, id: str) -> list[Message]:
        return [m for m in self.messages() if "method" not in m and m.get("id") == id]


class Script:
    """One scripted server; `receive` returns the messages that answer a message."""

    def __init__(self, name: str, transport: str) -> None:
        self.name = name
        self.transcript = Transcript(name, transport)
        self.lock = threading.Lock()
        self._capabilities: Message = {}
        self._provoked = False
        self._asked: set[str] = set()

    @property
    def is_modern(self) -> bool:
        return self.name == "modern"

    def receive(self, message: Any) -> list[Message]:
        """The messages to send; the response to a request is the last one."""
        if not isinstance(message, dict) or "method" not in message or "id" not in message:
            return []
        id, method = message["id"], message["method"]
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        with self.lock:
            extra = self._provocations() if method == "tools/list" and not self.is_modern else []
            body = self._modern(method, params) if self.is_modern else self._legacy(method, params)
        return [*extra, {"jsonrpc": "2.0", "id": id, **body}]

    def _provocations(self) -> list[Message]:
        if self._provoked:
            return []
        self._provoked = True
        told: list[Message] = [
            {"jsonrpc": "2.0", "method": "notifications/conform-unknown"},
            {"jsonrpc": "2.0", "id": PING, "method": "ping"},
            {"jsonrpc": "2.0", "id": UNKNOWN, "method": "conform/unknown"},
        ]
        if "roots" in self._capabilities:
            told.append({"jsonrpc": "2.0", "id": ROOTS, "method": "roots/list"})
        return told

    def _legacy(self, method: str, params: Message) -> Message:
        if method == "initialize":
            wanted = params.get("protocolVersion")
            agreed = wanted if wanted in revisions.LEGACY else revisions.D
            agreed = NO_SUCH_VERSION if self.name == "refuses" else str(agreed)
            self.transcript.agreed = agreed
            offered = params.get("capabilities")
            self._capabilities = offered if isinstance(offered, dict) else {}
            result = {"protocolVersion": agreed, "capabilities": {"tools": {}}, "serverInfo": INFO}
            return {"result": result}
        if method == "ping":
            return {"result": {}}
        if method == "tools/list":
            tool = {"name": ADD, "description": "Adds two numbers.", "inputSchema": NUMBERS}
            return {"result": {"tools": [tool]}}
        if method == "tools/call":
            return self._called(params, {})
        return {"error": {"code": -32601, "message": "no such method"}}

    def _called(self, params: Message, more: Message) -> Message:
        given = params.get("arguments")
        numbers = [v for v in (given or {}).values() if isinstance(v, int | float)]
        text = f"The sum is {sum(numbers):g}."
        return {"result": {"content": [{"type": "text", "text": text}], **more}}

    # -- modern -----------------------------------------------------------------------------------

    def _modern(self, method: str, params: Message) -> Message:
        meta = params.get("_meta")
        meta = meta if isinstance(meta, dict) else {}
        if meta.get(revisions.PROTOCOL_VERSION) != revisions.E:
            data = {"supported": [revisions.E], "requested": meta.get(revisions.PROTOCOL_VERSION)}
            return {"error": {"code": -32022, "message": "Unsupported version", "data": data}}
        envelope = {"resultType": "complete", "_meta": {revisions.SERVER_INFO: INFO}}
        cached = {**envelope, "ttlMs": 0, "cacheScope": "private"}
        if method == "server/discover":
            offered = {"supportedVersions": [revisions.E], "capabilities": {"tools": {}}}
            return {"result": {**cached, **offered}}
        if method == "tools/list":
            return {"result": {**cached, "tools": _modern_tools()}}
        if method == "tools/call":
            return self._asking(params, meta, envelope)
        return {"error": {"code": -32601, "message": "no such method"}}

    def _asking(self, params: Message, meta: Message, envelope: Message) -> Message:
        """Ask once for each tool: with state for one, without state for the others."""
        name = str(params.get("name"))
        able = meta.get(revisions.CLIENT_CAPABILITIES)
        can_ask = isinstance(able, dict) and "elicitation" in able
        if not can_ask or name in self._asked or "inputResponses" in params:
            return self._called(params, envelope)
        self._asked.add(name)
        asked: Message = {"inputRequests": {QUESTION: ELICITATION}}
        if name == ADD:
            asked["requestState"] = STATE
        return {"result": {**envelope, "resultType": "input_required", **asked}}


def _modern_tools() -> list[Message]:
    region = {"type": "string", "x-mcp-header": "Region"}
    broken = {"type": "string", "x-mcp-header": "not a header name"}
    return [
        {"name": ADD, "description": "Adds two numbers.", "inputSchema": NUMBERS},
        {
            "name": MIRRORED,
            "description": "Takes a region.",
            "inputSchema": {"type": "object", "properties": {"region": region}},
        },
        {
            "name": INVALID,
            "description": "A client over HTTP must leave this tool out.",
            "inputSchema": {"type": "object", "properties": {"region": broken}},
        },
    ]

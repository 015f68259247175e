"""The methods of the independent server, and its stdio transport."""

from __future__ import annotations

import argparse
import json
import re
import sys
import threading
import time
from pathlib import Path
from typing import Any

OLD = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
NEW = "2026-07-28"
KEY = "io.modelcontextprotocol/"
INFO = {"name": "independent", "version": "1"}
LOCAL = re.compile(r"https?://(localhost|127\.0\.0\.1)(:\d+)?")

parser = argparse.ArgumentParser()
parser.add_argument("--http", action="store_true")
parser.add_argument("--stateless", action="store_true")
parser.add_argument("--lock", help="a file that only one instance may hold")
parser.add_argument("--start-seconds", type=float, default=0.0)
parser.add_argument("--rate", type=int, default=0, help="requests in ten seconds")
parser.add_argument("--banner", action="store_true")
parser.add_argument("--dangerous", help="a file that records each call of a dangerous tool")
parser.add_argument("--daemon", action="store_true", help="leave a helper in its own session")
OPTIONS = parser.parse_args()


class Refused(Exception):
    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message, **({"data": data} if data else {})}


def tool(name: str, schema: dict[str, Any], version: str, **more: Any) -> dict[str, Any]:
    row = {"name": name, "description": f"The tool {name}", "inputSchema": schema, **more}
    if version < "2025-03-26":
        row.pop("annotations", None)
    if version < "2025-06-18":
        row.pop("outputSchema", None)
    return row


def tools(version: str) -> list[dict[str, Any]]:
    text = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    number = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    empty = {"type": "object", "additionalProperties": False}
    read_only = {"readOnlyHint": True}
    if OPTIONS.dangerous:
        names = ("delete_everything", "echo_to_all_customers", "await_payment", "fail", "tally")
        schemas = (empty, text, {"type": "object", "properties": {"seconds": {"type": "number"}}})
        return [tool(n, schemas[i] if i < 3 else empty, version) for i, n in enumerate(names)]
    return [
        tool("echo", text, version, annotations=read_only),
        tool("count", empty, version, annotations=read_only, outputSchema=number),
    ]


def call(params: dict[str, Any], version: str) -> dict[str, Any]:
    name, arguments = params.get("name"), params.get("arguments", {})
    if not isinstance(name, str) or name not in [row["name"] for row in tools(version)]:
        raise Refused(-32602, f"Unknown tool: {name}")
    if OPTIONS.dangerous:
        with Path(OPTIONS.dangerous).open("a", encoding="utf-8") as log:
            log.write(f"{name}\n")
        return {"content": [{"type": "text", "text": "done"}]}
    if not isinstance(arguments, dict):
        raise Refused(-32602, "arguments is not an object")
    if name == "echo":
        if not isinstance(arguments.get("text"), str):
            return {"content": [{"type": "text", "text": "text is not a string"}], "isError": True}
        return {"content": [{"type": "text", "text": arguments["text"]}]}
    result: dict[str, Any] = {"content": [{"type": "text", "text": json.dumps({"n": 3})}]}
    return result if version < "2025-06-18" else {**result, "structuredContent": {"n": 3}}


def read(params: dict[str, Any], version: str) -> dict[str, Any]:
    uri = params.get("uri")
    if uri != "memo://one":
        raise Refused(-32602 if version == NEW else -32002, "Resource not found", {"uri": str(uri)})
    return {"contents": [{"uri": uri, "mimeType": "text/plain", "text": "a memo"}]}


def prompt(params: dict[str, Any]) -> dict[str, Any]:
    arguments = params.get("arguments", {})
    if params.get("name") != "greet" or not isinstance(arguments, dict):
        raise Refused(-32602, "no such prompt")
    if not isinstance(arguments.get("who"), str):
        raise Refused(-32602, "the argument who is missing")
    text = {"type": "text", "text": f"Greet {arguments['who']}."}
    return {"messages": [{"role": "user", "content": text}]}


def listed(params: dict[str, Any], member: str, items: list[Any]) -> dict[str, Any]:
    if "cursor" in params:
        raise Refused(-32602, "no such cursor")
    return {member: items}


LISTS = ("tools/list", "resources/list", "resources/templates/list", "prompts/list")
CACHED = (*LISTS, "resources/read", "server/discover")
CAPABILITIES: dict[str, Any] = {"tools": {}, "resources": {}, "prompts": {}}


def serve(method: str, params: dict[str, Any], version: str) -> dict[str, Any]:
    argument = {"name": "who", "required": True}
    if method == "tools/list":
        return listed(params, "tools", tools(version))
    if method == "resources/list":
        return listed(params, "resources", [{"uri": "memo://one", "name": "one"}])
    if method == "resources/templates/list":
        return listed(params, "resourceTemplates", [])
    if method == "prompts/list":
        return listed(params, "prompts", [{"name": "greet", "arguments": [argument]}])
    if method == "tools/call":
        return call(params, version)
    if method == "resources/read":
        return read(params, version)
    if method == "prompts/get":
        return prompt(params)
    if method == "ping" and version != NEW:
        return {}
    if method == "server/discover" and version == NEW:
        return {"supportedVersions": [NEW, *OLD], "capabilities": CAPABILITIES}
    raise Refused(-32601, f"Method not found: {method}")


class Client:
    """The state of one connection or session: the negotiated version."""

    def __init__(self) -> None:
        self.version: str | None = None

    def answer(self, message: Any) -> Any:
        """The response to a message, or None."""
        if isinstance(message, list):
            return self._batch(message)
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            return failure(None, -32600, "not a JSON-RPC message")
        method, id = message.get("method"), message.get("id")
        if "method" not in message and ("result" in message or "error" in message):
            return None
        if not isinstance(method, str):
            return failure(id if isinstance(id, str) else None, -32600, "no method")
        if "id" not in message:
            return None
        if isinstance(id, bool) or not isinstance(id, str | int):
            return failure(None, -32600, "the id is neither a string nor an integer")
        params = message.get("params", {})
        if not isinstance(params, dict):
            return failure(id, -32602, "params is not an object")
        try:
            return {"jsonrpc": "2.0", "id": id, "result": self._result(method, params)}
        except Refused as error:
            return {"jsonrpc": "2.0", "id": id, "error": error.error}

    def _batch(self, messages: list[Any]) -> Any:
        if self.version != "2025-03-26" or not messages:
            return failure(None, -32600, "not a message")
        answers = []
        for message in messages:
            is_opening = isinstance(message, dict) and message.get("method") == "initialize"
            answer = (
                failure(message.get("id"), -32600, "not in a batch")
                if is_opening
                else failure(None, -32600, "an array")
                if isinstance(message, list)
                else self.answer(message)
            )
            answers.append(answer)
        return [answer for answer in answers if answer is not None] or None

    def _result(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        limit()
        meta = params.get("_meta", {})
        if not isinstance(meta, dict):
            raise Refused(-32602, "_meta is not an object")
        modern = any(name.startswith(KEY) for name in meta) and method != "initialize"
        if modern or (self.version is None and method not in ("initialize", "ping")):
            return self._modern(method, params, meta)
        if method == "initialize":
            return self._initialize(params)
        return serve(method, params, self.version or OLD[-1])

    def _initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        asked = params.get("protocolVersion")
        if not isinstance(asked, str):
            raise Refused(-32602, "protocolVersion is not a string")
        if self.version is not None:
            raise Refused(-32600, "already initialized")
        self.version = asked if asked in OLD else OLD[-1]
        told = {"protocolVersion": self.version, "capabilities": CAPABILITIES}
        return {**told, "serverInfo": INFO}

    def _modern(self, method: str, params: dict[str, Any], meta: Any) -> dict[str, Any]:
        version, capabilities = (
            meta.get(KEY + "protocolVersion"),
            meta.get(KEY + "clientCapabilities"),
        )
        if version is None or not isinstance(capabilities, dict):
            raise Refused(-32602, "the required members of _meta are missing")
        if version != NEW:
            supported = {"supported": [NEW, *OLD], "requested": str(version)}
            raise Refused(-32022, "Unsupported protocol version", supported)
        result = {**serve(method, params, NEW), "resultType": "complete"}
        if method in CACHED:
            result.update(ttlMs=0, cacheScope="private")
        return {**result, "_meta": {KEY + "serverInfo": INFO}}


def failure(id: Any, code: int, message: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}


STAMPS: list[float] = []
GUARD = threading.Lock()


def limit() -> None:
    """Allow `--rate` requests in ten seconds."""
    if not OPTIONS.rate:
        return
    with GUARD:
        now = time.monotonic()
        STAMPS[:] = [stamp for stamp in STAMPS if stamp > now - 10]
        if len(STAMPS) >= OPTIONS.rate:
            raise Refused(-32029, "Rate limit exceeded", {"retryAfter": STAMPS[0] + 10 - now})
        STAMPS.append(now)


def decode(raw: bytes) -> Any:
    """Strict JSON in UTF-8; raises ValueError."""

    def no(word: str) -> Any:
        raise ValueError(word)

    def integer(digits: str) -> Any:
        return int(digits) if len(digits) < 4000 else float("inf")

    try:
        return json.loads(raw.decode("utf-8"), parse_constant=no, parse_int=integer)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def encode(message: Any) -> bytes:
    return json.dumps(message, ensure_ascii=True).encode()


def serve_stdio() -> None:
    client = Client()
    for line in sys.stdin.buffer:
        if not line.strip():
            continue
        try:
            message = decode(line)
        except ValueError:
            answer: Any = failure(None, -32700, "Parse error")
        else:
            answer = client.answer(message)
        if answer is not None:
            sys.stdout.buffer.write(encode(answer) + b"\n")
            sys.stdout.buffer.flush()

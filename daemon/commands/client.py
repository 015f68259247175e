"""A minimal MCP client over the unix socket: one connection, one tool call."""

import json
from pathlib import Path
from typing import Any, Final, cast

from daemon.bridge import attach
from daemon.exit_codes import UNREACHABLE, Exit
from daemon.version import VERSION

CALL_SECONDS: Final = 120.0
MAX_ANSWER_BYTES: Final = 64 * 1024 * 1024
#: A request of this revision needs no handshake.
_META: Final = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "recalld-command", "version": VERSION},
}


class DaemonRefusedError(Exception):
    """The tool or the daemon refused the call; the message is its reason."""


def call_tool(socket: Path, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The structured result of a tool. `Exit(UNREACHABLE)` if no daemon answers."""
    found = request(socket, "tools/call", {"name": name, "arguments": arguments})
    if found.get("isError"):
        raise DaemonRefusedError(
            _reason("\n".join(block.get("text", "") for block in found["content"]))
        )
    structured: Any = found.get("structuredContent")
    return cast("dict[str, Any]", structured) if isinstance(structured, dict) else {}


def request(socket: Path, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """The result of one MCP request."""
    link = attach.connect(socket, CALL_SECONDS)
    if link is None:
        raise Exit(UNREACHABLE, f"no daemon is listening at {socket}")
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": _META}}
    line = b""
    with link:
        try:
            link.sendall(json.dumps(message).encode() + b"\n")
            while not line.endswith(b"\n") and len(line) <= MAX_ANSWER_BYTES:
                chunk = link.recv(1024 * 1024)
                if not chunk:
                    break
                line += chunk
            answer: Any = json.loads(line)
        except (OSError, ValueError, RecursionError) as error:
            raise Exit(UNREACHABLE, f"the daemon at {socket} does not answer: {error}") from None
    if "error" in answer:
        raise DaemonRefusedError(str(answer["error"].get("message", "unknown error")))
    return cast("dict[str, Any]", answer["result"])


def _reason(text: str) -> str:
    """The message inside the error form of Context Harness, else the text."""
    try:
        found: Any = json.loads(text)
        return str(found["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return text

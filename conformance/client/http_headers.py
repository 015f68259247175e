"""The headers of a correct HTTP client, and heads of requests and responses for reports."""

from __future__ import annotations

import base64
import http.client
import json
from collections.abc import Mapping
from typing import Any

from conformance import revisions

ACCEPT = "application/json, text/event-stream"
NAMED = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}
"""Methods with an Mcp-Name header, and the parameter that it repeats."""


def headers_for(
    message: Any, session: str | None, version: str | None, revision: str | None = None
) -> dict[str, str]:
    """The headers of a correct client for this message.

    `version` is the negotiated version of a legacy client, None before its handshake. `revision` is
    the client's own: a modern client labels every message, even one whose body lacks its version.
    """
    headers = {"Content-Type": "application/json", "Accept": ACCEPT}
    params = message.get("params") if isinstance(message, dict) else None
    meta = params.get("_meta") if isinstance(params, dict) else None
    named = meta.get(revisions.PROTOCOL_VERSION) if isinstance(meta, dict) else None
    method = message.get("method") if isinstance(message, dict) else None
    opens = method == "initialize" and "protocolVersion" in (params or {})
    if opens and session is None:
        return headers
    is_modern = named is not None or (revision in revisions.MODERN and version is None)
    is_modern = is_modern and not opens
    if is_modern and isinstance(message, dict) and "method" in message:
        method = str(message.get("method"))
        label = revision if named is None else named
        headers["MCP-Protocol-Version"] = label if isinstance(label, str) else json.dumps(label)
        headers["Mcp-Method"] = encoded(method)
        member = NAMED.get(method)
        if member is not None and isinstance(params, dict) and isinstance(params.get(member), str):
            headers["Mcp-Name"] = encoded(params[member])
        return headers
    if session is not None:
        headers["Mcp-Session-Id"] = session
    if version is not None and version >= "2025-06-18":
        headers["MCP-Protocol-Version"] = version
    return headers


def head_of(method: str, path: str, headers: Mapping[str, str]) -> str:
    """The head of a request for a report, without secrets."""
    hidden = ("authorization", "cookie", "x-api-key")
    lines = [
        f"{name}: {'(hidden)' if name.lower() in hidden else value}"
        for name, value in headers.items()
    ]
    return "\n".join([f"{method} {path.partition('?')[0]}", *lines])


def status_of(response: http.client.HTTPResponse) -> str:
    """The status of a response and its headers that matter to MCP, for a report."""
    wanted = (
        "content-type",
        "mcp-session-id",
        "mcp-protocol-version",
        "www-authenticate",
        "retry-after",
        "allow",
    )
    lines = [f"{name}: {value}" for name, value in response.getheaders() if name.lower() in wanted]
    return "\n".join([f"{response.status} {response.reason}", *lines])


def encoded(value: str) -> str:
    """A header value; base64 between markers if it is not plain printable ASCII."""
    is_plain = value.isascii() and value.isprintable() and value == value.strip()
    if is_plain and not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    return "=?base64?" + base64.b64encode(value.encode("utf-8", "surrogatepass")).decode() + "?="

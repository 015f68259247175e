"""Error codes of JSON-RPC, MCP and Claude Recall, per era, with the source of each.

Other modules name a `Fault`. The code depends on the revision of the answer and is looked up here.
The codes of the Claude Recall document (-32000, -32001, -32002) are used in the legacy era. MCP
2026-07-28 discourages that range and excludes -32002, so in the modern era an unknown tool is
-32602 and a database error is -32603 with `data.kind`. -32001 is the same in both eras.
"""

from enum import Enum
from typing import Any, Final

from msgspec import UNSET, Struct, UnsetType

from protocol.revisions import Revision


class Fault(Enum):
    """An error condition: (name, legacy code, modern code, title, source of the code)."""

    PARSE_ERROR = ("parse_error", -32700, -32700, "Parse error", "JSON-RPC 2.0 section 5.1")
    INVALID_REQUEST = (
        "invalid_request",
        -32600,
        -32600,
        "Invalid request",
        "JSON-RPC 2.0 section 5.1",
    )
    METHOD_NOT_FOUND = (
        "method_not_found",
        -32601,
        -32601,
        "Method not found",
        "JSON-RPC 2.0 section 5.1",
    )
    INVALID_PARAMS = (
        "invalid_params",
        -32602,
        -32602,
        "Invalid params",
        "JSON-RPC 2.0 section 5.1",
    )
    INTERNAL_ERROR = (
        "internal_error",
        -32603,
        -32603,
        "Internal error",
        "JSON-RPC 2.0 section 5.1",
    )
    TOOL_NOT_FOUND = (
        "tool_not_found",
        -32000,
        -32602,
        "Tool not found",
        "Claude Recall; MCP tools",
    )
    RATE_LIMITED = ("rate_limited", -32001, -32001, "Rate limit exceeded", "Claude Recall")
    OVERLOADED = ("overloaded", -32001, -32001, "Too many requests in flight", "recalld")
    DATABASE_ERROR = ("database_error", -32002, -32603, "Database error", "Claude Recall")
    RESOURCE_NOT_FOUND = (
        "resource_not_found",
        -32002,
        -32602,
        "Resource not found",
        "MCP resources, both eras",
    )
    DAEMON_LOST = ("daemon_lost", -32603, -32603, "The daemon went away", "recalld")
    CANCELLED = ("cancelled", -32800, -32800, "Request cancelled", "recalld; as in LSP 3.17")
    HEADER_MISMATCH = (
        "header_mismatch",
        -32020,
        -32020,
        "Header mismatch",
        "MCP 2026-07-28 streamable HTTP",
    )
    MISSING_CAPABILITY = (
        "missing_capability",
        -32603,
        -32021,
        "Missing client capability",
        "MCP 2026-07-28 basic",
    )
    UNSUPPORTED_VERSION = (
        "unsupported_version",
        -32022,
        -32022,
        "Unsupported protocol version",
        "MCP 2026-07-28 versioning",
    )

    def __init__(self, kind: str, legacy: int, modern: int, title: str, source: str) -> None:
        self.kind = kind
        self.legacy_code = legacy
        self.modern_code = modern
        self.title = title
        self.source = source

    def code(self, revision: Revision | None) -> int:
        """Return the code in an answer shaped for `revision` (None: no revision agreed yet)."""
        if revision is not None and revision.modern:
            return self.modern_code
        return self.legacy_code


#: Faults that share their code with another fault; their errors carry `data.kind`.
_AMBIGUOUS: Final = frozenset(
    {
        Fault.OVERLOADED,
        Fault.DATABASE_ERROR,
        Fault.RESOURCE_NOT_FOUND,
        Fault.TOOL_NOT_FOUND,
        Fault.DAEMON_LOST,
    }
)


class ErrorObject(Struct, frozen=True, kw_only=True):
    """The `error` member of a JSON-RPC answer."""

    code: int
    message: str
    data: dict[str, Any] | UnsetType = UNSET


class ProtocolError(Exception):
    """The peer broke a protocol rule or named something unknown; holds the error to send."""

    def __init__(self, fault: Fault, details: str = "", **data: Any) -> None:
        super().__init__(details or fault.title)
        self.fault = fault
        self.details = details
        self.data = data


#: Longest `details` text, in characters; it may quote the peer's input.
MAX_DETAILS: Final = 400


def sentence(details: str) -> str:
    """Shorten a text and escape its control characters, so that it fits on one line."""
    if len(details) > MAX_DETAILS:
        details = details[:MAX_DETAILS] + "…"
    if details.isprintable():
        return details
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in details)


def error_object(
    fault: Fault, details: str = "", revision: Revision | None = None, **data: Any
) -> ErrorObject:
    """Build the error object of `fault`; `details` is in `message` and in `data.details`."""
    extra: dict[str, Any] = dict(data)
    details = sentence(details)
    if details:
        extra["details"] = details
    if fault in _AMBIGUOUS:
        extra["kind"] = fault.kind
    return ErrorObject(
        code=fault.code(revision),
        message=f"{fault.title}: {details}" if details else fault.title,
        data=extra or UNSET,
    )

"""How this dialect says no: `{"error": "…"}`, as text and as structure, marked as an error.

Two kinds of no. Arguments that break a rule are `Refused` ("limit: must be at least 1"): how that
is said depends on the revision as well, as for arguments that break the schema. What the document
itself calls an error, and things that are not there, are `tools.Denied`: always a result.
"""

from typing import Final

import msgspec
from msgspec import Raw

from daemon.tools.errors import ArgumentsRefused
from protocol.mcp import CallToolResult, TextContent
from store.errors import BankNotFound

#: What callers of this dialect call the engine's fields.
FIELDS: Final = {
    "bank": "memory_id",
    "user": "user_id",
    "role": "agent_role",
    "session": "session_id",
    "contains": "query",
}

_encode: Final = msgspec.json.Encoder().encode


class Refused(ArgumentsRefused):
    """An argument breaks a rule; nothing was changed. The text is "argument: rule"."""


def refusal(text: str) -> CallToolResult:
    body = _encode({"error": text})
    return CallToolResult(
        content=[TextContent(text=body.decode())], structured_content=Raw(body), is_error=True
    )


def failed(failure: Exception) -> CallToolResult:
    """The engine could not."""
    if isinstance(failure, BankNotFound):
        return refusal(f"Memory '{failure.bank}' not found.")
    return refusal(f"The memory could not be used: {failure}.")

"""Error results of this dialect: `{"error": "…"}` as text and as structure, marked as an error.

There are two kinds of refusal. `InvalidArgument` is for arguments that break a rule ("limit: must
be at least 1"); the revision decides whether it is a result or a JSON-RPC error, as for arguments
that break the schema. `daemon.tools.errors.Denied` is for the errors that the Awareness document
defines and for things that do not exist; it is always a result.
"""

from typing import Final

import msgspec
from msgspec import Raw

from daemon.tools.errors import ArgumentsRefused
from protocol.mcp import CallToolResult, TextContent
from store.errors import BankNotFound

#: Engine field to argument name.
FIELDS: Final = {
    "bank": "memory_id",
    "user": "user_id",
    "role": "agent_role",
    "session": "session_id",
    "contains": "query",
}

_encode: Final = msgspec.json.Encoder().encode


class InvalidArgument(ArgumentsRefused):
    """An argument breaks a rule; nothing was changed. The message is "argument: rule"."""


def refusal(text: str) -> CallToolResult:
    body = _encode({"error": text})
    return CallToolResult(
        content=[TextContent(text=body.decode())], structured_content=Raw(body), is_error=True
    )


def failed(failure: Exception) -> CallToolResult:
    """The result for a failure of the engine."""
    if isinstance(failure, BankNotFound):
        return refusal(f"Memory '{failure.bank}' not found.")
    return refusal(f"The memory could not be used: {failure}.")

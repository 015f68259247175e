"""How this dialect says no: `{"error": "…"}`, as text and as structure, marked as an error.

Two kinds of no. Arguments that break a rule are `Refused` ("limit: must be at least 1"): how that
is said depends on the revision as well, as for arguments that break the schema. What the document
itself calls an error, and things that are not there, are `Denied`: always a result.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw, Struct

from daemon.tools import ArgumentsRefused, Context
from protocol.mcp import CallToolResult, TextContent
from store.errors import BankNotFound

A = TypeVar("A", bound=Struct)
Tool = Callable[[A, Context], Awaitable[Any]]

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


class Denied(Exception):
    """The tool understood and says no; nothing was changed. The text is for the caller."""


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


def guarded(tool: Tool[A]) -> Tool[A]:
    """The tool, with what it denies said in the dialect's form."""

    async def run(arguments: A, context: Context) -> Any:
        try:
            return await tool(arguments, context)
        except Denied as denied:
            return refusal(str(denied))

    return run

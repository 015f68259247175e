"""How this dialect says no: `{"error": "…"}`, as text and as structure, marked as an error."""

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw, Struct

from daemon.tools import Context
from protocol.mcp import CallToolResult, TextContent
from store.errors import BankNameInvalid, BankNotFound, InvalidInput, StoreError

A = TypeVar("A", bound=Struct)
Tool = Callable[[A, Context], Awaitable[Any]]

_encode: Final = msgspec.json.Encoder().encode
#: The engine's names for what callers of this dialect know by other names.
_FIELDS: Final = {
    "bank": "memory_id",
    "user": "user_id",
    "role": "agent_role",
    "session": "session_id",
}


class Refused(Exception):
    """The tool understood and says no; nothing was changed. The text is for the caller."""


def refusal(text: str) -> CallToolResult:
    body = _encode({"error": text})
    return CallToolResult(
        content=[TextContent(text=body.decode())], structured_content=Raw(body), is_error=True
    )


def guarded(tool: Tool[A]) -> Tool[A]:
    """The tool, with what it and the engine refuse said in the dialect's form."""

    async def run(arguments: A, context: Context) -> Any:
        try:
            return await tool(arguments, context)
        except Refused as refused:
            return refusal(str(refused))
        except BankNotFound as error:
            return refusal(f"Memory '{error.bank}' not found.")
        except BankNameInvalid as error:
            return refusal(f"memory_id: {error.rule}")
        except InvalidInput as error:
            return refusal(f"{_named(error.field)}: {error.rule}")
        except StoreError as error:
            return refusal(f"The memory could not be used: {error}.")

    return run


def _named(field: str) -> str:
    head, dot, rest = field.partition(".")
    return _FIELDS.get(head, head) + dot + rest

"""Bound tool: a tool specification with its decoder, its dialect and its answer encoder.

A call is decoded, authorised for the bank it names, run, and encoded.
"""

from collections.abc import Awaitable
from typing import Any, Final, cast

import msgspec
import structlog
from msgspec import Raw, Struct

from daemon.tools.authority import authorise
from daemon.tools.context import Context
from daemon.tools.dialect import PLAIN, Dialect
from daemon.tools.errors import ArgumentsRefused
from daemon.tools.specification import ToolSpec
from protocol.headers import Mirrored, mirrored_in
from protocol.lifecycle import explain
from protocol.mcp import CallToolResult, InputRequired, TextContent
from store.errors import StorageError

Answer = CallToolResult | InputRequired
#: The types that a tool function may return.
Returned = Struct | str

#: Arguments that name a bank, in any dialect. The caller's access to it is checked.
BANK_ARGUMENTS: Final = ("bank_id", "memory_id", "bank")

log: Final = structlog.get_logger()

_encoder: Final = msgspec.json.Encoder()


class BoundTool:
    """A tool ready to be called."""

    __slots__ = ("_bank", "_decoder", "dialect", "mirrored", "spec")

    def __init__(self, spec: ToolSpec, dialect: Dialect = PLAIN) -> None:
        self.spec = spec
        self.dialect = dialect
        self._decoder = msgspec.json.Decoder(spec.arguments)
        fields = spec.arguments.__struct_fields__
        self._bank = next((name for name in BANK_ARGUMENTS if name in fields), None)
        #: Arguments that HTTP headers repeat.
        self.mirrored: tuple[Mirrored, ...] = mirrored_in(spec.input_schema or {})

    def argument_name(self, field: str) -> str:
        """The caller's name for a field of the engine."""
        return self.spec.fields.get(field) or self.dialect.fields.get(field, field)

    def call(self, arguments: Raw, context: Context) -> Answer | Awaitable[Answer]:
        """Decode, authorise and run. `ArgumentsRefused` and `Forbidden` precede any effect."""
        return self.run(self.admit(arguments, context), context)

    def admit(self, arguments: Raw, context: Context) -> Any:
        """Return the typed arguments if the caller may make this call."""
        try:
            typed = self._decoder.decode(arguments)
        except (msgspec.MsgspecError, RecursionError, ValueError) as error:
            raise ArgumentsRefused(explain(error, self.spec.arguments)) from None
        if not context.principal.is_owner:
            bank = self._bank_of(typed, context)
            authorise(context.principal, bank, writes=self._writes(context))
        return typed

    def run(self, typed: Any, context: Context) -> Answer | Awaitable[Answer]:
        """Run a call that `admit` accepted."""
        returned = self.spec.run(typed, context)
        if isinstance(returned, Awaitable):
            later = cast("Awaitable[Returned]", returned)
            if not self._writes(context):
                return _read(later)
            return _write(later, context, self._bank_of(typed, context), self.spec.name)
        return as_answer(returned)

    def _writes(self, context: Context) -> bool:
        spec = self.spec
        return not spec.read_only and (context.principal.can_write or not spec.serves_readers)

    def _bank_of(self, typed: Any, context: Context) -> str:
        """The bank that the arguments name, else the caller's default bank."""
        named: Any = getattr(typed, self._bank) if self._bank is not None else None
        return named if isinstance(named, str) and named else context.bank


async def _read(returned: Awaitable[Returned]) -> Answer:
    return as_answer(await returned)


async def _write(returned: Awaitable[Returned], context: Context, bank: str, tool: str) -> Answer:
    """Await a writing tool, then notify the bank's subscribers.

    Storage failures are logged here because many dialects report them as ordinary results, which
    are not logged elsewhere.
    """
    try:
        answer = as_answer(await returned)
    except StorageError as failure:
        log.warning("write.refused", reason=type(failure).__name__, tool=tool)
        raise
    context.changed(bank)
    return answer


def as_answer(returned: Returned) -> Answer:
    """A tool's return value as an MCP result; a Struct is also repeated as text."""
    if isinstance(returned, (CallToolResult, InputRequired)):
        return returned
    if isinstance(returned, str):
        return CallToolResult(content=[TextContent(text=returned)])
    body = _encoder.encode(returned)
    return CallToolResult(content=[TextContent(text=body.decode())], structured_content=Raw(body))

"""Bound tool: a tool specification with its decoder, its dialect and its answer encoder.

A call is decoded, authorised for the bank it names, run, and encoded. Many clients send null for an
optional argument that is not set, so such members are removed first; null for a required argument
is refused. A dialect can name HTTP headers that supply optional arguments (`Dialect.headers`); an
argument in the message has precedence.
"""

from collections.abc import Awaitable, Mapping
from typing import Any, Final, cast

import msgspec
import structlog
from msgspec import Raw, Struct

from daemon.tools.answer_size import ANSWER_BYTES, check
from daemon.tools.authority import authorise
from daemon.tools.context import Context
from daemon.tools.dialect import PLAIN, Dialect
from daemon.tools.errors import ArgumentsRefused
from daemon.tools.specification import ToolSpec
from protocol.headers import Headers, Mirrored, mirrored_in
from protocol.lifecycle import explain
from protocol.mcp import CallToolResult, InputRequired, TextContent
from store.errors import StorageError

Answer = CallToolResult | InputRequired
#: The types that a tool function may return.
Returned = Struct | str

#: Arguments that name a bank, in any dialect. The caller's access to it is checked.
BANK_ARGUMENTS: Final = ("bank_id", "memory_id", "bank")

log: Final = structlog.get_logger()

_NULL: Final = b"null"
_EMPTY: Final = b'""'
_BEARER: Final = "bearer "

_encoder: Final = msgspec.json.Encoder()
_members: Final = msgspec.json.Decoder(dict[str, Raw])


class BoundTool:
    """A tool ready to be called."""

    __slots__ = ("_answer_bytes", "_bank", "_decoder", "_optional", "dialect", "mirrored", "spec")

    def __init__(
        self, spec: ToolSpec, dialect: Dialect = PLAIN, answer_bytes: int = ANSWER_BYTES
    ) -> None:
        self.spec = spec
        self.dialect = dialect
        self._answer_bytes = answer_bytes
        self._decoder = msgspec.json.Decoder(spec.arguments)
        self._optional = _optional_arguments(spec.arguments)
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
            given = _complete(
                bytes(arguments), self._optional, self.dialect.headers, context.headers
            )
            typed = self._decoder.decode(given)
        except (msgspec.MsgspecError, RecursionError, ValueError) as error:
            raise ArgumentsRefused(explain(error, self.spec.arguments)) from None
        if not context.principal.is_owner and self.spec.uses_bank:
            bank = self._bank_of(typed, context)
            authorise(context.principal, bank, writes=self._writes(context))
        return typed

    def run(self, typed: Any, context: Context) -> Answer | Awaitable[Answer]:
        """Run a call that `admit` accepted."""
        returned = self.spec.run(typed, context)
        if isinstance(returned, Awaitable):
            later = cast("Awaitable[Returned]", returned)
            if not self._writes(context):
                return self._read(later)
            return _write(later, context, self._bank_of(typed, context), self.spec.name)
        return as_answer(returned)

    async def _read(self, returned: Awaitable[Returned]) -> Answer:
        return as_answer(await returned, self._answer_bytes)

    def _writes(self, context: Context) -> bool:
        spec = self.spec
        if spec.is_open_world:
            return False
        return not spec.read_only and (context.principal.can_write or not spec.serves_readers)

    def _bank_of(self, typed: Any, context: Context) -> str:
        """The bank that the arguments name, else the caller's default bank."""
        named: Any = getattr(typed, self._bank) if self._bank is not None else None
        return named if isinstance(named, str) and named else context.bank


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


def as_answer(returned: Returned, limit: int | None = None) -> Answer:
    """A tool's return value as an MCP result; a Struct is also repeated as text.

    Raises `AnswerTooLarge` if its JSON exceeds the limit.
    """
    if isinstance(returned, (CallToolResult, InputRequired)):
        return returned
    if isinstance(returned, str):
        return CallToolResult(content=[TextContent(text=returned)])
    body = _encoder.encode(returned)
    if limit is not None:
        check(len(body), limit)
    return CallToolResult(content=[TextContent(text=body.decode())], structured_content=Raw(body))


def _optional_arguments(arguments: type[Struct]) -> frozenset[str]:
    """The names of the arguments that a caller may omit."""
    fields = msgspec.structs.fields(arguments)
    return frozenset(field.encode_name for field in fields if not field.required)


def _complete(
    arguments: bytes,
    optional: frozenset[str],
    sources: Mapping[str, str],
    headers: Headers | None,
) -> bytes:
    """The arguments without nulls for optional ones, and with defaults from headers.

    `sources` maps an argument to its header. Raises the decoder's error for broken JSON.
    """
    defaults = _defaults(sources, headers) if headers is not None and sources else {}
    if not defaults and _NULL not in arguments:
        return arguments
    given = {
        name: value
        for name, value in _members.decode(arguments).items()
        if name not in optional or bytes(value) != _NULL
    }
    for name, value in defaults.items():
        if name in optional and bytes(given.get(name, Raw(_EMPTY))) == _EMPTY:
            given[name] = Raw(_encoder.encode(value))
    return _encoder.encode(given)


def _defaults(sources: Mapping[str, str], headers: Headers) -> dict[str, str]:
    found: dict[str, str] = {}
    for argument, header in sources.items():
        values = headers.get(header, ())
        value = values[0].strip() if len(values) == 1 else ""
        if header == "authorization":
            is_bearer = value.lower().startswith(_BEARER)
            value = value[len(_BEARER) :].strip() if is_bearer else ""
        if value:
            found[argument] = value
    return found

"""Tools: what a dialect offers, typed on both sides.

A tool is a function of (arguments, context). It takes a Struct and returns a Struct (structured
result, mirrored as JSON text), a string, or a finished `CallToolResult`. A plain function is
answered at once; an async one gets a task of its own. A tool that understood but cannot says so by
raising `ToolFailure`; anything else it raises is a crash, and is the dispatcher's business.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, Protocol, cast

import msgspec
import structlog
from msgspec import UNSET, Raw, Struct

from daemon.tools.authority import Principal, authorise
from protocol.headers import Mirrored, mirrored_in
from protocol.lifecycle import ClientCapabilities, Implementation, explain
from protocol.mcp import (
    CallToolResult,
    InputRequired,
    TextContent,
    Tool,
    ToolAnnotations,
    error_result,
)
from protocol.revisions import Revision
from protocol.schema import result_schema_of, schema_of
from protocol.shape import shape_tools
from store.errors import StorageError

Answer = CallToolResult | InputRequired
#: What a tool function may return.
Returned = Struct | str

log: Final = structlog.get_logger()

_encoder: Final = msgspec.json.Encoder()


class ToolFailure(Exception):
    """The tool understood and says no; the text is for the caller."""


class Denied(ToolFailure):
    """A no in the dialect's own form (`ToolSpec.refuse`); nothing was changed."""


class Missing(Denied):
    """What the call is about is not there."""


class ArgumentsRefused(Exception):
    """Arguments that break the tool's schema or a rule it cannot say: `field: rule`."""


class Context(Protocol):
    """What a tool may know about the call, and do besides returning."""

    @property
    def revision(self) -> Revision: ...
    @property
    def client(self) -> Implementation | None: ...
    @property
    def capabilities(self) -> ClientCapabilities: ...
    @property
    def transport(self) -> str: ...
    @property
    def principal(self) -> Principal:
        """Who is calling; what it may do has been checked for the bank the arguments name."""
        ...

    @property
    def bank(self) -> str:
        """The bank for tools that name none: what `--bank` said, else the daemon's default."""
        ...

    @property
    def inputs(self) -> dict[str, Any]:
        """The client's answers to an `InputRequired` of an earlier round."""
        ...

    @property
    def state(self) -> str | None:
        """The `request_state` of an earlier round, as the client sent it back."""
        ...

    async def session(self) -> str:
        """The id of this caller's session, committed."""
        ...

    async def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None: ...

    async def log(self, level: str, data: Any) -> None: ...

    async def ask(self, method: str, params: dict[str, Any]) -> Any:
        """A request of ours to a legacy client; raises `ToolFailure` when it cannot answer."""
        ...

    def announce(self, change: str, uri: str | None = None) -> None:
        """Tell whoever listens that a list or a resource changed."""
        ...

    def changed(self, bank: str) -> None:
        """Tell whoever watches this bank that something was written to it."""
        ...

    def detach(self) -> None:
        """Let go of the connection, if the client can fetch the answer later (SSE polling)."""
        ...


#: Arguments that name a bank, in any dialect; what they name is authorised before a tool runs.
BANK_ARGUMENTS: Final = ("bank_id", "memory_id", "bank")


class NoArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """For tools that take nothing."""


def _refuse(reason: str) -> CallToolResult:
    return error_result(f"Invalid arguments: {reason}")


def _always(_arguments: Any) -> bool:
    return True


class ToolSpec(Struct, frozen=True, kw_only=True, eq=False):
    """One tool: how it is described, what it takes, what it gives, and the function itself."""

    name: str
    description: str
    run: Callable[[Any, Context], Any]
    arguments: type[Struct] = NoArguments
    title: str | None = None
    output: type[Struct] | None = None
    read_only: bool = False
    #: Whether a caller that may only read is served too; the tool then writes nothing to the bank.
    serves_readers: bool = False
    destructive: bool = False
    #: Whether a destructive tool would destroy something, by its arguments.
    would_destroy: Callable[[Any], bool] = _always
    idempotent: bool = False
    #: Overrides the schema made from `arguments`, where a seed document fixes its wording.
    input_schema: dict[str, Any] | None = None
    #: How this tool's dialect says no: to arguments, where a result says it (d and e), or `Denied`.
    refuse: Callable[[str], CallToolResult] = _refuse
    #: How it says that the engine could not; without one the JSON-RPC error says it.
    fail: Callable[[Exception], CallToolResult] | None = None
    #: What this tool calls the engine's fields, so that a refusal names the argument.
    fields: Mapping[str, str] = {}
    #: Capabilities a modern client must declare for this tool (-32021 otherwise).
    needs: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()

    @property
    def is_retry_safe(self) -> bool:
        """Whether it may be called again when an answer got lost."""
        return self.read_only or self.idempotent

    def describe(self) -> Tool:
        return Tool(
            name=self.name,
            title=self.title if self.title is not None else UNSET,
            description=self.description,
            input_schema=self.input_schema or schema_of(self.arguments),
            output_schema=result_schema_of(self.output) if self.output is not None else UNSET,
            annotations=ToolAnnotations(
                read_only_hint=self.read_only,
                destructive_hint=UNSET if self.read_only else self.destructive,
                idempotent_hint=UNSET if self.read_only else self.idempotent,
                open_world_hint=False,
            ),
        )


class BoundTool:
    """A tool ready to be called: its decoder is made once."""

    __slots__ = ("_bank", "_decoder", "mirrored", "spec")

    def __init__(self, spec: ToolSpec) -> None:
        self.spec = spec
        self._decoder = msgspec.json.Decoder(spec.arguments)
        fields = spec.arguments.__struct_fields__
        self._bank = next((name for name in BANK_ARGUMENTS if name in fields), None)
        #: Arguments that HTTP headers repeat.
        self.mirrored: tuple[Mirrored, ...] = mirrored_in(spec.input_schema or {})

    def call(self, arguments: Raw, context: Context) -> Answer | Awaitable[Answer]:
        """Decode, authorise, run; `ArgumentsRefused` and `Forbidden` come before anything ran."""
        return self.run(self.admit(arguments, context), context)

    def admit(self, arguments: Raw, context: Context) -> Any:
        """The typed arguments of a call that may be made."""
        try:
            typed = self._decoder.decode(arguments)
        except (msgspec.MsgspecError, RecursionError, ValueError) as error:
            raise ArgumentsRefused(explain(error, self.spec.arguments)) from None
        if not context.principal.is_owner:
            bank = self._bank_of(typed, context)
            authorise(context.principal, bank, writes=self._writes(context))
        return typed

    def run(self, typed: Any, context: Context) -> Answer | Awaitable[Answer]:
        """Do what was admitted."""
        given = self.spec.run(typed, context)
        if isinstance(given, Awaitable):
            later = cast("Awaitable[Returned]", given)
            if not self._writes(context):
                return _later(later)
            return _write_later(later, context, self._bank_of(typed, context), self.spec.name)
        return as_answer(given)

    def _writes(self, context: Context) -> bool:
        spec = self.spec
        return not spec.read_only and (context.principal.can_write or not spec.serves_readers)

    def _bank_of(self, typed: Any, context: Context) -> str:
        """The bank a call is about: the one its arguments name, else the caller's own."""
        named: Any = getattr(typed, self._bank) if self._bank is not None else None
        return named if isinstance(named, str) and named else context.bank


async def _later(given: Awaitable[Returned]) -> Answer:
    return as_answer(await given)


async def _write_later(
    given: Awaitable[Returned], context: Context, bank: str, tool: str
) -> Answer:
    """As `_later`, and whoever watches the bank hears of it; the log hears of a disk that will not.

    The caller is told in its dialect's words, often as an ordinary result, which nobody logs.
    """
    try:
        answer = as_answer(await given)
    except StorageError as failure:
        log.warning("write.refused", reason=type(failure).__name__, tool=tool)
        raise
    context.changed(bank)
    return answer


def as_answer(given: Returned) -> Answer:
    """What a tool returned, as MCP has it: structure is mirrored as text (TO, SHOULD)."""
    if isinstance(given, (CallToolResult, InputRequired)):
        return given
    if isinstance(given, str):
        return CallToolResult(content=[TextContent(text=given)])
    body = _encoder.encode(given)
    return CallToolResult(content=[TextContent(text=body.decode())], structured_content=Raw(body))


class Registry:
    """The tools one connection sees, in a fixed order.

    A listed name always means the tool that lists it: an alias that equals one is not answered.
    """

    def __init__(self, specs: Iterable[ToolSpec]) -> None:
        self._tools: dict[str, BoundTool] = {}
        self._aliases: dict[str, BoundTool] = {}
        self._listed: list[ToolSpec] = []
        self._listings: dict[str, bytes] = {}
        for spec in specs:
            self.add(spec)

    def __len__(self) -> int:
        return len(self._listed)

    def add(self, spec: ToolSpec) -> None:
        bound = BoundTool(spec)
        if spec.name in self._tools or any(alias in self._aliases for alias in spec.aliases):
            raise ValueError(f"two tools are called {spec.name}, or go by the same alias")
        self._tools[spec.name] = bound
        self._aliases.update(dict.fromkeys(spec.aliases, bound))
        self._listed.append(spec)
        self._listings.clear()

    def remove(self, name: str) -> None:
        bound = self._tools.pop(name)
        self._listed.remove(bound.spec)
        for alias in bound.spec.aliases:
            del self._aliases[alias]
        self._listings.clear()

    def find(self, name: str) -> BoundTool | None:
        return self._tools.get(name) or self._aliases.get(name)

    def specs(self) -> list[ToolSpec]:
        """The tools in the order they are listed."""
        return list(self._listed)

    def listing(self, revision: Revision) -> bytes:
        """The body of `tools/list`, encoded once a revision."""
        found = self._listings.get(revision.date)
        if found is None:
            tools = shape_tools([spec.describe() for spec in self._listed], revision)
            found = _encoder.encode({"tools": tools})
            self._listings[revision.date] = found
        return found

    def retry_safe(self) -> list[str]:
        """Names of tools that may be called again when an answer got lost."""
        return [
            name
            for name, bound in {**self._aliases, **self._tools}.items()
            if bound.spec.is_retry_safe
        ]

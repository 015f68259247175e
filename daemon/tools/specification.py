"""Tool specification: the name, description, typed arguments and function of one tool.

A tool is a function of (arguments, context). It takes a Struct and returns a Struct (structured
result, repeated as JSON text), a string, or a finished `CallToolResult`. A plain function is
answered at once; an async function runs in a task of its own. See `daemon.tools.errors` for the
exceptions a tool may raise.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import UNSET, Struct

from daemon.tools.context import Context
from protocol.mcp import Tool, ToolAnnotations
from protocol.schema import result_schema_of, schema_of


class NoArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of a tool that takes none."""


#: Calls of some real tools take seconds: imports of histories, large documents, scripts.
LONG_CALL_SECONDS: Final = 2.0


def _always(_arguments: Any) -> bool:
    return True


class ToolSpec(Struct, frozen=True, kw_only=True, eq=False):
    """One tool. Error forms and field names shared by a dialect's tools are in `Dialect`."""

    name: str
    description: str
    run: Callable[[Any, Context], Any]
    arguments: type[Struct] = NoArguments
    title: str | None = None
    output: type[Struct] | None = None
    read_only: bool = False
    #: Whether a read-only caller may call this writing tool; it then writes nothing to the bank.
    serves_readers: bool = False
    destructive: bool = False
    #: Whether a call of a destructive tool with these arguments would destroy something.
    would_destroy: Callable[[Any], bool] = _always
    idempotent: bool = False
    #: False for a tool that a script defines. Its result is `{"result": …}`, as REST answers.
    is_built_in: bool = True
    #: Whether the tool may have effects outside of recalld. It does not write to a bank.
    is_open_world: bool = False
    #: Whether it concerns a bank. One that concerns none is open to every authenticated caller.
    uses_bank: bool = True
    #: Replaces the schema generated from `arguments` where the source document fixes the wording.
    input_schema: dict[str, Any] | None = None
    #: Engine field to argument name, for this tool only; other fields follow `Dialect.fields`.
    fields: Mapping[str, str] = {}
    #: Capabilities that a modern client must declare to call this tool.
    needs: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    #: Seconds after which a call goes on as a task, if the client declared the tasks extension.
    #: None: never.
    task_after: float | None = None
    #: Whether a modern client must declare the tasks extension to call this tool.
    requires_task: bool = False

    @property
    def is_retry_safe(self) -> bool:
        """Whether a client may repeat the call after its answer was lost."""
        return self.read_only or self.idempotent

    def describe(self) -> Tool:
        """The entry of this tool in `tools/list`."""
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
                open_world_hint=self.is_open_world,
            ),
        )

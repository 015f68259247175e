"""The answer of a search tool exactly as an agent gets it, with an estimate of its tokens."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated, Any, Final, Literal, cast

import msgspec
from msgspec import Meta, Raw, Struct

from daemon.api.operation import Operation, operation
from daemon.tools.context import Context
from daemon.tools.errors import ArgumentsRefused, Missing
from daemon.tools.surface import Surface
from daemon.tools.token_estimate import estimate
from protocol.mcp import InputRequired, TextContent

TAG: Final = "search"

DialectName = Literal["native", "recall", "awareness", "hindsight", "harness"]
#: The surface with the tools of one dialect.
SurfaceOf = Callable[[str], Surface]


class PreviewArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    bank: str
    query: Annotated[str, Meta(min_length=1)]
    limit: Annotated[int, Meta(ge=1, le=50)] = 6
    dialect: DialectName = "native"


class AgentView(Struct, frozen=True, kw_only=True):
    """The tool, its arguments, the text of its answer, and an estimate of its tokens."""

    tool: str
    arguments: dict[str, Any]
    text: str
    tokens: int


class _InBank:
    """The context of a call whose default bank is the one of the request."""

    def __init__(self, context: Context, bank: str) -> None:
        self._context = context
        self.bank = bank

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)


async def preview_search(
    surface_of: SurfaceOf, arguments: PreviewArguments, context: Context
) -> AgentView:
    """A search as an agent of a dialect sees it: the exact text of the tool's answer."""
    if not arguments.query.strip():
        raise ArgumentsRefused("query: must not be empty")
    name, given = _call(arguments)
    tool = surface_of(arguments.dialect).tools.find(name)
    if tool is None:
        raise Missing(f"the dialect {arguments.dialect} is not served")
    within = cast("Context", _InBank(context, arguments.bank))
    answer = tool.call(Raw(msgspec.json.encode(given)), within)
    if isinstance(answer, Awaitable):
        answer = await answer
    assert not isinstance(answer, InputRequired)
    text = "\n".join(block.text for block in answer.content if isinstance(block, TextContent))
    return AgentView(tool=name, arguments=given, text=text, tokens=estimate(text))


def _call(arguments: PreviewArguments) -> tuple[str, dict[str, Any]]:
    """The search tool of a dialect and its arguments."""
    query, limit, bank = arguments.query, arguments.limit, arguments.bank
    match arguments.dialect:
        case "native":
            return "recall", {"query": query, "limit": limit}
        case "recall":
            return "mcp__claude-recall__search", {"query": query, "limit": limit}
        case "awareness":
            given = {"semantic_query": query, "memory_id": bank, "limit": limit}
            return "awareness_recall", given
        case "hindsight":
            return "hindsight_search", {"bank_id": bank, "query": query}
        case "harness":
            return "search", {"query": query, "limit": limit}


def operations(surface_of: SurfaceOf) -> list[Operation]:
    add = partial(operation, service=surface_of, tag=TAG)
    example = {"query": "when do we release?", "dialect": "native"}
    return [
        add("POST", "/banks/{bank}/preview", preview_search, reads=True, example=example),
    ]

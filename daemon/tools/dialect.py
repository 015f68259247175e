"""Dialect: the tool surface of one memory system, as a value.

A dialect bundles its tools with the form of its errors. `daemon.dialects.registry` loads dialects
by name and binds their tools to a toolkit.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from daemon.tools.specification import ToolSpec
from daemon.tools.toolkit import Toolkit
from protocol.mcp import CallToolResult, error_result


def _refuse(reason: str) -> CallToolResult:
    return error_result(f"Invalid arguments: {reason}")


def _no_tools(_toolkit: Toolkit) -> Sequence[ToolSpec]:
    return ()


class Dialect(Struct, frozen=True, kw_only=True, eq=False):
    """A named group of tools with a common error form."""

    name: str
    #: Builds the tools over an engine, in the order of `tools/list`.
    tools: Callable[[Toolkit], Sequence[ToolSpec]] = _no_tools
    #: The result for a refused call, from a reason such as `limit: must be at least 1`.
    refuse: Callable[[str], CallToolResult] = _refuse
    #: The result for an engine failure; None answers with a JSON-RPC error instead.
    fail: Callable[[Exception], CallToolResult] | None = None
    #: Engine field to argument name, so that a refusal names the argument the caller sent.
    fields: Mapping[str, str] = {}
    #: Optional argument to HTTP header (lower case) that supplies it when a call does not.
    headers: Mapping[str, str] = {}
    #: Tells a model which tools to search and store with; part of the server's instructions.
    instructions: str = ""


#: For tools outside any dialect, such as test fixtures.
PLAIN: Final = Dialect(name="")

"""Surface: the tools, resources, prompts and other features that one connection sees.

A surface always has tools; resources, prompts, completion and log messages are optional. The
methods offered on a connection and the capabilities it declares are both derived from its surface,
so they always agree.
"""

from collections.abc import Awaitable, Sequence
from typing import Any, Final, Protocol

from msgspec import Struct

from daemon.bridge.retry_advice import READS
from daemon.tools.bound_tool import BoundTool
from daemon.tools.context import Context
from daemon.tools.registry import Registry
from protocol.lifecycle import Offered
from protocol.mcp import (
    CompleteParams,
    CompletionValues,
    GetPromptResult,
    InputRequired,
    Prompt,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
)
from protocol.revisions import TASKS, Revision


class Resources(Protocol):
    """Resources that can be read by URI."""

    async def list(self, context: Context) -> Sequence[Resource]: ...
    def templates(self) -> Sequence[ResourceTemplate]: ...
    async def read(self, uri: str, context: Context) -> ReadResourceResult | None:
        """None if the resource does not exist."""
        ...


class Prompts(Protocol):
    """Prompt messages that a client can request by name."""

    def list(self) -> Sequence[Prompt]: ...
    def get(
        self, name: str, arguments: dict[str, str], context: Context
    ) -> GetPromptResult | InputRequired | Awaitable[GetPromptResult | InputRequired | None] | None:
        """None if the prompt does not exist."""
        ...


class AgentArgument(Struct, frozen=True, kw_only=True):
    """An argument of an agent."""

    name: str
    description: str = ""
    required: bool = False


class Agent(Struct, frozen=True, kw_only=True):
    """A named system prompt and the tools it uses, as listed. `source` is `toml` or `lua`."""

    name: str
    description: str
    tools: list[str]
    source: str
    arguments: list[AgentArgument] = []


class Agents(Protocol):
    """The agents that a client can ask for a prompt."""

    def list(self) -> Sequence[Agent]: ...
    def find(self, name: str) -> BoundTool | None:
        """The tool that makes the prompt of this agent; None if it does not exist."""
        ...


class Completions(Protocol):
    async def complete(self, params: CompleteParams, context: Context) -> CompletionValues | None:
        """None if the reference or the argument does not exist."""
        ...


class Surface(Struct, frozen=True, kw_only=True, eq=False):
    """Features of a connection. `changing` names the lists that may change while it is open."""

    name: str
    tools: Registry
    resources: Resources | None = None
    prompts: Prompts | None = None
    completions: Completions | None = None
    agents: Agents | None = None
    logging: bool = False
    changing: frozenset[str] = frozenset()
    instructions: str = ""

    def capabilities(self, revision: Revision) -> dict[str, Any]:
        found: dict[str, Any] = {"tools": self._listed("tools")}
        if self.resources is not None:
            found["resources"] = {"subscribe": True, **self._listed("resources")}
        if self.prompts is not None:
            found["prompts"] = self._listed("prompts")
        if self.completions is not None and revision.completions_capability:
            found["completions"] = {}
        if self.logging:
            found["logging"] = {}
        if revision.modern and self.tools.has_tasks:
            found["extensions"] = {TASKS: {}}
        return found

    def is_retry_safe(self, method: str, tool: str) -> bool:
        """Whether a client may repeat a call after its answer was lost."""
        found = self.tools.find(tool) if tool else None
        return method in READS or (found is not None and found.spec.is_retry_safe)

    def _listed(self, name: str) -> dict[str, Any]:
        return {"listChanged": True} if name in self.changing else {}

    def offered(self, private: frozenset[str] = frozenset()) -> Offered:
        """The methods of a connection.

        `private` methods are for recalld's own processes, which make no MCP handshake. They are no
        longer offered after one.
        """
        both = {"tools/list", "tools/call", "health/check"}
        legacy = {"initialize", "ping"}
        modern = {"server/discover", "subscriptions/listen"}
        if self.resources is not None:
            both |= {"resources/list", "resources/templates/list", "resources/read"}
            legacy |= {"resources/subscribe", "resources/unsubscribe"}
        if self.prompts is not None:
            both |= {"prompts/list", "prompts/get"}
        if self.completions is not None:
            both.add("completion/complete")
        if self.logging:
            legacy.add("logging/setLevel")
        if self.tools.has_tasks:
            modern |= {"tasks/get", "tasks/update", "tasks/cancel"}
        return Offered(
            legacy=frozenset(both | legacy),
            modern=frozenset(both | modern),
            unopened=UNOPENED | private,
        )


#: Answered before any handshake, so that a client can check that the daemon is alive.
UNOPENED: Final = frozenset({"ping", "health/check"})

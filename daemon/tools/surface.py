"""A surface: everything one connection may see, as MCP groups it.

Tools always; resources, prompts, completion and log messages where somebody offers them. From a
surface follow the methods that exist on its connections and the capabilities they declare, so that
what is declared is what works (V02).
"""

from collections.abc import Awaitable, Sequence
from typing import Any, Final, Protocol

from msgspec import Struct

from daemon.bridge.retry_advice import READS
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
from protocol.revisions import Revision


class Resources(Protocol):
    """Things that can be read by URI."""

    async def list(self, context: Context) -> Sequence[Resource]: ...
    def templates(self) -> Sequence[ResourceTemplate]: ...
    async def read(self, uri: str, context: Context) -> ReadResourceResult | None:
        """None when there is no such resource."""
        ...


class Prompts(Protocol):
    """Messages a client can ask for by name."""

    def list(self) -> Sequence[Prompt]: ...
    def get(
        self, name: str, arguments: dict[str, str], context: Context
    ) -> GetPromptResult | InputRequired | Awaitable[GetPromptResult | InputRequired | None] | None:
        """None when there is no such prompt."""
        ...


class Completions(Protocol):
    async def complete(self, params: CompleteParams, context: Context) -> CompletionValues | None:
        """None when the reference or the argument does not exist."""
        ...


class Surface(Struct, frozen=True, kw_only=True, eq=False):
    """What a connection sees. `changing` names the lists that may change while it is open."""

    name: str
    tools: Registry
    resources: Resources | None = None
    prompts: Prompts | None = None
    completions: Completions | None = None
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
        return found

    def is_retry_safe(self, method: str, tool: str) -> bool:
        """Whether a call may be made again when its answer got lost."""
        found = self.tools.find(tool) if tool else None
        return method in READS or (found is not None and found.spec.is_retry_safe)

    def _listed(self, name: str) -> dict[str, Any]:
        return {"listChanged": True} if name in self.changing else {}

    def offered(self, private: frozenset[str] = frozenset()) -> Offered:
        """The methods of a connection.

        `private` ones are between recalld's own processes, which make no MCP handshake: once there
        is one, they are gone.
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
        return Offered(
            legacy=frozenset(both | legacy),
            modern=frozenset(both | modern),
            unopened=UNOPENED | private,
        )


#: Answered before any handshake: a client must be able to see that we are alive.
UNOPENED: Final = frozenset({"ping", "health/check"})

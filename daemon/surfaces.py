"""The surfaces that a process offers: the tools of its dialects and scripts, and the rest."""

from collections.abc import AsyncGenerator, Awaitable, Mapping
from contextlib import asynccontextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from daemon.config import Settings
from daemon.dialect_names import DIALECTS, HARNESS, chosen
from daemon.dialects.registry import build, instructions
from daemon.dialects.registry import load as load_dialect
from daemon.exit_codes import USAGE, Exit
from daemon.memory.completion import MemoryCompletions
from daemon.memory.prompts import PROMPTS, MemoryPrompts
from daemon.memory.resources import MemoryResources
from daemon.tools.authority import OWNER
from daemon.tools.bound_tool import BoundTool
from daemon.tools.errors import ArgumentsRefused, ToolFailure
from daemon.tools.surface import Prompts, Surface
from daemon.tools.toolkit import SourceDirectory, Toolkit
from protocol.headers import Headers
from protocol.lifecycle import ClientCapabilities, Implementation
from protocol.mcp import CallToolResult
from protocol.revisions import LATEST_LEGACY, Revision
from store.clock import wall_clock
from store.engine import Engine
from store.errors import StoreError

if TYPE_CHECKING:
    from daemon.lua.offering import OfferedScripts


def make_toolkit(settings: Settings, engine: Engine, sources: SourceDirectory | None) -> Toolkit:
    return Toolkit(
        engine=engine,
        now=wall_clock,
        final_limit=settings.final_limit,
        api_key=settings.api_key,
        skill_banks=settings.skill_banks,
        answer_bytes=settings.answer_bytes,
        sources=sources,
    )


@asynccontextmanager
async def open_offered(
    settings: Settings, engine: Engine, sources: SourceDirectory | None
) -> AsyncGenerator["OfferedScripts | None"]:
    """The Lua tools, loaded; None if the settings name no scripts."""
    scripts = settings.scripts
    if not (scripts.are_used or scripts.inline_agents) or settings.fixtures:
        yield None
        return
    from daemon.lua.offering import Taken, open_scripts  # most users have no scripts

    toolkit = make_toolkit(settings, engine, sources)
    harness = load_dialect(HARNESS)
    built_in = {
        spec.name: BoundTool(spec, harness, settings.answer_bytes)
        for spec in harness.tools(toolkit)
    }
    taken = Taken(
        tools=build(DIALECTS, toolkit).names() | {"list"},  # GET /tools/list
        prompts=frozenset(prompt.name for prompt in PROMPTS),
    )
    async with open_scripts(
        scripts, built_in, harness, taken, result_bytes=settings.answer_bytes
    ) as offered:
        yield offered


class LocalContext:
    """The caller of a single call in this process: the owner, on the command line."""

    revision: Revision = LATEST_LEGACY
    client: Implementation | None = None
    capabilities = ClientCapabilities()
    transport = "command"
    principal = OWNER
    headers: Headers | None = None
    state: str | None = None

    def __init__(self, bank: str) -> None:
        self.bank = bank

    @property
    def inputs(self) -> dict[str, Any]:
        return {}

    async def session(self) -> str:
        raise ToolFailure("a command has no session")

    async def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """A command shows no progress of a call."""

    async def log(self, level: str, data: Any) -> None:
        """A command shows no log messages of a call."""

    async def ask(self, method: str, params: dict[str, Any]) -> Any:
        raise ToolFailure("a command cannot be asked anything")

    def announce(self, change: str, uri: str | None = None) -> None:
        """There is nobody to notify."""

    def changed(self, bank: str) -> None:
        """There is nobody to notify."""

    def detach(self) -> None:
        """The answer is awaited."""


async def call_once(
    toolkit: Toolkit, name: str, arguments: Mapping[str, Any], bank: str
) -> dict[str, Any]:
    """Call a Context Harness tool; `Exit(USAGE)` has the reason of a refusal."""
    tool = build([HARNESS], toolkit).find(name)
    assert tool is not None
    try:
        answer = tool.call(Raw(msgspec.json.encode(arguments)), LocalContext(bank))
        if isinstance(answer, Awaitable):
            answer = await answer
    except (ArgumentsRefused, ToolFailure, StoreError) as refused:
        raise Exit(USAGE, str(refused)) from None
    assert isinstance(answer, CallToolResult)
    return msgspec.json.decode(answer.structured_content, type=dict[str, Any])


@cache
def _fixture_surface() -> Surface:
    from daemon.fixtures import surface  # test data; ordinary use does not import it

    return surface()


class DialectSurfaces:
    """The surfaces of all combinations of dialects, each created when first needed."""

    def __init__(
        self, settings: Settings, toolkit: Toolkit, scripts: "OfferedScripts | None" = None
    ) -> None:
        self._settings = settings
        self._toolkit = toolkit
        self._scripts = scripts
        self._made: dict[str, Surface] = {}

    @property
    def made(self) -> list[Surface]:
        return list(self._made.values())

    def __call__(self, dialects: str = "", *, fixtures: bool = False) -> Surface:
        dialects = dialects or self._settings.dialects
        if self._settings.fixtures:
            return _fixture_surface()
        if fixtures:
            raise LookupError("fixtures: this daemon was started without --fixtures")
        found = self._made.get(dialects)
        if found is None:
            names = chosen(dialects)
            tools = build(names, self._toolkit)
            prompts: Prompts = MemoryPrompts(self._toolkit)
            # Scripts are part of Context Harness.
            scripts = self._scripts if HARNESS in names else None
            if scripts is not None:
                from daemon.lua.agent_prompts import AgentPrompts

                scripts.join(tools)
                prompts = AgentPrompts(prompts, scripts.agents)
            found = self._made[dialects] = Surface(
                name=dialects,
                tools=tools,
                changing=frozenset({"tools", "prompts"} if scripts is not None else ()),
                instructions=instructions(names),
                resources=MemoryResources(self._toolkit),
                prompts=prompts,
                agents=scripts.agents if scripts is not None else None,
                completions=MemoryCompletions(self._toolkit),
            )
        return found

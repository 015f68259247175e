"""The surfaces that a process offers: the tools of its dialects and scripts, and the rest."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import cache
from typing import TYPE_CHECKING

from daemon.config import Settings
from daemon.dialect_names import DIALECTS, HARNESS, chosen
from daemon.dialects.registry import build, instructions
from daemon.dialects.registry import load as load_dialect
from daemon.memory.completion import MemoryCompletions
from daemon.memory.prompts import PROMPTS, MemoryPrompts
from daemon.memory.resources import MemoryResources
from daemon.tools.bound_tool import BoundTool
from daemon.tools.surface import Prompts, Surface
from daemon.tools.toolkit import SourceDirectory, Toolkit
from store.engine import Engine
from store.sqlite.catalogue import wall_clock

if TYPE_CHECKING:
    from daemon.lua.offering import OfferedScripts


def make_toolkit(settings: Settings, engine: Engine, sources: SourceDirectory | None) -> Toolkit:
    return Toolkit(
        engine=engine,
        now=wall_clock,
        final_limit=settings.final_limit,
        api_key=settings.api_key,
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

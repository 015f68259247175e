"""The Lua tools and agents of one process, kept up to date in all registries that offer them.

Scripts are loaded before the daemon is ready, and again within seconds after a file changed. Calls
that are running finish with the text they started with.
"""

import os
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

import anyio
import anyio.to_thread
import structlog

from daemon.config.scripts import Scripts
from daemon.lua.agent_prompts import OfferedAgents
from daemon.lua.agents import FoundAgents, find_agents
from daemon.lua.host import Tools
from daemon.lua.runner import Runner, ScriptLimits, script_runner
from daemon.lua.script_tools import Found, Problem, find_tools, watched
from daemon.tools.dialect import Dialect
from daemon.tools.registry import Registry

CHECK_SECONDS: Final = 2.0

log: Final = structlog.get_logger()


class Taken(NamedTuple):
    """Names of built-in tools and prompts, which no script can have."""

    tools: frozenset[str] = frozenset()
    prompts: frozenset[str] = frozenset()


class OfferedScripts:
    """The scripts that the settings name; see `open_scripts`."""

    def __init__(
        self, settings: Scripts, runner: Runner, built_in: Tools, dialect: Dialect, taken: Taken
    ) -> None:
        self.runner = runner
        self.agents = OfferedAgents(lambda: self._found_agents)
        self._settings = settings
        self._built_in = built_in
        self._dialect = dialect
        self._taken = taken
        self._found = Found()
        self._found_agents = FoundAgents()
        self._seen: object = None
        self._joined: list[tuple[Registry, list[str]]] = []

    @property
    def problems(self) -> Sequence[Problem]:
        return [*self._found.problems, *self._found_agents.problems]

    async def load(self) -> None:
        """Read all scripts and offer them in place of the earlier ones."""
        self._seen = await anyio.to_thread.run_sync(watched, self._settings)
        self._found = await find_tools(
            self._settings,
            self.runner,
            self._built_in,
            reserved=self._taken.tools,
            variables=os.environ,
        )
        self._found_agents = await find_agents(
            self._settings,
            self.runner,
            self._built_in,
            self._dialect,
            reserved=self._taken.prompts,
            variables=os.environ,
        )
        for registry, names in self._joined:
            for name in names:
                registry.remove(name)
            names[:] = self._add(registry)
        log.info(
            "scripts.loaded",
            tools=len(self._found.tools),
            agents=len(self._found_agents.agents),
            unusable=len(self.problems),
        )

    def join(self, registry: Registry) -> None:
        """Offer the tools in this registry from now on."""
        self._joined.append((registry, self._add(registry)))

    def _add(self, registry: Registry) -> list[str]:
        for tool in self._found.tools:
            registry.add(tool.spec, self._dialect)
        return [tool.spec.name for tool in self._found.tools]

    async def watch(self, changed: Callable[[], None]) -> None:
        """Load the scripts again whenever a file changes; `changed` runs after that."""
        while True:
            await anyio.sleep(CHECK_SECONDS)
            if await anyio.to_thread.run_sync(watched, self._settings) != self._seen:
                await self.load()
                changed()


@asynccontextmanager
async def open_scripts(
    settings: Scripts, built_in: Tools, dialect: Dialect, taken: Taken, *, result_bytes: int
) -> AsyncGenerator[OfferedScripts]:
    """Start the pool of script processes and load the scripts."""
    limits = ScriptLimits(
        memory_bytes=settings.memory_bytes,
        result_bytes=result_bytes,
        processes=settings.processes,
    )
    async with script_runner(limits) as runner:
        offered = OfferedScripts(settings, runner, built_in, dialect, taken)
        await offered.load()
        yield offered

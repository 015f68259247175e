"""The Lua tools of one process, kept up to date in every registry that offers them.

Scripts are loaded before the daemon is ready, and again within seconds after a file changed. Calls
that are running finish with the text they started with.
"""

import os
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final

import anyio
import anyio.to_thread
import structlog

from daemon.config.scripts import Scripts
from daemon.lua.host import Tools
from daemon.lua.runner import Runner, ScriptLimits, script_runner
from daemon.lua.script_tools import Found, Problem, find_tools, watched
from daemon.tools.dialect import Dialect
from daemon.tools.registry import Registry

CHECK_SECONDS: Final = 2.0

log: Final = structlog.get_logger()


class OfferedScripts:
    """The tools of the scripts that the settings name; see `open_scripts`."""

    def __init__(
        self, settings: Scripts, runner: Runner, built_in: Tools, reserved: frozenset[str]
    ) -> None:
        self.runner = runner
        self._settings = settings
        self._built_in = built_in
        self._reserved = reserved
        self._found = Found()
        self._seen: object = None
        self._joined: list[tuple[Registry, Dialect, list[str]]] = []

    @property
    def problems(self) -> Sequence[Problem]:
        return self._found.problems

    async def load(self) -> None:
        """Read all scripts and offer them in place of the earlier ones."""
        self._seen = await anyio.to_thread.run_sync(watched, self._settings)
        self._found = await find_tools(
            self._settings,
            self.runner,
            self._built_in,
            reserved=self._reserved,
            variables=os.environ,
        )
        for registry, dialect, names in self._joined:
            for name in names:
                registry.remove(name)
            names[:] = self._add(registry, dialect)
        log.info("scripts.loaded", tools=len(self._found.tools), unusable=len(self._found.problems))

    def join(self, registry: Registry, dialect: Dialect) -> None:
        """Offer the tools in this registry from now on."""
        self._joined.append((registry, dialect, self._add(registry, dialect)))

    def _add(self, registry: Registry, dialect: Dialect) -> list[str]:
        for tool in self._found.tools:
            registry.add(tool.spec, dialect)
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
    settings: Scripts, built_in: Tools, reserved: frozenset[str], *, result_bytes: int
) -> AsyncGenerator[OfferedScripts]:
    """Start the pool of script processes and load the scripts."""
    limits = ScriptLimits(
        memory_bytes=settings.memory_bytes,
        result_bytes=result_bytes,
        processes=settings.processes,
    )
    async with script_runner(limits) as runner:
        offered = OfferedScripts(settings, runner, built_in, reserved)
        await offered.load()
        yield offered

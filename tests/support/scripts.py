"""Lua tools over HTTP in this process, with small built-in tools for the scripts to call."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct

from daemon.config.scripts import Scripts
from daemon.dialects.harness import DIALECT
from daemon.lua.agent_prompts import AgentPrompts
from daemon.lua.offering import OfferedScripts, Taken, open_scripts
from daemon.lua.sandbox.messages import Ask, Note, Reply, Run
from daemon.tools.bound_tool import BoundTool
from daemon.tools.context import Context
from daemon.tools.registry import Registry
from daemon.tools.specification import ToolSpec
from daemon.tools.surface import Surface
from protocol.mcp import Prompt
from store.errors import NotFound
from tests.support.web import Web, running_web

MIB = 1024 * 1024


def settings_of(folder: Path, **changes: Any) -> Scripts:
    """Scripts in a folder, with a short time limit."""
    settings = Scripts(
        dir=folder,
        seconds=0.5,
        memory_bytes=64 * MIB,
        processes=4,
        hosts=(),
        environment=(),
        base=folder,
    )
    return settings._replace(**changes)


def write(folder: Path, scripts: Mapping[str, str]) -> None:
    """Write files; a name without a dot is a Lua file."""
    for name, text in scripts.items():
        path = folder / (name if "." in name else f"{name}.lua")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def executing(body: str) -> str:
    """The text of a tool with this body."""
    return f"tool = {{}}\nfunction tool.execute(params, context)\n{body}\nend\n"


def run_of(body: str, **changes: Any) -> Run:
    """A run of a tool with this body."""
    given = {"seconds": 5.0, "memory_bytes": 64 * MIB, "result_bytes": MIB, "arguments": [{}]}
    return Run(
        name="test.lua",
        source=executing(body).encode(),
        table="tool",
        function="execute",
        **{**given, **changes},
    )


async def no_host(ask: Ask) -> Reply:
    return Reply(error=f"{ask.name}: not here")


def no_notes(note: Note) -> None:
    raise AssertionError(note)


class _Query(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    query: Annotated[str, Meta(min_length=1)]
    limit: int = 12
    mode: str = "keyword"


class _Id(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    id: str


class _Rows(Struct, frozen=True, kw_only=True):
    results: list[dict[str, Any]]


class _Sources(Struct, frozen=True, kw_only=True):
    sources: list[dict[str, Any]]


class _Body(Struct, frozen=True, kw_only=True):
    id: str
    body: str


async def _search(arguments: _Query, context: Context) -> _Rows:
    row = {"id": "1", "title": arguments.query, "bank": context.bank}
    return _Rows(results=[row] * min(arguments.limit, 2))


async def _get(arguments: _Id, _context: Context) -> _Body:
    if arguments.id != "1":
        raise NotFound("document", arguments.id)
    return _Body(id="1", body="JWT tokens are signed")


async def _sources(_arguments: Any, _context: Context) -> _Sources:
    return _Sources(sources=[{"name": "git", "doc_count": 1}])


BUILT_IN = {
    spec.name: BoundTool(spec, DIALECT)
    for spec in (
        ToolSpec(name="search", description="", arguments=_Query, run=_search, read_only=True),
        ToolSpec(name="get", description="", arguments=_Id, run=_get, read_only=True),
        ToolSpec(name="sources", description="", run=_sources, read_only=True),
    )
}


class NoPrompts:
    """A surface without prompts of its own."""

    def list(self) -> Sequence[Prompt]:
        return []

    def get(self, name: str, arguments: dict[str, str], context: Context) -> None:
        return None


class ScriptWeb:
    """A running server whose tools are scripts."""

    def __init__(self, web: Web, offered: OfferedScripts, registry: Registry) -> None:
        self.web = web
        self.offered = offered
        self.registry = registry

    async def call(self, tool: str, **arguments: Any) -> tuple[int, Any]:
        """Status and body of `POST /tools/{tool}`."""
        answer = await self.web.client.post(f"/tools/{tool}", json=arguments)
        return answer.status_code, answer.json()


@asynccontextmanager
async def script_web(
    home: Path, scripts: Mapping[str, str], taken: Taken | None = None, **changes: Any
) -> AsyncGenerator[ScriptWeb]:
    """HTTP over these scripts, in a folder `tools` below `home`."""
    folder = home / "tools"
    folder.mkdir()
    write(folder, scripts)
    settings = settings_of(folder, **changes)
    async with open_scripts(
        settings, BUILT_IN, DIALECT, taken or Taken(), result_bytes=MIB
    ) as offered:
        registry = Registry()
        offered.join(registry)
        surface = Surface(
            name="scripts",
            tools=registry,
            prompts=AgentPrompts(NoPrompts(), offered.agents),
            agents=offered.agents,
            changing=frozenset({"tools"}),
        )
        async with running_web(home, surface=surface) as web:
            yield ScriptWeb(web, offered, registry)

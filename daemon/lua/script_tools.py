"""Lua tools: found in the settings, described in the sandbox, offered as tools.

A tool is a file in `tools.dir`, or an entry `[tools.script.NAME]`. It is loaded in a script process
to read its name, description and parameters; every call runs the same text again in a fresh Lua
state. A script that cannot be used is left out and reported, and the others are offered. No script
can take the name of a built-in tool.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

import anyio
import anyio.to_thread
import msgspec
import structlog
from msgspec import Raw, Struct
from msgspec.structs import replace

from daemon.config.scripts import NAME, NAME_RULE, ScriptEntry, Scripts
from daemon.lua.host import Memory, ScriptHost, Tools, memory_of, no_memory
from daemon.lua.parameters import (
    Misdeclared,
    arguments_type,
    as_table,
    read_parameters,
    schema,
)
from daemon.lua.process import Listen
from daemon.lua.runner import KEPT, Runner
from daemon.lua.sandbox.messages import Finished, Note
from daemon.lua.script import Script, ScriptUnreadable, read_script, signature
from daemon.tools.context import Context
from daemon.tools.errors import ScriptFailed, ScriptTimedOut
from daemon.tools.specification import LONG_CALL_SECONDS, ToolSpec
from protocol.mcp import CallToolResult, TextContent

#: The time that a script gets to be described, and all scripts together. A client waits for the
#: daemon meanwhile.
LOAD_SECONDS: Final = 2.0
LOAD_ALL_SECONDS: Final = 8.0
MOST_FILES: Final = 200
_DESCRIPTION_CHARACTERS: Final = 2_000

log: Final = structlog.get_logger()

_encoder: Final = msgspec.json.Encoder()


class Problem(Struct, frozen=True):
    """A script that cannot be used, and the reason."""

    path: str
    reason: str


class ScriptTool(Struct, frozen=True, kw_only=True, eq=False):
    """A usable script."""

    script: Script
    spec: ToolSpec


class Found(Struct, frozen=True, kw_only=True):
    """The tools in the order of their names, and the problems."""

    tools: Sequence[ScriptTool] = ()
    problems: Sequence[Problem] = ()


class ScriptOutput(Struct, frozen=True, kw_only=True):
    """The result of every Lua tool, as in Context Harness."""

    result: Any = None


async def find_tools(
    settings: Scripts,
    runner: Runner,
    built_in: Tools,
    *,
    reserved: frozenset[str],
    variables: Mapping[str, str],
) -> Found:
    """Read and describe all Lua tools. `built_in` are the tools that scripts may call."""
    places, problems = await anyio.to_thread.run_sync(_places, settings)
    late = Problem("", f"was not loaded within {LOAD_ALL_SECONDS:g} seconds")
    described: list[ScriptTool | Problem] = [replace(late, path=str(path)) for path, _ in places]
    limiter = anyio.CapacityLimiter(KEPT)

    async def describe(position: int, path: Path, entry: ScriptEntry | None) -> None:
        async with limiter:
            found = await _describe(path, entry, settings, runner, built_in, variables)
            described[position] = found

    with anyio.move_on_after(LOAD_ALL_SECONDS):
        async with anyio.create_task_group() as tasks:
            for position, (path, entry) in enumerate(places):
                tasks.start_soon(describe, position, path, entry)
    tools: dict[str, ScriptTool] = {}
    for found in sorted(described, key=_order):
        if isinstance(found, Problem):
            problems.append(found)
            continue
        name = found.spec.name
        if name in reserved:
            reason = f"the name {name} belongs to a built-in tool"
        elif name in tools:
            reason = f"the name {name} is taken by {tools[name].script.path.name}"
        else:
            tools[name] = found
            continue
        problems.append(Problem(str(found.script.path), reason))
    for problem in problems:
        log.warning("script.unusable", path=problem.path, reason=problem.reason)
    return Found(tools=list(tools.values()), problems=problems)


def _order(found: ScriptTool | Problem) -> tuple[bool, str, str]:
    """Entries of the config file come first, so that they win over files of the same name."""
    if isinstance(found, Problem):
        return True, "", found.path
    return not found.script.name, found.spec.name, str(found.script.path)


def _places(settings: Scripts) -> tuple[list[tuple[Path, ScriptEntry | None]], list[Problem]]:
    """The files to load. Blocks."""
    places: list[tuple[Path, ScriptEntry | None]] = [
        (settings.path_of(entry), entry) for entry in settings.tools
    ]
    problems: list[Problem] = []
    taken = {path for path, _ in places}
    if settings.dir is not None:
        try:
            files = sorted(path for path in settings.dir.iterdir() if path.suffix == ".lua")
        except OSError as error:
            problems.append(Problem(str(settings.dir), f"tools.dir: {error.strerror}"))
            files = []
        if len(files) > MOST_FILES:
            problems.append(Problem(str(settings.dir), f"only {MOST_FILES} scripts are loaded"))
        places += [(path, None) for path in files[:MOST_FILES] if path not in taken]
    return places, problems


def watched(settings: Scripts) -> list[tuple[str, int, int, int]]:
    """A value that changes when a script is added, changed or removed. Blocks."""
    paths = [path for path, _ in _places(settings)[0]]
    return signature([*paths, *(settings.path_of(agent) for agent in settings.agents)])


async def _describe(
    path: Path,
    entry: ScriptEntry | None,
    settings: Scripts,
    runner: Runner,
    built_in: Tools,
    variables: Mapping[str, str],
) -> ScriptTool | Problem:
    try:
        script = await anyio.to_thread.run_sync(
            read_script, path, "tool", settings, entry, variables
        )
        table = await describe_script(script, runner)
        return ScriptTool(script=script, spec=_spec(script, table, runner, built_in))
    except (ScriptUnreadable, ScriptFailed, ScriptTimedOut, Misdeclared) as error:
        return Problem(str(path), str(error))


async def describe_script(script: Script, runner: Runner) -> dict[str, Any]:
    """The table that a script sets, without its functions."""
    run = script.run("", [], runner.limits)
    run = replace(run, seconds=min(LOAD_SECONDS, script.seconds))
    finished = await runner.run(run, ScriptHost(script, no_memory), _ignore)
    table = msgspec.json.decode(finished.result)
    return cast("dict[str, Any]", table) if isinstance(table, dict) else {}


def _ignore(_note: Note) -> None:
    """Log lines of a script that is only described are dropped."""


def _spec(script: Script, table: dict[str, Any], runner: Runner, built_in: Tools) -> ToolSpec:
    name = script.name or table.get("name") or script.path.stem
    if not isinstance(name, str) or NAME.fullmatch(name) is None:
        raise Misdeclared(f"name: {NAME_RULE}")
    description = table.get("description")
    if not isinstance(description, str) or not description.strip():
        description = f"Lua tool: {name}"
    parameters = read_parameters(table.get("parameters"))
    return ToolSpec(
        name=name,
        description=description.strip()[:_DESCRIPTION_CHARACTERS],
        run=partial(_call, script, name, runner, built_in),
        arguments=arguments_type(parameters),
        input_schema=schema(parameters),
        output=ScriptOutput,
        is_built_in=False,
        # Scripts cannot write to a bank. Only HTTP has effects, outside of recalld.
        read_only=not script.hosts,
        is_open_world=bool(script.hosts),
        task_after=LONG_CALL_SECONDS,
    )


async def _call(
    script: Script,
    name: str,
    runner: Runner,
    built_in: Tools,
    arguments: Struct,
    context: Context,
) -> CallToolResult:
    def listen(note: Note) -> None:
        log_note(name, note)

    memory = memory_of(built_in, context)
    finished = await call_tool(script, as_table(arguments), runner, memory, listen)
    return answer(finished.result)


async def call_tool(
    script: Script, arguments: dict[str, Any], runner: Runner, memory: Memory, listen: Listen
) -> Finished:
    """Run `tool.execute(arguments, context)`."""
    run = script.run("execute", [arguments], runner.limits)
    return await runner.run(run, ScriptHost(script, memory), listen)


#: The numbers of structlog's levels.
_LEVELS: Final = {"debug": 10, "info": 20, "warning": 30, "error": 40}


def log_note(name: str, note: Note) -> None:
    """Write a line of a script to the log."""
    log.log(_LEVELS[note.level], "script.log", tool=name, text=note.text)


def answer(result: bytes) -> CallToolResult:
    """The result of a script as an MCP result: `{"result": …}`, and the value itself as text."""
    value = msgspec.json.decode(result)  # the process is not trusted to send JSON
    text = value if isinstance(value, str) else _encoder.encode(value).decode()
    body = _encoder.encode({"result": value})
    return CallToolResult(content=[TextContent(text=text)], structured_content=Raw(body))

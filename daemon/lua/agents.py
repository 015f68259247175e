"""Agents: named system prompts with the tools they use, fixed in the settings or made by a script.

An agent is an MCP prompt, and an entry of `GET /agents/list`. Asking for its prompt is a call of a
tool that is not listed, so arguments, rights and limits are those of any tool. A script agent sets
the global table `agent` and defines `agent.resolve(arguments, config, context)`.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, cast

import anyio.to_thread
import msgspec
import structlog
from msgspec import Struct

from daemon.config.scripts import InlineAgent, ScriptEntry, Scripts
from daemon.lua.host import ScriptHost, Tools, memory_of
from daemon.lua.parameters import (
    Misdeclared,
    Parameter,
    arguments_type,
    as_table,
    read_parameters,
    schema,
)
from daemon.lua.runner import Runner
from daemon.lua.sandbox.messages import Note
from daemon.lua.script import Script, ScriptUnreadable, read_script
from daemon.lua.script_tools import Problem, describe_script, log_note
from daemon.tools.bound_tool import BoundTool
from daemon.tools.context import Context
from daemon.tools.dialect import Dialect
from daemon.tools.errors import ScriptFailed, ScriptTimedOut
from daemon.tools.specification import ToolSpec
from daemon.tools.surface import Agent, AgentArgument

log: Final = structlog.get_logger()


class Message(Struct, frozen=True, kw_only=True):
    role: Literal["user", "assistant", "system"]
    content: str


class AgentPrompt(Struct, frozen=True, kw_only=True):
    """The prompt of an agent, ready for use."""

    system: str
    tools: list[str]
    messages: list[Message] = []


class OfferedAgent(Struct, frozen=True, kw_only=True, eq=False):
    """An agent and the tool that makes its prompt."""

    about: Agent
    tool: BoundTool


class FoundAgents(Struct, frozen=True, kw_only=True):
    agents: Sequence[OfferedAgent] = ()
    problems: Sequence[Problem] = ()


async def find_agents(
    settings: Scripts,
    runner: Runner,
    built_in: Tools,
    dialect: Dialect,
    *,
    reserved: frozenset[str],
    variables: Mapping[str, str],
) -> FoundAgents:
    """Read all agents. `reserved` are the names of built-in prompts."""
    found: dict[str, OfferedAgent] = {}
    problems: list[Problem] = []
    for inline in settings.inline_agents:
        found[inline.name] = _fixed(inline, dialect)
    for entry in settings.agents:
        path = settings.path_of(entry)
        try:
            if entry.name in found:
                raise ScriptUnreadable(f"the name {entry.name} is taken by an inline agent")
            found[entry.name] = await _described(
                path, entry, settings, runner, built_in, dialect, variables
            )
        except (ScriptUnreadable, ScriptFailed, ScriptTimedOut, Misdeclared) as error:
            problems.append(Problem(str(path), str(error)))
    for name in reserved & set(found):
        del found[name]
        problems.append(Problem(f"agents.{name}", f"the name {name} belongs to a built-in prompt"))
    for problem in problems:
        log.warning("script.unusable", path=problem.path, reason=problem.reason)
    return FoundAgents(agents=[found[name] for name in sorted(found)], problems=problems)


def _fixed(agent: InlineAgent, dialect: Dialect) -> OfferedAgent:
    prompt = AgentPrompt(system=agent.system_prompt, tools=list(agent.tools))

    def resolve(_arguments: Struct, _context: Context) -> AgentPrompt:
        return prompt

    about = Agent(
        name=agent.name, description=agent.description, tools=list(agent.tools), source="toml"
    )
    return OfferedAgent(about=about, tool=_tool(about, [], resolve, dialect))


async def _described(
    path: Path,
    entry: ScriptEntry,
    settings: Scripts,
    runner: Runner,
    built_in: Tools,
    dialect: Dialect,
    variables: Mapping[str, str],
) -> OfferedAgent:
    script = await anyio.to_thread.run_sync(read_script, path, "agent", settings, entry, variables)
    table = await describe_script(script, runner)
    parameters = read_parameters(table.get("arguments"))
    description = table.get("description")
    about = Agent(
        name=script.name,
        description=description if isinstance(description, str) else "",
        tools=_names(table.get("tools")),
        source="lua",
        arguments=[
            AgentArgument(name=each.name, description=each.description, required=each.required)
            for each in parameters
        ],
    )
    resolve = partial(_resolve, script, about, runner, built_in)
    return OfferedAgent(about=about, tool=_tool(about, parameters, resolve, dialect))


def _tool(about: Agent, parameters: list[Parameter], resolve: Any, dialect: Dialect) -> BoundTool:
    spec = ToolSpec(
        name=about.name,
        description=about.description,
        run=resolve,
        arguments=arguments_type(parameters),
        input_schema=schema(parameters),
        output=AgentPrompt,
        read_only=True,
    )
    return BoundTool(spec, dialect)


async def _resolve(
    script: Script,
    about: Agent,
    runner: Runner,
    built_in: Tools,
    arguments: Struct,
    context: Context,
) -> AgentPrompt:
    def listen(note: Note) -> None:
        log_note(about.name, note)

    run = script.run("resolve", [as_table(arguments)], runner.limits)
    host = ScriptHost(script, memory_of(built_in, context))
    finished = await runner.run(run, host, listen)
    made: Any = msgspec.json.decode(finished.result)
    if isinstance(made, dict):
        made = {"tools": about.tools, **cast("dict[str, Any]", made)}
        for key in ("tools", "messages"):  # an empty Lua table is an object
            made[key] = made.get(key) or []
    try:
        return msgspec.convert(made, AgentPrompt)
    except msgspec.ValidationError as error:
        raise ScriptFailed(f"{script.path.name}: the result of resolve: {error}") from None


def _names(value: Any) -> list[str]:
    return [str(each) for each in cast("list[Any]", value)] if isinstance(value, list) else []

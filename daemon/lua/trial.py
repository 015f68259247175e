"""One run of a tool from the command line, and the list of all tools, without a daemon."""

import os
import time
from pathlib import Path
from typing import Any

import anyio.to_thread
import msgspec
from msgspec import Struct

from daemon.config import Settings
from daemon.config.scripts import ScriptEntry
from daemon.lua.host import Memory
from daemon.lua.parameters import Misdeclared, arguments_type, as_table, read_parameters
from daemon.lua.runner import Runner, ScriptLimits, script_runner
from daemon.lua.sandbox.messages import Note
from daemon.lua.script import Script, ScriptUnreadable, read_script
from daemon.lua.script_tools import Found, call_tool, describe_script, find_tools
from daemon.tools.errors import ScriptFailed, ScriptTimedOut
from protocol.lifecycle import explain


class Trial(Struct, kw_only=True):
    """The outcome of a trial."""

    result: Any = None
    error: str = ""
    seconds: float = 0.0
    memory_bytes: int = 0
    notes: list[str] = []

    def as_object(self) -> dict[str, Any]:
        """The outcome for `--json`."""
        outcome = {"error": self.error} if self.error else {"result": self.result}
        return {**outcome, "seconds": round(self.seconds, 6), "memory_bytes": self.memory_bytes}

    def summary(self) -> str:
        """Time and memory, for people."""
        memory = f", {self.memory_bytes / 1024:.0f} KiB of Lua memory" if self.memory_bytes else ""
        return f"{self.seconds * 1000:.1f} ms{memory}"


def limits_of(settings: Settings) -> ScriptLimits:
    scripts = settings.scripts
    return ScriptLimits(
        memory_bytes=scripts.memory_bytes,
        result_bytes=settings.answer_bytes,
        processes=scripts.processes,
    )


async def try_tool(
    path: Path, arguments: dict[str, Any], settings: Settings, memory: Memory
) -> Trial:
    """Load a tool, check the arguments against its parameters, and run it once."""
    trial = Trial()

    def listen(note: Note) -> None:
        trial.notes.append(f"{note.level}: {note.text}")

    async with script_runner(limits_of(settings)) as runner:
        started = time.monotonic()
        try:
            script = await anyio.to_thread.run_sync(
                read_script, path, "tool", settings.scripts, _entry_of(path, settings), os.environ
            )
            typed = await _checked(script, arguments, runner)
            started = time.monotonic()
            finished = await call_tool(script, typed, runner, memory, listen)
            trial.result = msgspec.json.decode(finished.result)
            trial.memory_bytes = finished.memory_bytes
        except (ScriptFailed, ScriptTimedOut) as error:
            trial.error = str(error)
        except (ScriptUnreadable, Misdeclared) as error:
            trial.error = f"{path}: {error}"
        trial.seconds = time.monotonic() - started
    return trial


def _entry_of(path: Path, settings: Settings) -> ScriptEntry | None:
    """The entry of the config file for this script, so that it has the same rights and config."""
    scripts = settings.scripts
    return next((entry for entry in scripts.tools if scripts.path_of(entry) == path), None)


async def _checked(script: Script, arguments: dict[str, Any], runner: Runner) -> dict[str, Any]:
    """The arguments with defaults, or `Misdeclared`, in the words that a client would get."""
    table = await describe_script(script, runner)
    kind = arguments_type(read_parameters(table.get("parameters")))
    try:
        return as_table(msgspec.convert(arguments, kind))
    except msgspec.ValidationError as error:
        raise Misdeclared(explain(error, kind)) from None


async def find_lua_tools(settings: Settings, reserved: frozenset[str]) -> Found:
    """The Lua tools that the daemon would offer."""
    if not settings.scripts.are_used:
        return Found()
    async with script_runner(limits_of(settings)) as runner:
        return await find_tools(
            settings.scripts, runner, {}, reserved=reserved, variables=os.environ
        )

"""Tables of the config file whose keys are names: `[tools.script.NAME]` and `[agents.KIND.NAME]`.

A table reader takes the place (for error messages) and the raw value and returns typed entries, or
raises `Exit(CONFIG)` with the key and the rule. The bridge loads settings too, so this module uses
the standard library only.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from daemon.config.parsers import names, number, text
from daemon.exit_codes import CONFIG, Exit

LONGEST_SECONDS: Final = 3600.0
#: Names of tools and agents: they appear in URLs, and MCP clients accept no other characters.
NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class ScriptEntry(NamedTuple):
    """One configured script. `seconds`, `hosts` and `environment` are None for the default."""

    name: str
    #: Empty for `NAME.lua` in `tools.dir`.
    path: str = ""
    seconds: float | None = None
    hosts: tuple[str, ...] | None = None
    environment: tuple[str, ...] | None = None
    config: Mapping[str, Any] = {}


class InlineAgent(NamedTuple):
    """One agent with a fixed prompt."""

    name: str
    description: str
    system_prompt: str
    tools: tuple[str, ...] = ()


class Scripts(NamedTuple):
    """All settings about Lua scripts and agents."""

    dir: Path | None
    seconds: float
    memory_bytes: int
    processes: int
    hosts: tuple[str, ...]
    environment: tuple[str, ...]
    tools: tuple[ScriptEntry, ...] = ()
    agents: tuple[ScriptEntry, ...] = ()
    inline_agents: tuple[InlineAgent, ...] = ()
    #: Relative paths start here.
    base: Path = Path()

    @property
    def are_used(self) -> bool:
        return bool(self.dir or self.tools or self.agents)

    def path_of(self, entry: ScriptEntry) -> Path:
        """The file of a script."""
        if entry.path:
            return self.base / Path(entry.path).expanduser()
        return (self.dir or self.base) / f"{entry.name}.lua"


def scripts(place: str, value: Any) -> tuple[ScriptEntry, ...]:
    """Read `[tools.script.NAME]` or `[agents.script.NAME]`."""
    return tuple(_script(f"{place}.{name}", name, entry) for name, entry in _named(place, value))


def inline_agents(place: str, value: Any) -> tuple[InlineAgent, ...]:
    """Read `[agents.inline.NAME]`."""
    return tuple(_agent(f"{place}.{name}", name, entry) for name, entry in _named(place, value))


#: The tables, by the key that precedes the name.
NAMED_TABLES: Final[dict[str, Callable[[str, Any], Any]]] = {
    "tools.script": scripts,
    "agents.script": scripts,
    "agents.inline": inline_agents,
}


def _named(place: str, value: Any) -> list[tuple[str, Mapping[str, Any]]]:
    if not isinstance(value, dict):
        raise Exit(CONFIG, f"{place}: must be a table for each name: [{place.split()[-1]}.NAME]")
    found: list[tuple[str, Mapping[str, Any]]] = []
    for name, entry in cast("dict[str, Any]", value).items():
        if not isinstance(entry, dict):
            raise Exit(CONFIG, f"{place}.{name}: must be a table")
        check_name(f"{place}.{name}", name)
        found.append((name, cast("dict[str, Any]", entry)))
    return found


def check_name(place: str, name: str) -> None:
    if NAME.fullmatch(name) is None:
        raise Exit(
            CONFIG, f"{place}: a name has 1 to 64 letters, digits, hyphens, underscores or dots"
        )


def _script(place: str, name: str, entry: Mapping[str, Any]) -> ScriptEntry:
    known = {"path", "timeout", "allow_hosts", "env", "config"}
    _refuse_unknown(place, entry, known)
    config: Any = entry.get("config", {})
    if not isinstance(config, dict):
        raise Exit(CONFIG, f"{place}.config: must be a table")
    return ScriptEntry(
        name=name,
        path=text(f"{place}.path", entry.get("path", "")),
        seconds=_optional(place, entry, "timeout", number(0.01, LONGEST_SECONDS)),
        hosts=_optional(place, entry, "allow_hosts", names),
        environment=_optional(place, entry, "env", names),
        config=cast("dict[str, Any]", config),
    )


def _agent(place: str, name: str, entry: Mapping[str, Any]) -> InlineAgent:
    _refuse_unknown(place, entry, {"description", "system_prompt", "tools"})
    prompt = text(f"{place}.system_prompt", entry.get("system_prompt", ""))
    if not prompt.strip():
        raise Exit(CONFIG, f"{place}.system_prompt: required")
    return InlineAgent(
        name=name,
        description=text(f"{place}.description", entry.get("description", "")),
        system_prompt=prompt,
        tools=names(f"{place}.tools", entry.get("tools", [])),
    )


def _optional(
    place: str, entry: Mapping[str, Any], key: str, read: Callable[[str, Any], Any]
) -> Any:
    return read(f"{place}.{key}", entry[key]) if key in entry else None


def _refuse_unknown(place: str, entry: Mapping[str, Any], known: set[str]) -> None:
    for key in entry:
        if key not in known:
            import difflib

            close = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise Exit(CONFIG, f"{place}: unknown key {key}{hint}")

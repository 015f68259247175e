"""Tables of the config file whose keys are names: `[tools.script.NAME]` and `[agents.KIND.NAME]`.

A reader takes the place (for error messages) and the raw value and returns typed entries, or raises
`Exit(CONFIG)` with file, line, key and rule. The bridge loads settings too, so this module uses
the standard library only.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from daemon.config.parsers import names, number, text
from daemon.exit_codes import CONFIG, Exit

LONGEST_SECONDS: Final = 3600.0
#: Names of tools and agents: they appear in URLs, and MCP clients accept no other characters.
NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
NAME_RULE: Final = "must have 1 to 64 letters, digits, hyphens, underscores or dots"


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


#: Builds the beginning of an error message from the keys of a place in the file: file, line, key.
Where = Callable[..., str]


def scripts(where: Where, keys: tuple[str, ...], value: Any) -> tuple[ScriptEntry, ...]:
    """Read `[tools.script.NAME]` or `[agents.script.NAME]`."""
    return tuple(_script(where, (*keys, name), entry) for name, entry in named(where, keys, value))


def inline_agents(where: Where, keys: tuple[str, ...], value: Any) -> tuple[InlineAgent, ...]:
    """Read `[agents.inline.NAME]`."""
    return tuple(
        inline_agent(where, (*keys, name), entry) for name, entry in named(where, keys, value)
    )


#: The tables, by the key that precedes the name.
NAMED_TABLES: Final[dict[str, Callable[[Where, tuple[str, ...], Any], Any]]] = {
    "tools.script": scripts,
    "agents.script": scripts,
    "agents.inline": inline_agents,
}


def named(where: Where, keys: tuple[str, ...], value: Any) -> list[tuple[str, Mapping[str, Any]]]:
    """The tables below these keys, by their names."""
    if not isinstance(value, dict):
        raise Exit(CONFIG, f"{where(*keys)}: must be a table; write [{'.'.join(keys)}.NAME]")
    found: list[tuple[str, Mapping[str, Any]]] = []
    for name, entry in cast("dict[str, Any]", value).items():
        if not isinstance(entry, dict):
            raise Exit(CONFIG, f"{where(*keys, name)}: must be a table")
        if NAME.fullmatch(name) is None:
            raise Exit(CONFIG, f"{where(*keys, name)}: {NAME_RULE}")
        found.append((name, cast("dict[str, Any]", entry)))
    return found


def _script(where: Where, keys: tuple[str, ...], entry: Mapping[str, Any]) -> ScriptEntry:
    refuse_unknown(where, keys, entry, ("path", "timeout", "allow_hosts", "env", "config"))
    config: Any = entry.get("config", {})
    if not isinstance(config, dict):
        raise Exit(CONFIG, f"{where(*keys, 'config')}: must be a table")
    return script_entry(where, keys, entry, cast("dict[str, Any]", config))


def script_entry(
    where: Where, keys: tuple[str, ...], entry: Mapping[str, Any], config: Mapping[str, Any]
) -> ScriptEntry:
    """Read the keys of a script, and give it this `config`."""

    def optional(key: str, read: Callable[[str, Any], Any]) -> Any:
        return read(where(*keys, key), entry[key]) if key in entry else None

    return ScriptEntry(
        name=keys[-1],
        path=text(where(*keys, "path"), entry.get("path", "")),
        seconds=optional("timeout", number(0.01, LONGEST_SECONDS)),
        hosts=optional("allow_hosts", names),
        environment=optional("env", names),
        config=config,
    )


def inline_agent(where: Where, keys: tuple[str, ...], entry: Mapping[str, Any]) -> InlineAgent:
    refuse_unknown(where, keys, entry, ("description", "system_prompt", "tools"))
    prompt = text(where(*keys, "system_prompt"), entry.get("system_prompt", ""))
    if not prompt.strip():
        raise Exit(CONFIG, f"{where(*keys)}: system_prompt is required")
    return InlineAgent(
        name=keys[-1],
        description=text(where(*keys, "description"), entry.get("description", "")),
        system_prompt=prompt,
        tools=names(where(*keys, "tools"), entry.get("tools", [])),
    )


def refuse_unknown(
    where: Where, keys: tuple[str, ...], entry: Mapping[str, Any], known: tuple[str, ...]
) -> None:
    for key in entry:
        if key not in known:
            hint = suggestion(key, known)
            raise Exit(CONFIG, f"{where(*keys, key)}: is not a key of this table{hint}")


def suggestion(word: str, known: Iterable[str]) -> str:
    """The end of an error message: the word that may be meant."""
    import difflib

    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f"; did you mean {close[0]}?" if close else ""

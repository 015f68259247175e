"""Loads settings from the TOML file, environment variables and flags.

Flags override variables, and variables override the file. An unknown key in the file is an error.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from daemon.config.directories import find_directories
from daemon.config.scripts import NAMED_TABLES
from daemon.config.settings import Settings
from daemon.config.table import SETTINGS, Setting
from daemon.exit_codes import CONFIG, Exit

PREFIX: Final = "RECALLD_"


def load(flags: Mapping[str, Any], environment: Mapping[str, str]) -> Settings:
    """Load settings from file, environment and flags; `Exit` names the source and the rule."""
    directories = find_directories(environment)
    values, sources = _read_file(directories.config)
    from_environment: dict[str, Any] = {}
    for setting in SETTINGS:
        for variable in reversed(setting.variables):
            if environment.get(variable, ""):
                values[setting.key] = setting.read(variable, environment[variable])
                from_environment[setting.key] = values[setting.key]
        if flags.get(setting.key) is not None:
            flag = "--" + setting.key.rpartition(".")[2].replace("_", "-")
            values[setting.key] = setting.read(flag, flags[setting.key])
    if values.get("server.fixtures"):
        # A conformance run sends more requests per minute than an interactive user.
        values.setdefault("limits.requests_per_minute", 0)
    defaults = {setting.key: setting.default for setting in SETTINGS}
    return Settings(
        directories, defaults | values, from_environment.get("limits.requests_per_minute"), sources
    )


def load_sources(path: Path) -> dict[str, dict[str, Any]]:
    """The sources that the config file defines, for a daemon that reads the file again."""
    return _read_file(path)[1]


def _read_file(path: Path) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The settings in the config file, and the sources that it defines."""
    try:
        text = path.read_bytes().decode()
    except (FileNotFoundError, NotADirectoryError):
        return {}, {}
    except OSError as error:
        raise Exit(CONFIG, f"config file {path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise Exit(CONFIG, f"config file {path}: is not TOML: {error}") from None
    import tomllib

    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Exit(CONFIG, f"config file {path}: is not TOML: {error}") from None
    sources = _read_sources(path, text, tables.pop("sources", {}))
    known = {setting.key: setting for setting in SETTINGS}
    values: dict[str, Any] = {}
    for section, entries in tables.items():
        if not isinstance(entries, dict):
            raise _unknown(path, section, known)
        for name, value in cast("dict[str, Any]", entries).items():
            key = f"{section}.{name}"
            if key in NAMED_TABLES:
                where = partial(_where, path, text)
                values[key] = NAMED_TABLES[key](where, (section, name), value)
                continue
            if key not in known:
                raise _unknown(path, key, known)
            values[key] = known[key].read(f"config file {path}: {key}", value)
    return values, sources


def _read_sources(path: Path, text: str, tables: Any) -> dict[str, dict[str, Any]]:
    """The definitions under `[sources]`; a mistake is reported with its line."""
    if not tables:
        return {}
    from daemon.config.sources import Mistake, check_definition, check_name
    from daemon.config.toml_lines import line_of

    found: dict[str, dict[str, Any]] = {}
    name = ""
    try:
        if not isinstance(tables, dict):
            raise Mistake("", "must be a table; write [sources.NAME]")
        for name, definition in cast("dict[str, Any]", tables).items():
            found[check_name(name)] = check_definition(definition)
    except Mistake as mistake:
        keys = [part for part in ("sources", name, mistake.key) if part]
        hint = suggestion(mistake.wrong, mistake.candidates, 0.5)
        line = line_of(text, keys)
        where = f"config file {path}: line {line}: {'.'.join(keys)}"
        raise Exit(CONFIG, f"{where}: {mistake.rule}{hint}") from None
    return found


def _where(path: Path, text: str, *keys: str) -> str:
    """A place in the config file, for an error message."""
    from daemon.config.toml_lines import line_of

    return f"config file {path}: line {line_of(text, keys)}: {'.'.join(keys)}"


def _unknown(path: Path, key: str, known: Mapping[str, Setting]) -> Exit:
    hint = suggestion(key, known, 0.4)
    return Exit(CONFIG, f"config file {path}: unknown setting {key}{hint}")


def unknown_variables(environment: Mapping[str, str]) -> list[str]:
    """Return a warning for each variable that starts with `RECALLD_` and is not a setting.

    In the file an unknown setting is an error. The environment is inherited and may be meant for
    another version, so a warning is enough.
    """
    known = {"RECALLD_HOME", *(name for setting in SETTINGS for name in setting.variables)}
    unknown = (name for name in environment if name.startswith(PREFIX) and name not in known)
    candidates = [name.removeprefix(PREFIX) for name in known if name.startswith(PREFIX)]
    return [
        f"{name}: is set, but recalld has no such variable"
        + suggestion(name.removeprefix(PREFIX), candidates, 0.6, PREFIX)
        for name in sorted(unknown)
    ]


def suggestion(name: str, known: Iterable[str], cutoff: float, prefix: str = "") -> str:
    import difflib

    close = difflib.get_close_matches(name, known, n=1, cutoff=cutoff)
    return f"; did you mean {prefix}{close[0]}?" if close else ""


class Effective(NamedTuple):
    """A setting, its value and the place it comes from."""

    key: str
    value: Any
    origin: str


def effective(environment: Mapping[str, str]) -> list[Effective]:
    """Every setting without flags, with its origin: default, config file or a variable."""
    path = find_directories(environment).config
    from_file, _ = _read_file(path)
    found: list[Effective] = []
    for setting in SETTINGS:
        value, origin = setting.default, "default"
        if setting.key in from_file:
            value, origin = from_file[setting.key], str(path)
        for variable in reversed(setting.variables):
            if environment.get(variable, ""):
                value, origin = setting.read(variable, environment[variable]), variable
        found.append(Effective(setting.key, value, origin))
    return found

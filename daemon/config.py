"""Settings: a TOML file, then the environment, then flags, in that order of rising precedence.

Every setting is a row of `SETTINGS`; unknown keys are errors with a suggestion. This module is
imported by the bridge and the health probe, which must start at once: standard library only, and
nothing heavy of it.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from daemon.dialect_names import chosen
from daemon.exit_codes import CONFIG, Exit


class Setting(NamedTuple):
    """One setting: its name in the file (`section.key`), its variables, default and reader."""

    key: str
    variables: tuple[str, ...]
    default: Any
    read: Callable[[str, Any], Any]
    about: str


def _integer(low: int, high: int) -> Callable[[str, Any], int]:
    def read(name: str, value: Any) -> int:
        try:
            number = int(str(value), 10) if not isinstance(value, bool) else None
        except ValueError:
            number = None
        if number is None or not low <= number <= high:
            raise Exit(CONFIG, f"{name}: {value!r} is not a whole number from {low} to {high}")
        return number

    return read


def _number(low: float, high: float) -> Callable[[str, Any], float]:
    def read(name: str, value: Any) -> float:
        try:
            number = float(str(value)) if not isinstance(value, bool) else None
        except ValueError:
            number = None
        if number is None or not low <= number <= high:
            raise Exit(CONFIG, f"{name}: {value!r} is not a number from {low:g} to {high:g}")
        return number

    return read


def _choice(*allowed: str) -> Callable[[str, Any], str]:
    def read(name: str, value: Any) -> str:
        if value not in allowed:
            raise Exit(CONFIG, f"{name}: {value!r} is not one of {', '.join(allowed)}")
        return str(value)

    return read


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise Exit(CONFIG, f"{name}: {value!r} is not text")
    return value


def _names(name: str, value: Any) -> tuple[str, ...]:
    """A list of words: an array in the file, comma-separated elsewhere."""
    parts: Any = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, (list, tuple)) or not all(
        isinstance(part, str) for part in cast("list[object]", parts)
    ):
        raise Exit(CONFIG, f"{name}: {value!r} is not a list of names")
    words = [part.strip() for part in cast("list[str]", parts)]
    return tuple(word for word in words if word)


def _dialects(name: str, value: Any) -> str:
    names = _text(name, value)
    try:
        chosen(names)
    except LookupError as error:
        raise Exit(CONFIG, f"{name}: {str(error.args[0]).removeprefix('dialects: ')}") from None
    return names


def _flag(name: str, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).lower()
    if word in ("1", "true", "yes", "on"):
        return True
    if word in ("0", "false", "no", "off"):
        return False
    raise Exit(CONFIG, f"{name}: {value!r} is neither true nor false")


MIB: Final = 1024 * 1024
PREFIX: Final = "RECALLD_"

SETTINGS: Final = (
    Setting(
        "limits.requests_per_minute",
        ("RECALLD_RATE_LIMIT", "CLAUDE_RECALL_RATE_LIMIT"),
        100,
        _integer(0, 1_000_000),
        "requests a minute a session; 0 turns the limiter off",
    ),
    Setting(
        "limits.frame_bytes",
        ("RECALLD_FRAME_BYTES",),
        4 * MIB,
        _integer(1024, 256 * MIB),
        "the longest message accepted, in bytes",
    ),
    Setting(
        "limits.in_flight",
        ("RECALLD_IN_FLIGHT",),
        256,
        _integer(1, 100_000),
        "calls at once on one connection; one more is an error",
    ),
    Setting(
        "limits.in_flight_total",
        ("RECALLD_IN_FLIGHT_TOTAL",),
        4096,
        _integer(1, 1_000_000),
        "calls at once in all",
    ),
    Setting(
        "limits.connections",
        ("RECALLD_CONNECTIONS",),
        1000,
        _integer(1, 100_000),
        "socket connections at once; one more is closed with an error",
    ),
    Setting(
        "limits.output_bytes",
        ("RECALLD_OUTPUT_BYTES",),
        MIB,
        _integer(4096, 256 * MIB),
        "answers waiting for a slow reader before its requests are no longer read",
    ),
    Setting(
        "limits.answer_bytes",
        ("RECALLD_ANSWER_BYTES",),
        4 * MIB,
        _integer(4096, 256 * MIB),
        "JSON of one answer to a read-only tool call; longer lists are cut, other answers refused",
    ),
    Setting(
        "daemon.idle_seconds",
        ("RECALLD_IDLE_SECONDS",),
        600.0,
        _number(0, 86_400 * 365),
        "a daemon started by `recalld stdio` exits after this time with nobody attached",
    ),
    Setting(
        "daemon.start_seconds",
        ("RECALLD_START_SECONDS",),
        10.0,
        _number(0.1, 3600),
        "how long `stdio` waits for a daemon, and `stdio --embedded` or `bank` for the directory",
    ),
    Setting(
        "sessions.idle_days",
        ("RECALLD_SESSION_IDLE_DAYS",),
        30.0,
        _number(0.00001, 3650),
        "a session not seen for this long is forgotten; fractions are fine",
    ),
    Setting(
        "sessions.keep",
        ("RECALLD_SESSIONS_KEEP",),
        1000,
        _integer(1, 1_000_000),
        "how many other sessions are kept; the longest unseen go first",
    ),
    Setting(
        "limits.http_sessions",
        ("RECALLD_HTTP_SESSIONS",),
        200,
        _integer(1, 100_000),
        "legacy HTTP sessions a token (or the owner) may have; one more ends the longest unseen",
    ),
    Setting(
        "log.level",
        ("RECALLD_LOG_LEVEL",),
        "info",
        _choice("debug", "info", "warning", "error"),
        "what goes to the log; debug has a line a call",
    ),
    Setting(
        "server.socket",
        ("RECALLD_SOCKET",),
        "",
        _text,
        "the unix socket; by default recalld.sock in the runtime directory",
    ),
    Setting(
        "server.bind",
        ("RECALLD_BIND",),
        "127.0.0.1:7331",
        _text,
        "where `recalld serve` opens HTTP",
    ),
    Setting(
        "server.hosts",
        ("RECALLD_HOSTS",),
        tuple[str, ...](),
        _names,
        "Host headers served besides this machine's own names, as in `memory.lan:7331`",
    ),
    Setting(
        "server.cors_origins",
        ("RECALLD_CORS_ORIGINS",),
        tuple[str, ...](),
        _names,
        "origins whose pages may ask, besides this machine's own; `*` is every page there is",
    ),
    Setting(
        "server.token_file",
        ("RECALLD_TOKEN_FILE",),
        "",
        _text,
        "bearer tokens for HTTP; without one only this machine can connect, as the owner",
    ),
    Setting(
        "server.mcp",
        ("RECALLD_MCP", "HINDSIGHT_API_MCP_ENABLED"),
        True,
        _flag,
        "serve MCP over HTTP; false leaves REST",
    ),
    Setting(
        "limits.call_seconds",
        ("RECALLD_CALL_SECONDS",),
        60.0,
        _number(0.01, 3600),
        "how long a REST call may take before it is answered with 408",
    ),
    Setting(
        "server.dialects",
        ("RECALLD_DIALECTS",),
        "",
        _dialects,
        "comma-separated tool surfaces to serve; all by default",
    ),
    Setting(
        "server.bank",
        ("RECALLD_BANK", "AWARENESS_MEMORY_ID"),
        "",
        _text,
        "the bank for tools that name none; `auto` keys by git repository",
    ),
    Setting(
        "retrieval.final_limit",
        ("RECALLD_FINAL_LIMIT",),
        12,
        _integer(1, 1000),
        "how many documents harness `search` answers when no limit is given",
    ),
    Setting(
        "embedding.url",
        ("RECALLD_EMBEDDING_URL",),
        "",
        _text,
        "an OpenAI-style embeddings resource to use instead of the installed model;"
        " all that is stored and asked is sent there",
    ),
    Setting(
        "embedding.model",
        ("RECALLD_EMBEDDING_MODEL",),
        "",
        _text,
        "the model to ask that endpoint for; required with `embedding.url`",
    ),
    Setting(
        "embedding.dims",
        ("RECALLD_EMBEDDING_DIMS",),
        0,
        _integer(0, 16_384),
        "how many numbers its vectors have; required with `embedding.url`",
    ),
    Setting(
        "embedding.key",
        ("RECALLD_EMBEDDING_KEY",),
        "",
        _text,
        "the bearer key for that endpoint; none by default",
    ),
    Setting(
        "embedding.file",
        ("RECALLD_EMBEDDING_FILE",),
        "",
        _text,
        "a model file of your own, laid out as the installed one",
    ),
    Setting(
        "embedding.hashed",
        ("RECALLD_EMBEDDING_HASHED",),
        False,
        _flag,
        "no model at all: vectors know spelling, not meaning, and take next to no memory",
    ),
    Setting(
        "server.api_key",
        ("RECALLD_API_KEY",),
        "",
        _text,
        "the api_key that awareness_get_agent_prompt asks for; none by default",
    ),
    Setting(
        "server.fixtures",
        ("RECALLD_FIXTURES",),
        False,
        _flag,
        "serve the test fixtures instead of memory tools; no rate limit then unless one is set",
    ),
)


class Directories(NamedTuple):
    """Where things live: `RECALLD_HOME` holds all of it, else the XDG directories do."""

    config: Path
    data: Path
    state: Path
    runtime: Path


class Embedding(NamedTuple):
    """Which embedder to use: the installed one when nothing is said."""

    url: str = ""
    model: str = ""
    dims: int = 0
    key: str = ""
    file: str = ""
    hashed: bool = False


class Settings:
    """All settings, by the last part of their key, and the directories."""

    def __init__(self, directories: Directories, values: Mapping[str, Any]) -> None:
        self.directories = directories
        self._values = dict(values)
        self.requests_per_minute: int = values["limits.requests_per_minute"]
        self.frame_bytes: int = values["limits.frame_bytes"]
        self.in_flight: int = values["limits.in_flight"]
        self.in_flight_total: int = values["limits.in_flight_total"]
        self.connections: int = values["limits.connections"]
        self.output_bytes: int = values["limits.output_bytes"]
        self.answer_bytes: int = values["limits.answer_bytes"]
        self.idle_seconds: float = values["daemon.idle_seconds"]
        self.start_seconds: float = values["daemon.start_seconds"]
        self.session_idle_days: float = values["sessions.idle_days"]
        self.sessions_keep: int = values["sessions.keep"]
        self.http_sessions: int = values["limits.http_sessions"]
        self.log_level: str = values["log.level"]
        self.bind: str = values["server.bind"]
        self.hosts: tuple[str, ...] = values["server.hosts"]
        self.cors_origins: tuple[str, ...] = values["server.cors_origins"]
        token_file: str = values["server.token_file"]
        self.token_file = Path(token_file).expanduser().absolute() if token_file else None
        self.mcp: bool = values["server.mcp"]
        self.call_seconds: float = values["limits.call_seconds"]
        self.dialects: str = values["server.dialects"]
        self.final_limit: int = values["retrieval.final_limit"]
        self.embedding = _embedding(values)
        self.bank: str = values["server.bank"]
        self.api_key: str = values["server.api_key"]
        self.fixtures: bool = values["server.fixtures"]
        self.socket = socket_path(directories, values["server.socket"])
        #: Whether it is where we would put it, in a directory of our own.
        self.is_socket_ours = self.socket.parent == socket_path(directories, "").parent

    @property
    def lock(self) -> Path:
        """Held by whoever owns the data directory, for life."""
        return self.directories.data / "daemon.lock"

    @property
    def start_lock(self) -> Path:
        """Held while a daemon is being started, so that one is."""
        return self.directories.state / "start.lock"

    @property
    def log_file(self) -> Path:
        """Where a daemon that `recalld stdio` started writes its log."""
        return self.directories.state / "daemon.log"


def load(flags: Mapping[str, Any], environment: Mapping[str, str]) -> Settings:
    """Settings from file, environment and flags; `Exit` names what is wrong and where."""
    directories = find_directories(environment)
    values: dict[str, Any] = dict(_from_file(directories.config))
    for setting in SETTINGS:
        for variable in reversed(setting.variables):
            if environment.get(variable, ""):
                values[setting.key] = setting.read(variable, environment[variable])
        if flags.get(setting.key) is not None:
            flag = "--" + setting.key.rpartition(".")[2].replace("_", "-")
            values[setting.key] = setting.read(flag, flags[setting.key])
    if values.get("server.fixtures"):
        # A conformance run asks more in a minute than anybody at a keyboard.
        values.setdefault("limits.requests_per_minute", 0)
    return Settings(directories, {setting.key: setting.default for setting in SETTINGS} | values)


def _embedding(values: Mapping[str, Any]) -> Embedding:
    """The embedder's settings, if they say one thing and all of it."""
    chosen = Embedding(*(values[f"embedding.{name}"] for name in Embedding._fields))
    ways = [name for name in ("url", "file", "hashed") if getattr(chosen, name)]
    if len(ways) > 1:
        raise Exit(CONFIG, f"embedding.{ways[0]} and embedding.{ways[1]}: choose one of them")
    for name in ("model", "dims"):
        if chosen.url and not getattr(chosen, name):
            raise Exit(CONFIG, f"embedding.{name}: required with embedding.url")
    for name in ("model", "dims", "key"):
        if not chosen.url and getattr(chosen, name):
            raise Exit(CONFIG, f"embedding.{name}: of no use without embedding.url")
    return chosen


def find_directories(environment: Mapping[str, str]) -> Directories:
    home = environment.get("RECALLD_HOME", "")
    if home:
        root = Path(home).expanduser().absolute()
        return Directories(root / "config.toml", root / "data", root / "state", root / "run")
    user = Path(environment.get("HOME") or Path.home())

    def xdg(variable: str, fallback: str) -> Path:
        value = environment.get(variable, "")
        return (Path(value) if value.startswith("/") else user / fallback) / "recalld"

    runtime = environment.get("XDG_RUNTIME_DIR", "")
    state = xdg("XDG_STATE_HOME", ".local/state")
    return Directories(
        xdg("XDG_CONFIG_HOME", ".config") / "config.toml",
        xdg("XDG_DATA_HOME", ".local/share"),
        state,
        Path(runtime) / "recalld" if runtime.startswith("/") else state / "run",
    )


#: A unix socket path is at most 107 bytes; past this we move to a short directory of our own.
LONGEST_SOCKET_PATH: Final = 100


def socket_path(directories: Directories, configured: str) -> Path:
    """The socket: as configured, else in the runtime directory, else somewhere short."""
    if configured:
        return Path(configured).expanduser().absolute()
    path = directories.runtime / "recalld.sock"
    if len(os.fsencode(path)) <= LONGEST_SOCKET_PATH:
        return path
    import hashlib  # only for unusually deep directories

    name = hashlib.blake2b(os.fsencode(directories.runtime), digest_size=8).hexdigest()
    return Path("/tmp") / f"recalld-{os.getuid()}" / f"{name}.sock"


def _from_file(path: Path) -> dict[str, Any]:
    try:
        text = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise Exit(CONFIG, f"config file {path}: cannot be read: {error.strerror}") from None
    import tomllib

    try:
        tables = tomllib.loads(text.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Exit(CONFIG, f"config file {path}: is not TOML: {error}") from None
    known = {setting.key: setting for setting in SETTINGS}
    values: dict[str, Any] = {}
    for section, entries in tables.items():
        if not isinstance(entries, dict):
            raise _unknown(path, section, known)
        for name, value in cast("dict[str, Any]", entries).items():
            key = f"{section}.{name}"
            if key not in known:
                raise _unknown(path, key, known)
            values[key] = known[key].read(f"config file {path}: {key}", value)
    return values


def _unknown(path: Path, key: str, known: Mapping[str, Setting]) -> Exit:
    hint = _suggestion(key, known, 0.4)
    return Exit(CONFIG, f"config file {path}: unknown setting {key}{hint}")


def unknown_variables(environment: Mapping[str, str]) -> list[str]:
    """A remark for each variable that is called like ours and is none.

    Not an error, as in the file: an environment is inherited, and may be meant for another version.
    """
    known = {"RECALLD_HOME", *(name for setting in SETTINGS for name in setting.variables)}
    strange = (name for name in environment if name.startswith(PREFIX) and name not in known)
    ours = [name.removeprefix(PREFIX) for name in known if name.startswith(PREFIX)]
    return [
        f"{name}: is set, and is no variable of recalld's"
        + _suggestion(name.removeprefix(PREFIX), ours, 0.6, PREFIX)
        for name in sorted(strange)
    ]


def _suggestion(name: str, known: Iterable[str], cutoff: float, prefix: str = "") -> str:
    import difflib

    close = difflib.get_close_matches(name, known, n=1, cutoff=cutoff)
    return f"; did you mean {prefix}{close[0]}?" if close else ""

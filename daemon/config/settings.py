"""The values of all settings, typed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from daemon.config.directories import Directories, socket_path
from daemon.config.scripts import Scripts
from daemon.exit_codes import CONFIG, Exit


class Embedding(NamedTuple):
    """The choice of embedder; the installed model when every field is empty."""

    url: str = ""
    model: str = ""
    dims: int = 0
    key: str = ""
    file: str = ""
    hashed: bool = False


class Storage(NamedTuple):
    """Where banks are stored: in the data directory, unless `url` names a server."""

    url: str = ""
    read_url: str = ""
    password_file: str = ""
    pooler: bool = False
    vector_bytes: int = 512 * 1024 * 1024

    def password(self) -> str | None:
        """The password in the file; None if there is no file."""
        if not self.password_file:
            return None
        path = Path(self.password_file).expanduser()
        try:
            return path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "is not UTF-8"
            raise Exit(CONFIG, f"storage.password_file {path}: {reason}") from None


class Settings:
    """The values of all settings, and the directories."""

    def __init__(
        self,
        directories: Directories,
        values: Mapping[str, Any],
        client_rate_limit: int | None = None,
        sources: Mapping[str, dict[str, Any]] | None = None,
    ) -> None:
        self.directories = directories
        #: The definitions under `[sources]`, by name; see `daemon.config.sources`.
        self.sources = dict(sources or {})
        self.requests_per_minute: int = values["limits.requests_per_minute"]
        #: The rate limit in the environment of this process; None if there is none. A bridge sends
        #: it to the daemon, which applies it to the session of this bridge only.
        self.client_rate_limit = client_rate_limit
        self.principal_requests_per_minute: int = values["limits.principal_requests_per_minute"]
        self.frame_bytes: int = values["limits.frame_bytes"]
        self.in_flight: int = values["limits.in_flight"]
        self.in_flight_total: int = values["limits.in_flight_total"]
        self.wait_seconds: float = values["limits.wait_seconds"]
        self.connections: int = values["limits.connections"]
        self.output_bytes: int = values["limits.output_bytes"]
        self.unsent_bytes: int = values["limits.unsent_bytes"]
        self.unsent_bytes_total: int = values["limits.unsent_bytes_total"]
        self.answer_bytes: int = values["limits.answer_bytes"]
        self.idle_seconds: float = values["daemon.idle_seconds"]
        self.start_seconds: float = values["daemon.start_seconds"]
        self.session_idle_days: float = values["sessions.idle_days"]
        self.session_resume_seconds: float = values["sessions.resume_seconds"]
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
        self.embedding = _read_embedding(values)
        self.storage = _read_storage(values)
        self.scripts = _read_scripts(directories, values)
        self.bank: str = values["server.bank"]
        self.api_key: str = values["server.api_key"]
        self.skill_banks: tuple[str, ...] = values["server.skill_banks"]
        self.fixtures: bool = values["server.fixtures"]
        self.socket = socket_path(directories, values["server.socket"])
        #: Whether the socket is in a directory that recalld creates and keeps private.
        self.is_socket_private = self.socket.parent == socket_path(directories, "").parent

    @property
    def lock(self) -> Path:
        """Lock file of the process that owns the data directory, held until it exits."""
        return self.directories.data / "daemon.lock"

    @property
    def start_lock(self) -> Path:
        """Lock file that is held while a daemon starts, so that only one is started."""
        return self.directories.state / "start.lock"

    @property
    def log_file(self) -> Path:
        """Log file of a daemon that `recalld stdio` started."""
        return self.directories.state / "daemon.log"


def _read_scripts(directories: Directories, values: Mapping[str, Any]) -> Scripts:
    base = directories.config.parent
    folder: str = values["tools.dir"]
    return Scripts(
        dir=base / Path(folder).expanduser() if folder else None,
        seconds=values["tools.timeout"],
        memory_bytes=values["tools.memory_mb"] * 1024 * 1024,
        processes=values["tools.processes"],
        hosts=values["tools.allow_hosts"],
        environment=values["tools.env"],
        tools=values.get("tools.script", ()),
        agents=values.get("agents.script", ()),
        inline_agents=values.get("agents.inline", ()),
        base=base,
    )


def _read_storage(values: Mapping[str, Any]) -> Storage:
    chosen = Storage(*(values[f"storage.{name}"] for name in Storage._fields))
    for name in ("url", "read_url"):
        address: str = getattr(chosen, name)
        if address and address.partition("://")[0] not in ("postgresql", "postgres"):
            raise Exit(CONFIG, f"storage.{name}: must start with postgresql://")
    for name in ("read_url", "password_file"):
        if not chosen.url and getattr(chosen, name):
            raise Exit(CONFIG, f"storage.{name}: of no use without storage.url")
    return chosen


def _read_embedding(values: Mapping[str, Any]) -> Embedding:
    """Read the embedder settings; raises `Exit` when they conflict or are incomplete."""
    chosen = Embedding(*(values[f"embedding.{name}"] for name in Embedding._fields))
    sources = [name for name in ("url", "file", "hashed") if getattr(chosen, name)]
    if len(sources) > 1:
        raise Exit(CONFIG, f"embedding.{sources[0]} and embedding.{sources[1]}: choose one of them")
    for name in ("model", "dims"):
        if chosen.url and not getattr(chosen, name):
            raise Exit(CONFIG, f"embedding.{name}: required with embedding.url")
    for name in ("model", "dims", "key"):
        if not chosen.url and getattr(chosen, name):
            raise Exit(CONFIG, f"embedding.{name}: of no use without embedding.url")
    return chosen

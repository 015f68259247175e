"""The locations of recalld's files: config, data, state, runtime directory and socket."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple


class Directories(NamedTuple):
    """The config file and the data, state and runtime directories."""

    config: Path
    data: Path
    state: Path
    runtime: Path


def find_directories(environment: Mapping[str, str]) -> Directories:
    """Return the directories below `RECALLD_HOME` if it is set, else the XDG directories."""
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


#: Longest default socket path. Linux allows 107 bytes; a longer path moves to a directory in /tmp.
LONGEST_SOCKET_PATH: Final = 100


def socket_path(directories: Directories, configured: str) -> Path:
    """Return the configured path, else one in the runtime directory, else a short one in /tmp."""
    if configured:
        return Path(configured).expanduser().absolute()
    path = directories.runtime / "recalld.sock"
    if len(os.fsencode(path)) <= LONGEST_SOCKET_PATH:
        return path
    import hashlib  # imported late: needed for unusually deep directories only

    name = hashlib.blake2b(os.fsencode(directories.runtime), digest_size=8).hexdigest()
    return Path("/tmp") / f"recalld-{os.getuid()}" / f"{name}.sock"

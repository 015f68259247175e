"""A script file: where it is, which rights it has, and how it is run and described."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

from msgspec import Struct

from daemon.config.scripts import ScriptEntry, Scripts
from daemon.lua.runner import ScriptLimits
from daemon.lua.sandbox.messages import Run

MOST_BYTES: Final = 1024 * 1024

Table = Literal["tool", "agent", "connector"]


class ScriptUnreadable(Exception):
    """The file cannot be used; the message is the reason."""


class Script(Struct, frozen=True, kw_only=True, eq=False):
    """One script with its source text and its rights."""

    #: The configured name; empty for a file in `tools.dir` without an entry of its own.
    name: str
    path: Path
    source: bytes
    table: Table
    seconds: float
    hosts: tuple[str, ...] = ()
    environment: Mapping[str, str] = {}
    config: Mapping[str, Any] = {}

    def run(self, function: str, arguments: list[Any], limits: ScriptLimits) -> Run:
        """The message that runs a function of this script; an empty name describes the script."""
        return Run(
            name=self.path.name,
            source=self.source,
            table=self.table,
            function=function,
            arguments=arguments,
            config=dict(self.config),
            environment=dict(self.environment),
            seconds=self.seconds,
            memory_bytes=limits.memory_bytes,
            result_bytes=limits.result_bytes,
        )


def read_script(
    path: Path,
    table: Table,
    settings: Scripts,
    entry: ScriptEntry | None,
    variables: Mapping[str, str],
) -> Script:
    """Read a script; an entry overrides the general settings. Blocks."""
    hosts = settings.hosts
    allowed = settings.environment
    seconds = settings.seconds
    if entry is not None:
        hosts = entry.hosts if entry.hosts is not None else hosts
        allowed = entry.environment if entry.environment is not None else allowed
        seconds = entry.seconds if entry.seconds is not None else seconds
    return Script(
        name=entry.name if entry is not None else "",
        path=path,
        source=_read(path),
        table=table,
        seconds=seconds,
        hosts=hosts,
        environment={name: variables[name] for name in allowed if name in variables},
        config=entry.config if entry is not None else {},
    )


def _read(path: Path) -> bytes:
    try:
        # Without O_NONBLOCK, opening a pipe would wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise ScriptUnreadable("is not a file")
            source = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise ScriptUnreadable(error.strerror or str(error)) from None
    if len(source) > MOST_BYTES:
        raise ScriptUnreadable(f"has more than {MOST_BYTES} bytes")
    return source


def signature(paths: list[Path]) -> list[tuple[str, int, int, int]]:
    """Changes whenever one of these files changes. Blocks."""
    found: list[tuple[str, int, int, int]] = []
    for path in paths:
        try:
            status = path.stat()
        except OSError:
            found.append((str(path), 0, 0, 0))
            continue
        found.append((str(path), status.st_mtime_ns, status.st_size, status.st_ino))
    return found

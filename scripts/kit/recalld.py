"""Starts recalld as a user would: the command, a fresh home, and a daemon in it."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
COMMAND: Final = str(Path(sys.executable).with_name("recalld"))
READY_SECONDS: Final = 20.0


class Home:
    """A fresh `RECALLD_HOME` with the rate limit off, and its daemon."""

    def __init__(
        self, path: Path, extra: Mapping[str, str] | None = None, command: str = COMMAND
    ) -> None:
        self.path = path
        self.command = command
        self.env = {"RECALLD_HOME": str(path), "RECALLD_RATE_LIMIT": "0", **(extra or {})}
        self.daemons: list[subprocess.Popen[bytes]] = []

    @property
    def log(self) -> Path:
        """The file with the stderr of all processes started here."""
        return self.path / "stderr.log"

    def stdio(self, *, embedded: bool = False, fixtures: bool = True) -> list[str]:
        flags = [*(["--fixtures"] if fixtures else []), *(["--embedded"] if embedded else [])]
        return [self.command, "stdio", *flags]

    def run(self, *arguments: str, seconds: float = 20.0) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.command, *arguments],
            env={**os.environ, **self.env},
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )

    def status(self) -> dict[str, Any] | None:
        """The output of `recalld status --json`, or None if no daemon runs."""
        done = self.run("status", "--json")
        try:
            status: dict[str, Any] = json.loads(done.stdout)
        except ValueError:
            return None
        return status if status.get("pid") else None

    def serve(
        self, *arguments: str, fixtures: bool = True, bind: str | None = None
    ) -> dict[str, Any]:
        """Start a daemon as a child process and wait until it listens.

        It serves HTTP only if `bind` is given.
        """
        http = ["--no-http"] if bind is None else ["--bind", bind]
        tools = ["--fixtures"] if fixtures else []
        with self.log.open("ab") as log:
            daemon = subprocess.Popen(
                [self.command, "serve", *http, *tools, *arguments],
                env={**os.environ, **self.env},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self.daemons.append(daemon)
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            if daemon.poll() is not None:
                raise RuntimeError(f"recalld serve exited {daemon.returncode}: {self.last_words()}")
            status = self.status()
            if status is not None and status["pid"] == daemon.pid:
                return status
            time.sleep(0.02)
        raise RuntimeError(f"recalld serve was not ready after {READY_SECONDS:g} s")

    def last_words(self) -> str:
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return text[-2000:]

    def close(self) -> None:
        """Stop the daemon of this home, including one that a bridge started."""
        status = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            status = self.status()
            self.run("stop")
        for daemon in self.daemons:
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        if status is not None and not gone(status["pid"], 5.0):
            os.kill(status["pid"], signal.SIGKILL)


def daemons(home: Home) -> list[int]:
    """The daemons of this home, found in the process list without asking recalld."""
    found = []
    wanted = f"RECALLD_HOME={home.path}".encode()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            arguments = (entry / "cmdline").read_bytes().split(b"\0")
            environment = (entry / "environ").read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        if wanted in environment and b"serve" in arguments and alive(int(entry.name)):
            found.append(int(entry.name))
    return found


def installed() -> str:
    """The command in the environment of `scripts/recalld`, without development packages.

    Development packages affect timings: structlog, for example, imports rich if it is installed.
    """
    subprocess.run([ROOT / "scripts" / "recalld", "--version"], check=True, capture_output=True)
    return str(ROOT / ".venv-run" / "bin" / "recalld")


def gone(pid: int, seconds: float) -> bool:
    """Whether the process exits within this time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not alive(pid):
            return True
        time.sleep(0.02)
    return not alive(pid)


def alive(pid: int) -> bool:
    """Whether the process runs; a zombie does not count."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in {"Z", "X"}


@contextlib.contextmanager
def fresh_home(extra: Mapping[str, str] | None = None, command: str = COMMAND) -> Iterator[Home]:
    """An empty home; afterwards its daemon is stopped and the home removed."""
    # A short path directly under /tmp, because socket paths are limited to 107 bytes.
    path = Path(tempfile.mkdtemp(prefix="recalld-", dir="/tmp"))
    home = Home(path, extra, command)
    try:
        yield home
    finally:
        home.close()
        shutil.rmtree(path, ignore_errors=True)

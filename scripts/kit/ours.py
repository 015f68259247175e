"""Our own server as an outsider starts it: the command, a home of its own, a daemon in it."""

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
    """A `RECALLD_HOME` with nothing in it, limits off, and whatever daemon comes to live there."""

    def __init__(
        self, path: Path, extra: Mapping[str, str] | None = None, command: str = COMMAND
    ) -> None:
        self.path = path
        self.command = command
        self.env = {"RECALLD_HOME": str(path), "RECALLD_RATE_LIMIT": "0", **(extra or {})}
        self.daemons: list[subprocess.Popen[bytes]] = []

    @property
    def log(self) -> Path:
        """Where the processes we start here write their stderr."""
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
        """What `recalld status --json` says of a running daemon; None when none runs."""
        done = self.run("status", "--json")
        try:
            told: dict[str, Any] = json.loads(done.stdout)
        except ValueError:
            return None
        return told if told.get("pid") else None

    def serve(
        self, *arguments: str, fixtures: bool = True, bind: str | None = None
    ) -> dict[str, Any]:
        """Starts a daemon as our child and waits until it says where it listens.

        HTTP is opened only where `bind` says so.
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
            told = self.status()
            if told is not None and told["pid"] == daemon.pid:
                return told
            time.sleep(0.02)
        raise RuntimeError(f"recalld serve was not ready after {READY_SECONDS:g} s")

    def last_words(self) -> str:
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return text[-2000:]

    def close(self) -> None:
        """Stops whatever daemon lives here, ours or one a bridge spawned."""
        told = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            told = self.status()
            self.run("stop")
        for daemon in self.daemons:
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        if told is not None and not gone(told["pid"], 5.0):
            os.kill(told["pid"], signal.SIGKILL)


def daemons(home: Home) -> list[int]:
    """The daemons living in this home, found by looking at processes, not by asking recalld."""
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
    """The command in the environment users get (`scripts/recalld`): no development packages.

    They matter to a clock: structlog, for one, imports rich when it finds it.
    """
    subprocess.run([ROOT / "scripts" / "recalld", "--version"], check=True, capture_output=True)
    return str(ROOT / ".venv-run" / "bin" / "recalld")


def gone(pid: int, seconds: float) -> bool:
    """Whether the process has left within this time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not alive(pid):
            return True
        time.sleep(0.02)
    return not alive(pid)


def alive(pid: int) -> bool:
    """Whether the process runs (a zombie does not)."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in {"Z", "X"}


@contextlib.contextmanager
def fresh_home(extra: Mapping[str, str] | None = None, command: str = COMMAND) -> Iterator[Home]:
    """A home that is empty at first and, with its daemon, gone afterwards."""
    # Short, directly under /tmp: a socket path may hold 107 bytes.
    path = Path(tempfile.mkdtemp(prefix="recalld-", dir="/tmp"))
    home = Home(path, extra, command)
    try:
        yield home
    finally:
        home.close()
        shutil.rmtree(path, ignore_errors=True)

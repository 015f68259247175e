"""Start real recalld processes, exchange messages with them, and always end them."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

RECALLD = [sys.executable, "-P", "-m", "daemon"]
PATIENCE = 20.0


def environment(home: Path, **more: str) -> dict[str, str]:
    return {**os.environ, "RECALLD_HOME": str(home), "RECALLD_RATE_LIMIT": "0", **more}


def recalld(home: Path, *arguments: str, **more: Any) -> "subprocess.CompletedProcess[str]":
    """Run `recalld` with these arguments and wait for it to exit."""
    return subprocess.run(
        [*RECALLD, *arguments],
        env=environment(home),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        **more,
    )


class Child:
    """A recalld process that exchanges JSON lines over stdin and stdout."""

    def __init__(self, home: Path, *arguments: str, **more: Any) -> None:
        variables = more.pop("variables", {})
        self.process = subprocess.Popen(
            [*RECALLD, *arguments],
            env=environment(home, **variables),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **more,
        )
        self._buffer = b""

    def send(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def line(self, patience: float = PATIENCE) -> Any:
        """Return the next frame, or None at the end of the output."""
        assert self.process.stdout is not None
        descriptor = self.process.stdout.fileno()
        deadline = time.monotonic() + patience
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([descriptor], [], [], left)[0]:
                raise TimeoutError(f"no frame in {patience} s; had {self._buffer[:200]!r}")
            chunk = os.read(descriptor, 65_536)
            if not chunk:
                return None
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        return json.loads(line)

    def lines(self, count: int) -> dict[Any, Any]:
        """Return the next `count` frames by id."""
        found = [self.line() for _ in range(count)]
        return {frame.get("id"): frame for frame in found}

    def close_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def wait(self, patience: float = PATIENCE) -> int:
        return self.process.wait(patience)

    def errors(self) -> str:
        assert self.process.stderr is not None
        text: bytes = self.process.stderr.read()
        return text.decode()

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()


@contextmanager
def child(home: Path, *arguments: str, **more: Any) -> Generator[Child]:
    started = Child(home, *arguments, **more)
    try:
        yield started
    finally:
        started.end()


@contextmanager
def daemon(home: Path, *arguments: str, **more: Any) -> Generator[Child]:
    """Run `recalld serve` and wait until it accepts connections."""
    with child(home, "serve", "--no-http", "--fixtures", *arguments, **more) as started:
        deadline = time.monotonic() + PATIENCE
        while recalld(home, "health").returncode == 2:
            assert started.process.poll() is None, started.errors()
            assert time.monotonic() < deadline
        yield started


@contextmanager
def spawned_daemon(home: Path) -> Generator[None]:
    """Stop the daemon that a bridge may have started inside the block."""
    try:
        yield
    finally:
        recalld(home, "stop")


def status(home: Path) -> Any:
    return json.loads(recalld(home, "status", "--json").stdout)


def kill_daemon(home: Path) -> int:
    pid = int(status(home)["pid"])
    os.kill(pid, signal.SIGKILL)
    return pid


class Link:
    """A raw connection to the daemon's socket."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(str(path))
        self._file = self.socket.makefile("rb")

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def line(self) -> Any:
        line = self._file.readline()
        return json.loads(line) if line else None

    def close(self) -> None:
        self._file.close()
        self.socket.close()


@contextmanager
def link(home: Path) -> Generator[Link]:
    opened = Link(home / "run" / "recalld.sock")
    try:
        yield opened
    finally:
        opened.close()

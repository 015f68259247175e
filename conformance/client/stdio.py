"""Stdio: the server under test as a child process, on its stdin and stdout."""

from __future__ import annotations

import atexit
import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Literal

from conformance.client.wire import NoServer, Wire

_live: dict[int, subprocess.Popen[bytes]] = {}
_scratches: set[str] = set()
_live_lock = threading.Lock()
_started: list[int] = []


MARK = "MCP_CONFORM_RUN"
"""Environment variable of every child. It finds the descendants that left the process group."""
RUN = uuid.uuid4().hex


def _end_group(child: subprocess.Popen[bytes]) -> None:
    """Kill the child's process group and reap the child."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(timeout=5)
    with _live_lock:
        _live.pop(child.pid, None)


def _stop_group(child: subprocess.Popen[bytes], seconds: float = 2.0) -> None:
    """End a child as the specification asks: end of input, then SIGTERM, then SIGKILL."""
    for number in (None, signal.SIGTERM):
        if number is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(timeout=seconds)
            break
    _end_group(child)


def descendants() -> list[int]:
    """Processes of this run that are still alive, found by their environment (Linux only)."""
    found = []
    wanted = f"{MARK}={RUN}".encode()
    live = set(_live)
    for entry in os.listdir("/proc") if sys.platform.startswith("linux") else ():
        if entry.isdigit() and int(entry) not in live:
            with contextlib.suppress(OSError), open(f"/proc/{entry}/environ", "rb") as environ:
                if wanted in environ.read().split(b"\0"):
                    found.append(int(entry))
    return found


def _end_descendants() -> None:
    """End the processes that called setsid, which a signal to the group does not reach."""
    if not _started:
        return
    for number, seconds in ((signal.SIGTERM, 2.0), (signal.SIGKILL, 1.0)):
        until = time.monotonic() + seconds
        for pid in descendants():
            with contextlib.suppress(OSError):
                os.kill(pid, number)
        while time.monotonic() < until and descendants():
            time.sleep(0.05)


def end_all_children() -> None:
    """Kill all children and remove their directories; runs at every exit."""
    with _live_lock:
        children = list(_live.values())
    for child in children:
        _end_group(child)
    _end_descendants()
    for scratch in list(_scratches):
        _remove(scratch)


def _remove(scratch: str) -> None:
    shutil.rmtree(scratch, ignore_errors=True)
    _scratches.discard(scratch)


atexit.register(end_all_children)


FRESH = "{tmpdir}"
"""Placeholder in the command and in `--env`: a new directory for each child, removed with it."""


class ChildWire(Wire):
    """A wire to a child process over its stdin and stdout."""

    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        *,
        drain_stderr: bool = True,
        stdin: int | None = None,
        close_stderr: bool = False,
        gentle: bool = False,
    ) -> None:
        self._scratch: str | None = None
        self._gentle = gentle
        if any(FRESH in text for text in (*env.values(), *command)):
            self._scratch = tempfile.mkdtemp(prefix="mcp-conform-")
            _scratches.add(self._scratch)
            env = {name: value.replace(FRESH, self._scratch) for name, value in env.items()}
            command = [word.replace(FRESH, self._scratch) for word in command]
        env = {**env, MARK: RUN}
        in_read, in_write = os.pipe()
        out_read, out_write = os.pipe()
        err_read, err_write = os.pipe()
        try:
            self.child = subprocess.Popen(
                # Popen can only redirect descriptor 2; the shell closes it.
                ["sh", "-c", 'exec "$@" 2>&-', "sh", *command] if close_stderr else list(command),
                stdin=in_read if stdin is None else stdin,
                stdout=out_write,
                stderr=err_write,
                env=dict(env),
                start_new_session=True,
                close_fds=True,
            )
        except OSError as error:
            for fd in (in_read, in_write, out_read, out_write, err_read, err_write):
                os.close(fd)
            self._remove_scratch()
            raise NoServer(f"cannot start {command[0]!r}: {error.strerror or error}") from error
        for fd in (in_read, out_write, err_write):
            os.close(fd)
        with _live_lock:
            _live[self.child.pid] = self.child
            _started.append(self.child.pid)
        super().__init__(out_read, in_write)
        self._input_open = True
        self._output_open = True
        os.set_blocking(err_read, False)
        self._undrained: int | None = None
        if drain_stderr:
            self._stderr_fd = err_read
        else:
            self._undrained = err_read

    @property
    def pid(self) -> int | None:
        return self.child.pid

    def half_close(self) -> None:
        if self._input_open:
            self._input_open = False
            os.close(self.write_fd)

    def close_output(self) -> None:
        """Close the read end: further writes of the server fail with a broken pipe."""
        if self._output_open:
            self._output_open = False
            self.ended = True
            os.close(self.read_fd)

    def wait_exit(self, timeout: float) -> int | None:
        """The exit status, or None if the child still runs after `timeout` seconds."""
        until = min(time.monotonic() + timeout, self.deadline)
        while True:
            status = self.child.poll()
            if status is not None:
                if not self.ended:
                    self.wait_for_end(0.5)
                return status
            left = until - time.monotonic()
            if left <= 0:
                return None
            if self.ended and self._stderr_fd is None:
                time.sleep(min(left, 0.005))
            else:
                self._pump(None, min(left, 0.02))

    def drain_stderr(self, seconds: float = 0.2) -> None:
        """Read the rest of the child's stderr."""
        until = time.monotonic() + seconds
        while self._stderr_fd is not None and time.monotonic() < until:
            ready, _, _ = select.select([self._stderr_fd], [], [], 0.02)
            if ready:
                self._drain_stderr()

    def close(self) -> None:
        self.half_close()
        if self._gentle:
            _stop_group(self.child)
        self.close_output()
        _end_group(self.child)
        if self._stderr_fd is not None:
            self._drain_stderr()
        for fd in (self._stderr_fd, self._undrained):
            if fd is not None:
                with contextlib.suppress(OSError):
                    os.close(fd)
        self._stderr_fd = self._undrained = None
        self._remove_scratch()

    def _remove_scratch(self) -> None:
        if self._scratch is not None:
            _remove(self._scratch)


class StdioEndpoint:
    """Starts the command once for each connection, and keeps a spare child running.

    The spare hides the start-up time of the server from cases that need a new connection.
    """

    transport: Literal["stdio", "unix", "http"] = "stdio"

    def __init__(self, command: Sequence[str], env: Mapping[str, str], *, spares: int = 1) -> None:
        self.command = list(command)
        self.env = dict(env)
        self.exclusive = False
        self.starts = 0
        self._spares: list[ChildWire] = []
        self._wanted = 0
        self._spares_allowed = spares
        self._lock = threading.Lock()
        self._closed = False

    def connect(self) -> ChildWire:
        with self._lock:
            if self._closed:
                raise NoServer("the run is over")
            ready = self._spares.pop(0) if self._spares else None
        if ready is not None and ready.child.poll() is not None:
            ready.close()
            ready = None
        wire = ready or self._child()
        with self._lock:
            while not self._closed and not self.exclusive and len(self._spares) < self._wanted:
                self._spares.append(self._child())
        return wire

    def _child(self) -> ChildWire:
        self.starts += 1
        return ChildWire(self.command, self.env, gentle=self.exclusive)

    def allow_spares(self) -> None:
        """Keep spare children from now on: two instances can run side by side."""
        self._wanted = 0 if self.exclusive else self._spares_allowed

    def one_at_a_time(self) -> None:
        """Never run two children at once: the server does not allow it, or the user forbids it."""
        with self._lock:
            self.exclusive = True
            spares, self._spares = self._spares, []
        for spare in spares:
            spare.close()

    def start(
        self,
        *,
        env: Mapping[str, str] | None = None,
        drain_stderr: bool = True,
        stdin: int | None = None,
        close_stderr: bool = False,
    ) -> ChildWire:
        """Start a child with special conditions; never uses the spare."""
        self.starts += 1
        return ChildWire(
            self.command,
            {**self.env, **(env or {})},
            drain_stderr=drain_stderr,
            stdin=stdin,
            close_stderr=close_stderr,
        )

    def describe(self) -> str:
        return "stdio: " + " ".join(self.command)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            spares, self._spares = self._spares, []
        for spare in spares:
            spare.close()


def resident_bytes(pid: int | None) -> int | None:
    """The resident memory of a process; None where it is unknown (other than Linux)."""
    if pid is None or not sys.platform.startswith("linux"):
        return None
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as statm:
            pages = int(statm.read().split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")

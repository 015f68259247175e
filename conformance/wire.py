"""Byte streams to a server, where every wait has a bound.

A `Wire` is one connection: a child process on pipes, or a connected unix socket. It runs no thread
of its own. Whoever waits pumps: one `poll` loop writes what is to be written, reads what has
arrived and drains the child's stderr, so a server that blocks on any of its three pipes cannot
block us, and a server that talks without end fills a bounded buffer and is then called a flood.

An `Endpoint` makes wires. HTTP is a third endpoint (conformance/http.py); nothing above this module
knows which one it is talking through, except by `Endpoint.transport`.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

LINE_LIMIT = 64 * 1024 * 1024
"""The longest line we take from a server; no case asks for a tenth of it."""

BUFFER_LIMIT = 128 * 1024 * 1024
"""How much may pile up unread while we are busy writing."""

STDERR_KEPT = 16 * 1024
"""How much of the end of a child's stderr goes into a report."""


class WireError(Exception):
    """The stream could not be used any further."""


class Closed(WireError):
    """The server ended the stream."""


class Flood(WireError):
    """The server sent more than anybody asked for."""


class NoServer(WireError):
    """There is nothing to connect to."""


class OutOfTime(WireError):
    """The case used up its time."""


class Wire:
    """One connection to the server under test."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self.read_fd = read_fd
        self.write_fd = write_fd
        self.ended = False
        self.deadline = float("inf")
        self.received_bytes = 0
        self._buffer = bytearray()
        self._searched = 0
        self._stderr_fd: int | None = None
        self._stderr = bytearray()
        self.stderr_bytes = 0
        os.set_blocking(read_fd, False)
        os.set_blocking(write_fd, False)

    # -- sending ------------------------------------------------------------------------------

    def send(self, data: bytes, *, timeout: float = 10.0, reading: bool = True) -> int:
        """Write `data`, reading meanwhile so that neither side waits for the other.

        With `reading=False` nothing is read: the wire behaves like a client that has gone away for
        lunch, and the number of bytes the server took before it stopped taking is returned.
        """
        view = memoryview(data)
        sent = 0
        until = min(time.monotonic() + timeout, self.deadline)
        while sent < len(data):
            left = until - time.monotonic()
            if left <= 0:
                if reading:
                    raise OutOfTime(f"the server took {sent} of {len(data)} bytes and then no more")
                return sent
            self._pump(view[sent : sent + 262144], left, reading=reading)
            sent += self._written
        return sent

    def half_close(self) -> None:
        """Say that nothing more will come, and keep on listening."""
        raise NotImplementedError

    # -- receiving ----------------------------------------------------------------------------

    def line(self, timeout: float) -> bytes | None:
        """The next line without its LF, or None when `timeout` seconds passed without one."""
        until = min(time.monotonic() + timeout, self.deadline)
        while True:
            end = self._buffer.find(b"\n", self._searched)
            if end >= 0:
                line = bytes(self._buffer[:end])
                del self._buffer[: end + 1]
                self._searched = 0
                return line
            self._searched = len(self._buffer)
            if self._searched > LINE_LIMIT:
                raise Flood(f"a line of more than {LINE_LIMIT} bytes")
            if self.ended:
                raise Closed("the server closed the connection")
            left = until - time.monotonic()
            if left <= 0:
                return None
            self._pump(None, left)

    @property
    def unfinished(self) -> bytes:
        """What has arrived after the last LF."""
        return bytes(self._buffer)

    def wait_for_end(self, timeout: float) -> bool:
        """Whether the server ends the stream within `timeout` seconds; lines stay readable."""
        until = min(time.monotonic() + timeout, self.deadline)
        while not self.ended:
            left = until - time.monotonic()
            if left <= 0:
                return False
            if len(self._buffer) > LINE_LIMIT:
                raise Flood("output without end")
            self._pump(None, left)
        return True

    # -- the one loop -------------------------------------------------------------------------

    def _pump(self, data: memoryview | None, timeout: float, *, reading: bool = True) -> None:
        """Wait once for anything to do, and do it."""
        self._written = 0
        poll = select.poll()
        if reading and not self.ended:
            poll.register(self.read_fd, select.POLLIN)
        if self._stderr_fd is not None:
            poll.register(self._stderr_fd, select.POLLIN)
        if data is not None:
            poll.register(self.write_fd, select.POLLOUT | (poll_in_of(self, reading)))
        events = dict(poll.poll(max(1.0, min(timeout, 0.5) * 1000)))
        if self._stderr_fd is not None and self._stderr_fd in events:
            self._drain_stderr()
        if reading and not self.ended and self.read_fd in events:
            flags = events[self.read_fd]
            if flags & (select.POLLIN | select.POLLHUP | select.POLLERR):
                self._fill()
        if data is not None and self.write_fd in events:
            flags = events[self.write_fd]
            if flags & (select.POLLOUT | select.POLLERR | select.POLLHUP):
                try:
                    self._written = os.write(self.write_fd, data)
                except BlockingIOError:
                    self._written = 0
                except OSError as error:
                    raise Closed(f"the server closed its input ({error.strerror})") from error

    def _fill(self) -> None:
        try:
            chunk = os.read(self.read_fd, 262144)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            self.ended = True
            return
        self.received_bytes += len(chunk)
        self._buffer += chunk
        if len(self._buffer) > BUFFER_LIMIT:
            raise Flood(f"more than {BUFFER_LIMIT} bytes that nobody asked for")

    def _drain_stderr(self) -> None:
        assert self._stderr_fd is not None
        try:
            chunk = os.read(self._stderr_fd, 65536)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            os.close(self._stderr_fd)
            self._stderr_fd = None
            return
        self.stderr_bytes += len(chunk)
        self._stderr += chunk
        del self._stderr[:-STDERR_KEPT]

    # -- the other end ------------------------------------------------------------------------

    @property
    def pid(self) -> int | None:
        """The process that answers, where the transport can tell."""
        return None

    def stderr_tail(self) -> bytes:
        return bytes(self._stderr)

    def close(self) -> None:
        raise NotImplementedError


def poll_in_of(wire: Wire, reading: bool) -> int:
    """POLLIN when the write descriptor is also the one being read (a socket)."""
    return select.POLLIN if reading and wire.write_fd == wire.read_fd and not wire.ended else 0


class Endpoint(Protocol):
    """A place where the server under test can be reached, as often as needed."""

    transport: Literal["stdio", "unix", "http"]

    def connect(self) -> Wire: ...

    def describe(self) -> str: ...

    def close(self) -> None: ...


# -- children -----------------------------------------------------------------------------------

_live: dict[int, subprocess.Popen[bytes]] = {}
_scratches: set[str] = set()
_live_lock = threading.Lock()


def _end_group(child: subprocess.Popen[bytes]) -> None:
    """Kill the child and whatever it started in its own process group, and reap it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(timeout=5)
    with _live_lock:
        _live.pop(child.pid, None)


def end_all_children() -> None:
    """Leave no child behind, and no directory of one, however we are made to stop."""
    with _live_lock:
        children = list(_live.values())
    for child in children:
        _end_group(child)
    for scratch in list(_scratches):
        _remove(scratch)


def _remove(scratch: str) -> None:
    shutil.rmtree(scratch, ignore_errors=True)
    _scratches.discard(scratch)


atexit.register(end_all_children)


FRESH = "{tmpdir}"
"""In a variable for the child: a new empty directory for each child, removed with it."""


class ChildWire(Wire):
    """A child process; the wire is its stdin and stdout."""

    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        *,
        drain_stderr: bool = True,
        stdin: int | None = None,
        close_stderr: bool = False,
    ) -> None:
        self._scratch: str | None = None
        if any(FRESH in value for value in env.values()):
            self._scratch = tempfile.mkdtemp(prefix="mcp-conform-")
            _scratches.add(self._scratch)
            env = {name: value.replace(FRESH, self._scratch) for name, value in env.items()}
        in_read, in_write = os.pipe()
        out_read, out_write = os.pipe()
        err_read, err_write = os.pipe()
        try:
            self.child = subprocess.Popen(
                # Closing descriptor 2 needs a shell: Popen can only redirect it.
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
        """Stop listening: what the server writes from now on meets a broken pipe."""
        if self._output_open:
            self._output_open = False
            self.ended = True
            os.close(self.read_fd)

    def wait_exit(self, timeout: float) -> int | None:
        """The exit status, or None if the child is still there after `timeout` seconds."""
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
        """Collect what the child said at its end."""
        until = time.monotonic() + seconds
        while self._stderr_fd is not None and time.monotonic() < until:
            ready, _, _ = select.select([self._stderr_fd], [], [], 0.02)
            if ready:
                self._drain_stderr()

    def close(self) -> None:
        self.half_close()
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
    """Starts the command anew for each connection, one child ahead of need.

    A server that takes a second to start would otherwise make us wait that second for each case
    that needs a connection of its own.
    """

    transport: Literal["stdio", "unix", "http"] = "stdio"

    def __init__(self, command: Sequence[str], env: Mapping[str, str], *, spares: int = 1) -> None:
        self.command = list(command)
        self.env = dict(env)
        self._spares: list[ChildWire] = []
        self._wanted = spares
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
        wire = ready or ChildWire(self.command, self.env)
        with self._lock:
            while not self._closed and len(self._spares) < self._wanted:
                self._spares.append(ChildWire(self.command, self.env))
        return wire

    def start(
        self,
        *,
        env: Mapping[str, str] | None = None,
        drain_stderr: bool = True,
        stdin: int | None = None,
        close_stderr: bool = False,
    ) -> ChildWire:
        """A child under special conditions; never one started ahead."""
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


# -- sockets ------------------------------------------------------------------------------------


class SocketWire(Wire):
    """A connection to a unix socket."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        super().__init__(connection.fileno(), connection.fileno())

    @property
    def pid(self) -> int | None:
        if not hasattr(socket, "SO_PEERCRED"):
            return None
        try:
            raw = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        except OSError:
            return None
        pid: int = struct.unpack("3i", raw)[0]
        return pid or None

    def half_close(self) -> None:
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self.socket.close()
        self.ended = True


class UnixEndpoint:
    """Connects to a socket somebody else listens on."""

    transport: Literal["stdio", "unix", "http"] = "unix"

    def __init__(self, path: str, *, timeout: float = 5.0) -> None:
        self.path = path
        self.timeout = timeout

    def connect(self) -> SocketWire:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(self.timeout)
        try:
            connection.connect(self.path)
        except OSError as error:
            connection.close()
            reason = error.strerror or error
            raise NoServer(f"cannot connect to {self.path!r}: {reason}") from error
        return SocketWire(connection)

    def describe(self) -> str:
        return f"unix: {self.path}"

    def close(self) -> None:
        pass


def resident_bytes(pid: int | None) -> int | None:
    """The resident memory of a process, where the system tells (Linux)."""
    if pid is None or not sys.platform.startswith("linux"):
        return None
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as statm:
            pages = int(statm.read().split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")

"""Wires: connections to a server as streams of lines, with a timeout on every wait.

A `Wire` is one connection. It has no thread: the method that waits runs one `poll` loop, which
writes pending data, reads incoming data and drains the child's stderr. A server that blocks on one
of its three pipes therefore cannot block the suite. Buffers are bounded; a server that exceeds them
raises `Flood`.

An `Endpoint` opens wires: `stdio.py`, `unix_socket.py` and `streamable_http.py` implement it. The
rest of the suite sees the transport only through `Endpoint.transport`.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable
from typing import Literal, Protocol

LINE_LIMIT = 64 * 1024 * 1024
"""The longest line accepted from a server; no case needs a tenth of it."""

BUFFER_LIMIT = 128 * 1024 * 1024
"""The most unread data buffered during a write."""

STDERR_KEPT = 16 * 1024
"""The size of the stderr tail that goes into a report."""


class WireError(Exception):
    """The connection is no longer usable."""


class Closed(WireError):
    """The server closed the connection."""


class Flood(WireError):
    """The server sent more data than the limits allow."""


class NoServer(WireError):
    """The server cannot be reached or started."""


class OutOfTime(WireError):
    """The deadline of the case has passed."""


class Pace:
    """The shortest time between two messages; it grows when the server's rate limit refuses one."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self._next = 0.0
        self._slowed = float("-inf")
        self._lock = threading.Lock()

    def wait(self) -> None:
        if not self.seconds:
            return
        with self._lock:
            at = max(self._next, time.monotonic())
            self._next = at + self.seconds
        if (left := at - time.monotonic()) > 0:
            time.sleep(left)

    def slow_down(self) -> None:
        """Send half as many messages from now on, but at least two in a second.

        Refusals within the same few seconds count once, because several threads meet the same
        limit.
        """
        with self._lock:
            if time.monotonic() >= self._slowed + 5.0:
                self._slowed = time.monotonic()
                self.seconds = min(0.5, max(0.05, 2 * self.seconds))


class Wire:
    """One connection to the server under test."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self.read_fd = read_fd
        self.write_fd = write_fd
        self.ended = False
        self.deadline = float("inf")
        self.pace = Pace()
        self.received_bytes = 0
        self._buffer = bytearray()
        self._searched = 0
        self._stderr_fd: int | None = None
        self._stderr = bytearray()
        self.stderr_bytes = 0
        os.set_blocking(read_fd, False)
        os.set_blocking(write_fd, False)

    # -- sending ----------------------------------------------------------------------------------

    def send(self, data: bytes, *, timeout: float = 10.0, reading: bool = True) -> int:
        """Write `data`, and read at the same time to avoid a deadlock.

        With `reading=False` nothing is read, as with a stalled client. The number of bytes that the
        server accepted before it stopped reading is returned.
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
        """Close the sending direction only."""
        raise NotImplementedError

    # -- receiving --------------------------------------------------------------------------------

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
        """The bytes received after the last LF."""
        return bytes(self._buffer)

    def wait_for_end(self, timeout: float) -> bool:
        """Whether the server closes within `timeout` seconds; received lines stay readable."""
        until = min(time.monotonic() + timeout, self.deadline)
        while not self.ended:
            left = until - time.monotonic()
            if left <= 0:
                return False
            if len(self._buffer) > LINE_LIMIT:
                raise Flood("output without end")
            self._pump(None, left)
        return True

    # -- poll loop --------------------------------------------------------------------------------

    def _pump(self, data: memoryview | None, timeout: float, *, reading: bool = True) -> None:
        """Run one iteration of the poll loop."""
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
        chunk = _read_available(self.read_fd, 262144)
        if chunk is None:
            return
        if not chunk:
            self.ended = True
            return
        self.received_bytes += len(chunk)
        self._buffer += chunk
        if len(self._buffer) > BUFFER_LIMIT:
            raise Flood(f"more than {BUFFER_LIMIT} bytes of unread output")

    def _drain_stderr(self) -> None:
        assert self._stderr_fd is not None
        chunk = _read_available(self._stderr_fd, 65536)
        if chunk is None:
            return
        if not chunk:
            os.close(self._stderr_fd)
            self._stderr_fd = None
            return
        self.stderr_bytes += len(chunk)
        self._stderr += chunk
        del self._stderr[:-STDERR_KEPT]

    def speak(self, revision: str, note: Callable[[bool, bytes], None]) -> None:
        """Tell the wire the revision of its client, and where to record headers (HTTP only)."""

    # -- server process ---------------------------------------------------------------------------

    @property
    def pid(self) -> int | None:
        """The process id of the server, if the transport knows it."""
        return None

    def stderr_tail(self) -> bytes:
        return bytes(self._stderr)

    def close(self) -> None:
        raise NotImplementedError


def _read_available(fd: int, size: int) -> bytes | None:
    """Bytes that can be read now: None if there are none yet, empty at the end or on an error."""
    try:
        return os.read(fd, size)
    except BlockingIOError:
        return None
    except OSError:
        return b""


def poll_in_of(wire: Wire, reading: bool) -> int:
    """POLLIN when the write descriptor is also the one being read (a socket)."""
    return select.POLLIN if reading and wire.write_fd == wire.read_fd and not wire.ended else 0


class Endpoint(Protocol):
    """Opens any number of wires to the server under test."""

    transport: Literal["stdio", "unix", "http"]
    exclusive: bool
    """Whether only one connection may be open at a time."""

    def connect(self) -> Wire: ...

    def describe(self) -> str: ...

    def close(self) -> None: ...

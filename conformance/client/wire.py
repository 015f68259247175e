"""Byte streams to a server, where every wait has a bound.

A `Wire` is one connection: a child process on pipes, or a connected unix socket. It runs no thread
of its own. Whoever waits pumps: one `poll` loop writes what is to be written, reads what has
arrived and drains the child's stderr, so a server that blocks on any of its three pipes cannot
block us, and a server that talks without end fills a bounded buffer and is then called a flood.

An `Endpoint` makes wires. HTTP is a third endpoint (conformance/http.py); nothing above this module
knows which one it is talking through, except by `Endpoint.transport`.
"""

from __future__ import annotations

import os
import select
import time
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

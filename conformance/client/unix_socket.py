"""Unix domain sockets: connections to a server that is already running."""

from __future__ import annotations

import contextlib
import socket
import struct
from typing import Literal

from conformance.client.wire import NoServer, Wire


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
    """Connects to the socket of a running server."""

    transport: Literal["stdio", "unix", "http"] = "unix"

    def __init__(self, path: str, *, timeout: float = 5.0) -> None:
        self.path = path
        self.timeout = timeout
        self.exclusive = False

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

"""The unix socket: stdio framing, one legacy state a connection, the owner's processes only.

The socket is 0600, in a directory that is ours and 0700 or that somebody chose and nobody else can
write to (`daemon.operations.directories`), and the kernel tells us who connects. A file left behind
by a daemon that died is replaced, but only under the data directory's lock and only when nobody
answers on it.
"""

import asyncio
import errno
import os
import socket
import stat
import struct
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import structlog

from daemon.exit_codes import CANNOT_CREATE, LOCKED, Exit
from daemon.operations import directories
from daemon.rpc.failures import Overloaded, error_for
from daemon.rpc.methods import PRIVATE
from daemon.transports.streams import StreamWire
from protocol import jsonrpc

if TYPE_CHECKING:
    from daemon.rpc.hub import Hub

BACKLOG: Final = 512
LONGEST_PATH: Final = 107
_FIRST_PASSED: Final = 3  # where systemd puts the first descriptor it hands over

log: Final = structlog.get_logger()


class UnixWire(StreamWire):
    """One accepted connection; strangers and one too many are turned away at the door."""

    def __init__(self, hub: "Hub") -> None:
        super().__init__(hub, "unix", PRIVATE)
        self._is_admitted = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        uid = _peer_uid(transport.get_extra_info("socket"))
        if uid != os.geteuid():
            log.warning("peer.refused", uid=uid)
            cast("asyncio.Transport", transport).abort()
            return
        if len(self._hub.peers) >= self._hub.settings.connections:
            limit = self._hub.settings.connections
            error = error_for(Overloaded(f"at most {limit} connections"), None)
            cast("asyncio.Transport", transport).write(jsonrpc.failure(b"", error, None))
            transport.close()
            return
        self._is_admitted = True
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if self._is_admitted:
            super().data_received(data)

    def eof_received(self) -> bool:
        return super().eof_received() if self._is_admitted else False

    def connection_lost(self, exc: Exception | None) -> None:
        if self._is_admitted:
            super().connection_lost(exc)


def _peer_uid(connection: socket.socket) -> int:
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    _pid, uid, _gid = struct.unpack("3i", credentials)
    return int(uid)


def passed_socket(environment: Mapping[str, str]) -> socket.socket | None:
    """The socket systemd hands over (`LISTEN_FDS`), if it does."""
    if environment.get("LISTEN_PID") != str(os.getpid()):
        return None
    if environment.get("LISTEN_FDS") != "1":
        raise Exit(CANNOT_CREATE, "LISTEN_FDS: exactly one socket is expected")
    try:
        passed = socket.socket(fileno=_FIRST_PASSED)
    except OSError as error:
        raise Exit(CANNOT_CREATE, f"LISTEN_FDS: {error.strerror}") from None
    if passed.family is not socket.AF_UNIX or passed.type is not socket.SOCK_STREAM:
        raise Exit(CANNOT_CREATE, "LISTEN_FDS: the socket is not a unix stream socket")
    return passed


def check_length(path: Path) -> None:
    """Refuse a path the kernel would not take, before anything is made for it."""
    size = len(os.fsencode(path))
    if size > LONGEST_PATH:
        raise Exit(CANNOT_CREATE, f"{path}: is {size} bytes, a socket's path has {LONGEST_PATH}")


def bind(path: Path, *, is_ours: bool) -> socket.socket:
    """A listening socket at `path`. Call under the data directory's lock.

    `is_ours`: the directory is one of our own, not one that somebody chose.
    """
    check_length(path)
    (directories.keep_private if is_ours else directories.accept)(path.parent)
    _clear_stale(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)  # 0600 from the first instant: no window for a chmod to close
    try:
        listener.bind(str(path))
    except OSError as error:
        listener.close()
        raise Exit(
            CANNOT_CREATE, f"{path}: cannot listen there: {error.strerror or error}"
        ) from None
    finally:
        os.umask(before)
    listener.listen(BACKLOG)
    return listener


def _clear_stale(path: Path) -> None:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise Exit(CANNOT_CREATE, f"{path}: {error.strerror}") from None
    if not stat.S_ISSOCK(found.st_mode):
        raise Exit(CANNOT_CREATE, f"{path}: exists and is not a socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except OSError as error:
            if error.errno == errno.ECONNREFUSED:
                path.unlink(missing_ok=True)
                return
            raise Exit(LOCKED, f"{path}: in use and not answering: {error.strerror}") from None
    raise Exit(LOCKED, f"{path}: another daemon is listening there")


async def listen(hub: "Hub", listener: socket.socket) -> asyncio.Server:
    """Accept connections from now on, until the server is closed."""
    listener.setblocking(False)
    # From 3.13 on asyncio takes the file away itself, even one that systemd handed over.
    options: dict[str, Any] = {"cleanup_socket": False} if sys.version_info >= (3, 13) else {}
    return await asyncio.get_running_loop().create_unix_server(
        lambda: UnixWire(hub), sock=listener, backlog=BACKLOG, **options
    )


def remove(path: Path, listener_inode: int) -> None:
    """Take our socket file away, unless somebody else's is there by now."""
    try:
        if path.lstat().st_ino == listener_inode:
            path.unlink()
    except OSError:
        return

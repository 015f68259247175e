"""The unix socket: stdio framing, one legacy state per connection, the owner's processes only.

The socket has mode 0600. Its directory is our own with mode 0700, or a configured one that nobody
else can write to (`daemon.operations.directories`). The kernel reports the user of each peer. The
socket file of a dead daemon is replaced, but only under the data directory's lock and only if
nobody answers on it.
"""

import asyncio
import errno
import os
import socket
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

import structlog

from daemon.bridge.daemon_identity import peer_uid
from daemon.exit_codes import CANNOT_CREATE, LOCKED, Exit
from daemon.operations import directories
from daemon.rpc.failures import Overloaded, error_for
from daemon.rpc.methods.private import PRIVATE
from daemon.rpc.peer import PeerServices
from daemon.transports.streams import StreamWire
from protocol import jsonrpc

BACKLOG: Final = 512
#: Connections beyond `limits.connections` that are kept for health checks, and their longest life.
PROBE_SLOTS: Final = 8
PROBE_SECONDS: Final = 5.0
LONGEST_PATH: Final = 107
_FIRST_PASSED: Final = 3  # the first descriptor that systemd passes

log: Final = structlog.get_logger()


class UnixWire(StreamWire):
    """One accepted connection; other users and connections over the limit are rejected.

    A few connections over the limit are accepted for a short time: they may ask for health and
    status and stop the daemon, so that an overloaded daemon can still be observed.
    """

    def __init__(self, services: PeerServices) -> None:
        super().__init__(services, "unix", PRIVATE)
        self._is_admitted = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        uid = peer_uid(transport.get_extra_info("socket"))
        if not is_owner(uid):
            log.warning("peer.refused", uid=uid)
            cast("asyncio.Transport", transport).abort()
            return
        limit = self._services.settings.connections
        if len(self._services.connections) >= limit + PROBE_SLOTS:
            error = error_for(Overloaded(f"at most {limit} connections"), None)
            cast("asyncio.Transport", transport).write(jsonrpc.failure(b"", error, None))
            transport.close()
            return
        self._is_admitted = True
        self.is_probe = len(self._services.connections) >= limit
        super().connection_made(transport)
        if self.is_probe:
            asyncio.get_running_loop().call_later(PROBE_SECONDS, transport.close)

    def data_received(self, data: bytes) -> None:
        if self._is_admitted:
            super().data_received(data)

    def eof_received(self) -> bool:
        return super().eof_received() if self._is_admitted else False

    def connection_lost(self, exc: Exception | None) -> None:
        if self._is_admitted:
            super().connection_lost(exc)


def is_owner(uid: int | None) -> bool:
    """Whether a peer is this user. Where the system does not tell (None), the directory decides.

    The socket has mode 0600 in a directory with mode 0700, so other users cannot connect.
    """
    return uid is None or uid == os.geteuid()


def passed_socket(environment: Mapping[str, str]) -> socket.socket | None:
    """The socket that systemd passes (`LISTEN_FDS`), if any."""
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
    """Reject a path that is too long for the kernel, before anything is created for it."""
    size = len(os.fsencode(path))
    if size > LONGEST_PATH:
        raise Exit(CANNOT_CREATE, f"{path}: is {size} bytes, a socket's path has {LONGEST_PATH}")


def bind(path: Path, *, is_ours: bool) -> socket.socket:
    """A listening socket at `path`. Call under the data directory's lock.

    `is_ours`: the directory is our own, not a configured one.
    """
    check_length(path)
    (directories.keep_private if is_ours else directories.accept)(path.parent)
    _clear_stale(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)  # 0600 from the start; a later chmod would leave a gap
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


async def listen(services: PeerServices, listener: socket.socket) -> asyncio.Server:
    """Accept connections until the returned server is closed."""
    listener.setblocking(False)
    # From 3.13 on asyncio removes the socket file itself, even one that systemd passed.
    options: dict[str, Any] = {"cleanup_socket": False} if sys.version_info >= (3, 13) else {}
    return await asyncio.get_running_loop().create_unix_server(
        lambda: UnixWire(services), sock=listener, backlog=BACKLOG, **options
    )


def remove(path: Path, listener_inode: int) -> None:
    """Remove our socket file, unless another process has replaced it."""
    try:
        if path.lstat().st_ino == listener_inode:
            path.unlink()
    except OSError:
        return

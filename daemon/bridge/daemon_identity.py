"""Verifies that the daemon at a socket path runs as this user, before a byte is sent to it.

Another user could bind the socket path first, for example in /tmp, and would then receive every
request. Therefore the directory, the socket and the listening process must belong to this user or
to root. Linux and macOS report the user of the listening process; on other systems only the
directory and the socket are checked. Standard library only, for the bridge.
"""

import os
import socket
import stat
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from daemon.exit_codes import UNAVAILABLE, Exit

#: macOS: option level, option and layout of `struct xucred` up to the user id.
_SOL_LOCAL: Final = 0
_LOCAL_PEERCRED: Final = 1
_XUCRED: Final = struct.Struct("II")


def check_files(path: Path) -> None:
    """Check the owners of a socket and its directory; OSError when one does not exist."""
    directory = path.parent.stat()
    found = path.lstat()
    if directory.st_uid not in _trusted():
        raise _foreign(path.parent, directory.st_uid)
    if directory.st_mode & 0o022 and not directory.st_mode & stat.S_ISVTX:
        raise Exit(
            UNAVAILABLE,
            f"{path.parent}: other users can replace the socket"
            f" (mode {stat.S_IMODE(directory.st_mode):04o});"
            " choose another directory or remove the permission (chmod go-w)",
        )
    if found.st_uid not in _trusted():
        raise _foreign(path, found.st_uid)


def check_process(
    link: socket.socket,
    path: Path,
    read_uid: "Callable[[socket.socket], int | None] | None" = None,
) -> None:
    """Check the user of the process that listens at the other end of a connection."""
    uid = (read_uid or peer_uid)(link)
    if uid is not None and uid not in _trusted():
        raise Exit(
            UNAVAILABLE,
            f"{path}: the listening process belongs to another user (uid {uid}); nothing was sent",
        )
    if uid is None:
        check_files(path)  # the files may have been replaced since the first check


def peer_uid(link: socket.socket) -> int | None:
    """Return the user id of the process at the other end; None when the system does not tell."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is not None:
        credentials = link.getsockopt(socket.SOL_SOCKET, option, 12)
        return int(struct.unpack("3i", credentials)[1])
    if sys.platform == "darwin":
        credentials = link.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, 76)
        return int(_XUCRED.unpack_from(credentials)[1])
    return None


def _trusted() -> tuple[int, int]:
    return (os.geteuid(), 0)


def _foreign(path: Path, uid: int) -> Exit:
    return Exit(UNAVAILABLE, f"{path}: belongs to another user (uid {uid}); nothing was sent")

"""Creates private directories and checks the permissions of existing ones.

Every directory that recalld creates has mode 0700, including missing parents
(`Path.mkdir(parents=True)` would give those the mode of the umask). The mode of recalld's own
directories (data, state, runtime) is reset to 0700. An existing directory chosen by the user, such
as /tmp for a socket, is never changed: it is accepted or rejected. Standard library only, for
the bridge.
"""

import os
import stat
from pathlib import Path

from daemon.exit_codes import CANNOT_CREATE, Exit

PRIVATE = 0o700


def make(path: Path) -> None:
    """Create a directory and its missing parents with mode 0700; existing ones are not changed."""
    try:
        _make(path)
    except OSError as error:
        raise Exit(CANNOT_CREATE, f"{path}: cannot be created: {error.strerror}") from None


def _make(path: Path) -> None:
    try:
        path.mkdir(mode=PRIVATE)
    except FileExistsError:
        return
    except FileNotFoundError:
        _make(path.parent)
        path.mkdir(mode=PRIVATE, exist_ok=True)


def keep_private(path: Path) -> None:
    """Create or check one of recalld's directories: not a link, owned by this user, mode 0700."""
    make(path)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise Exit(CANNOT_CREATE, f"{path}: is not a directory")
    if found.st_uid != os.geteuid():
        raise Exit(CANNOT_CREATE, f"{path}: belongs to another user")
    if found.st_mode & 0o077:
        path.chmod(PRIVATE)


def accept(path: Path) -> None:
    """Create a directory chosen by the user, or check that other users cannot replace its files.

    The owner of a directory can replace any file in it. So can every user with write permission,
    unless the directory is sticky.
    """
    make(path)
    try:
        found = path.stat()
    except OSError as error:
        raise Exit(CANNOT_CREATE, f"{path}: {error.strerror}") from None
    if not stat.S_ISDIR(found.st_mode):
        raise Exit(CANNOT_CREATE, f"{path}: is not a directory")
    if found.st_uid not in (os.geteuid(), 0):
        raise Exit(CANNOT_CREATE, f"{path}: belongs to another user")
    if found.st_mode & 0o022 and not found.st_mode & stat.S_ISVTX:
        mode = stat.S_IMODE(found.st_mode)
        raise Exit(
            CANNOT_CREATE,
            f"{path}: others can write to it (mode {mode:04o}); choose another directory"
            " or remove the permission (chmod go-w)",
        )

"""Directories: made private, our own kept private, other people's left as they are.

A directory that we make is 0700, and so is each one we make above it (`Path.mkdir(parents=True)`
gives those the mode of the umask). Our own directories (data, state, runtime) are closed again
if somebody opened them. A directory that was there before us, such as the /tmp that a socket was
put into, is never changed: it is good enough or it is refused. Standard library only, for the
bridge.
"""

import os
import stat
from pathlib import Path

from daemon.exit_codes import CANNOT_CREATE, Exit

PRIVATE = 0o700


def make(path: Path) -> None:
    """Make a directory, and what is missing above it, for its owner only; what is there stays."""
    try:
        _make(path)
    except OSError as error:
        raise Exit(CANNOT_CREATE, f"{path}: cannot be made: {error.strerror}") from None


def _make(path: Path) -> None:
    try:
        path.mkdir(mode=PRIVATE)
    except FileExistsError:
        return
    except FileNotFoundError:
        _make(path.parent)
        path.mkdir(mode=PRIVATE, exist_ok=True)


def keep_private(path: Path) -> None:
    """Make or check a directory of our own: no link, ours, 0700; `Exit` says what is wrong."""
    make(path)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise Exit(CANNOT_CREATE, f"{path}: is not a directory")
    if found.st_uid != os.geteuid():
        raise Exit(CANNOT_CREATE, f"{path}: belongs to another user")
    if found.st_mode & 0o077:
        path.chmod(PRIVATE)


def accept(path: Path) -> None:
    """Make a directory of somebody's choice, or check, unchanged, that nobody can swap its files.

    Whoever may write to a directory may put another file in the place of ours, unless the directory
    is sticky; so may its owner.
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
            " or take that right away (chmod go-w)",
        )

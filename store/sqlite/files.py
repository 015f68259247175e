"""Private files and directories, and atomic replacement of a file.

A rename is atomic but not durable: the new bytes must be on the disk before the rename, and the
directory must be synced after it.
"""

import os
from pathlib import Path

PRIVATE_FILE = 0o600
PRIVATE_DIRECTORY = 0o700


def make_private_directory(path: Path) -> None:
    """Create a directory that only its owner can enter, and its missing parents; durably.

    An existing directory keeps its mode, because others may use it too.
    """
    if not path.parent.exists():
        make_private_directory(path.parent)
    if not path.exists():
        path.mkdir(mode=PRIVATE_DIRECTORY, exist_ok=True)
        sync_directory(path.parent)


def directory_fault(directory: Path, file: Path) -> str | None:
    """The name of the fault that keeps a data directory from being used, or None.

    Three system calls, so that every health check can look.
    """
    if not directory.is_dir() or not file.is_file():
        return "directory-missing"
    return None if os.access(directory, os.W_OK | os.X_OK) else "directory-read-only"


def create_private(path: Path) -> bool:
    """Create an empty file that only its owner can read. False if it exists already."""
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        os.close(os.open(path, flags, PRIVATE_FILE))
    except FileExistsError:
        return False
    return True


def replace_file(path: Path, content: bytes) -> None:
    """Replace the file at `path`; after a crash it has either the old or the new content."""
    temporary = path.with_name(path.name + ".tmp")
    temporary.unlink(missing_ok=True)
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(temporary, flags, PRIVATE_FILE), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def sync_file(path: Path) -> None:
    """Make the content of a file durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

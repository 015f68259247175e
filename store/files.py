"""Private files and directories, atomic replacement of a file, and the errors of the file system.

A rename is atomic but not durable: the new bytes must be on the disk before the rename, and the
directory must be synced after it.
"""

import errno
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from store.errors import StorageFailed, StorageFull, StorageReadOnly, StoreError

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


def file_error(error: OSError) -> StoreError:
    """The engine's error for an error of the file system, without the path."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return StorageFull("no space left on the disk")
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return StorageReadOnly("the data directory may not be written")
    return StorageFailed(f"a file operation failed ({errno_name(error)})")


@contextmanager
def file_errors() -> Generator[None]:
    """Raise the engine's error for any `OSError` inside the block."""
    try:
        yield
    except OSError as error:
        raise file_error(error) from error


def errno_name(error: OSError) -> str:
    """The symbolic name of the error number, such as "ENOSPC"."""
    return errno.errorcode.get(error.errno or 0, "?")

"""The lock that makes one process the owner of a data directory.

The kernel drops it when its holder dies, however that happens, so a lock file never needs to be
cleaned up and is never removed. The pid inside is for people; nothing decides by it.
"""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from daemon.exits import CANNOT_CREATE, LOCKED, Exit


@contextmanager
def owned(path: Path, role: str) -> Generator[None]:
    """Hold the lock for the block; `Exit(LOCKED)` names who has it."""
    descriptor = open_lock(path)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(descriptor, 200, 0).decode(errors="replace").strip() or "unknown"
            raise Exit(LOCKED, f"the data directory is in use by {holder}") from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"pid {os.getpid()} ({role})\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def open_lock(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise Exit(CANNOT_CREATE, f"{path}: {error.strerror}") from None

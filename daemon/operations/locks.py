"""The lock that makes one process the owner of a data directory.

The kernel drops it when its holder dies, however that happens, so a lock file never needs to be
cleaned up and is never removed. The pid inside is for people; nothing decides by it.
"""

import fcntl
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from daemon.exit_codes import CANNOT_CREATE, LOCKED, Exit


@contextmanager
def owned(path: Path, role: str, patience: float = 0.0) -> Generator[None]:
    """Hold the lock for the block; `Exit(LOCKED)` names who has it after `patience` seconds."""
    descriptor = open_lock(path)
    try:
        deadline = time.monotonic() + patience
        while not _is_taken(descriptor):
            if time.monotonic() >= deadline:
                holder = os.pread(descriptor, 200, 0).decode(errors="replace").strip() or "unknown"
                raise Exit(LOCKED, f"the data directory is in use by {holder}")
            time.sleep(0.02)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"pid {os.getpid()} ({role})\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _is_taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def open_lock(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise Exit(CANNOT_CREATE, f"{path}: {error.strerror}") from None

"""The lock that makes one process the owner of a data directory.

The kernel releases the lock when its holder exits for any reason, so a lock file is never stale and
is never deleted. The process id in it is information for people only.
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
    """Hold the lock; after `patience` seconds `Exit(LOCKED)` names the process that holds it."""
    descriptor = open_lock(path)
    try:
        deadline = time.monotonic() + patience
        while not _try_lock(descriptor):
            if time.monotonic() >= deadline:
                holder = os.pread(descriptor, 200, 0).decode(errors="replace").strip() or "unknown"
                raise Exit(LOCKED, f"the data directory is in use by {holder}")
            time.sleep(0.02)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"pid {os.getpid()} ({role})\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def open_lock(path: Path) -> int:
    """Open or create a lock file; links are not followed."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise Exit(CANNOT_CREATE, f"{path}: {error.strerror}") from None

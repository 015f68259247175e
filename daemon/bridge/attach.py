"""Finding the daemon, or starting one: what `recalld stdio` does before it is a bridge.

Everybody who finds no daemon queues at the start lock; the first starts one and waits until it
says that its socket is open, the others find it there. Standard library only, and little of it:
this runs while a client waits for its first answer.
"""

import errno
import fcntl
import os
import select
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Final

from daemon.config import Settings
from daemon.exit_codes import CANNOT_CREATE, UNAVAILABLE, Exit
from daemon.operations import directories

_NOBODY: Final = (errno.ENOENT, errno.ECONNREFUSED)
LOG_LIMIT: Final = 5 * 1024 * 1024
#: What one client says for itself. A daemon serves many: it hears these from each on attaching.
OURS_ALONE: Final = frozenset({"RECALLD_BANK", "AWARENESS_MEMORY_ID", "RECALLD_DIALECTS"})


def connect(path: Path, timeout: float | None = None) -> socket.socket | None:
    """A connection to the daemon; None when nobody listens there."""
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    link.settimeout(timeout)
    try:
        link.connect(str(path))
    except OSError as error:
        link.close()
        if error.errno in _NOBODY:
            return None
        if error.errno == errno.EAGAIN:
            raise Exit(UNAVAILABLE, f"{path}: the daemon is too busy to accept") from None
        raise Exit(UNAVAILABLE, f"{path}: {error.strerror or error}") from None
    return link


def connect_or_start(settings: Settings) -> socket.socket:
    """A connection to the daemon, starting one if need be; `Exit` says why there is none."""
    link = connect(settings.socket)
    if link is not None:
        return link
    deadline = time.monotonic() + settings.start_seconds
    lock = hold_start(settings, "is still starting the daemon")
    try:
        link = connect(settings.socket)
        if link is not None:
            return link
        _start(settings, deadline)
        link = connect(settings.socket)
        if link is None:
            raise Exit(UNAVAILABLE, f"the daemon left at once; see {settings.log_file}")
        return link
    finally:
        os.close(lock)


def hold_start(settings: Settings, why: str) -> int:
    """The start lock, held until it is closed; who waits for it in vain is told why it is held."""
    deadline = time.monotonic() + settings.start_seconds
    directories.make(settings.directories.state)
    lock = os.open(settings.start_lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while not _is_taken(lock):
            if time.monotonic() > deadline:
                holder = os.pread(lock, 200, 0).decode(errors="replace").strip()
                said = holder or "another process is still starting the daemon"
                raise Exit(UNAVAILABLE, f"{said}; try again")
            time.sleep(0.005)
    except BaseException:
        os.close(lock)
        raise
    try:
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"pid {os.getpid()} {why}".encode(), 0)
    except OSError:
        pass  # a full disk: the lock holds without its note
    return lock


def _is_taken(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _start(settings: Settings, deadline: float) -> None:
    """Start a daemon that outlives us, and wait until it listens."""
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    log = _open_log(settings.log_file)
    # -P: a folder called daemon in the directory we were started in is not this program.
    arguments = [sys.executable, "-P", "-m", "daemon", "serve", "--spawned", "--no-http"]
    arguments += ["--ready-fd", str(writing), "--socket", str(settings.socket)]
    if settings.fixtures:
        arguments.append("--fixtures")
    try:
        os.posix_spawn(
            sys.executable,
            arguments,
            {name: value for name, value in os.environ.items() if name not in OURS_ALONE},
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, log, 1),
                (os.POSIX_SPAWN_DUP2, log, 2),
            ],
            setsid=True,  # a client that kills our process group must not take the daemon along
            setsigdef=[signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE],
        )
    except OSError as error:
        os.close(reading)
        raise Exit(UNAVAILABLE, f"the daemon cannot be started: {error.strerror}") from None
    finally:
        os.close(writing)
        os.close(log)
    try:
        waiting = max(0.0, deadline - time.monotonic())
        ready, _, _ = select.select([reading], [], [], waiting)
        if not ready:
            raise Exit(UNAVAILABLE, f"the daemon is not up yet; see {settings.log_file}")
        if not os.read(reading, 16):
            raise Exit(UNAVAILABLE, f"the daemon did not start: {_last_line(settings.log_file)}")
    finally:
        os.close(reading)


def reap() -> None:
    """Collect daemons we started that have died, so that none stays a zombie."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


def _open_log(path: Path) -> int:
    """The daemon's log; the one before is kept aside when it has grown large."""
    try:
        if path.exists() and path.stat().st_size > LOG_LIMIT:
            path.rename(path.with_suffix(".log.1"))
        return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise Exit(CANNOT_CREATE, f"{path}: {error.strerror}") from None


def _last_line(path: Path) -> str:
    try:
        lines = path.read_text(errors="replace").strip().splitlines()
    except OSError:
        lines = []
    return lines[-1][:300] if lines else "it said nothing"

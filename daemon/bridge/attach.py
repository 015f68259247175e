"""Connects to the daemon, and starts one when none is running.

Processes that find no daemon wait for the start lock. The first one starts a daemon and waits until
its socket is open; the others then connect to it. Standard library only, because this runs while
a client waits for its first answer.
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
from typing import Any, Final

from daemon.bridge import daemon_identity
from daemon.config import Settings
from daemon.exit_codes import CANNOT_CREATE, LOCKED, UNAVAILABLE, Exit
from daemon.operations import directories

_NOT_LISTENING: Final = (errno.ENOENT, errno.ENOTDIR, errno.ECONNREFUSED)
ASK_SECONDS: Final = 10.0
MAX_LOG_BYTES: Final = 5 * 1024 * 1024
#: Variables of one client. Each bridge sends its own values when it attaches, so a daemon that it
#: starts does not inherit them.
CLIENT_VARIABLES: Final = frozenset(
    {
        "RECALLD_BANK",
        "AWARENESS_MEMORY_ID",
        "RECALLD_DIALECTS",
        "RECALLD_RATE_LIMIT",
        "CLAUDE_RECALL_RATE_LIMIT",
    }
)


def connect(path: Path, timeout: float | None = None) -> socket.socket | None:
    """Return a connection to the daemon; None when no daemon is listening.

    Raises `Exit` when the socket or the listening process belongs to another user.
    """
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    link.settimeout(timeout)
    try:
        daemon_identity.check_files(path)
        link.connect(str(path))
        daemon_identity.check_process(link, path)
    except Exit:
        link.close()
        raise
    except OSError as error:
        link.close()
        if error.errno in _NOT_LISTENING:
            return None
        if error.errno == errno.EAGAIN:
            raise Exit(UNAVAILABLE, f"{path}: the daemon is too busy to accept") from None
        raise Exit(UNAVAILABLE, f"{path}: {error.strerror or error}") from None
    return link


def replace(settings: Settings, link: socket.socket) -> None:
    """Stop an older daemon and start one of this version, with the same HTTP address.

    Other bridges that lose the old daemon wait for the start lock, so that none of them starts a
    daemon without HTTP in between.
    """
    deadline = time.monotonic() + settings.start_seconds
    lock = acquire_start_lock(settings, "is replacing an older daemon")
    try:
        http = _http_address(settings)
        _ask(link, "recalld/stop")
        link.settimeout(None)
        while link.recv(65_536):
            pass
        other = connect(settings.socket)
        if other is not None:  # another process was faster
            other.close()
            return
        _wait_for_lock(settings, deadline)
        try:
            _start(settings, deadline, http)
        except Exit:
            if not http:
                raise
            _start(settings, deadline)  # the address is taken: MCP over stdio is more important
    finally:
        os.close(lock)


def take_over(settings: Settings) -> int | None:
    """Stop a daemon that a client started, so that this process can be the daemon.

    Returns the start lock, to be closed when this process listens; None if no daemon runs. A daemon
    that somebody else started with `recalld serve` is left alone.
    """
    link = connect(settings.socket, ASK_SECONDS)
    if link is None:
        return None
    lock = acquire_start_lock(settings, "(recalld serve) is taking over")
    try:
        with link:
            status = _ask(link, "recalld/status")
            if not status.get("spawned", status.get("http") is None):
                raise Exit(
                    LOCKED,
                    f"`recalld serve` runs already, as pid {status.get('pid')}; stop it first"
                    " (recalld stop)",
                )
            _ask(link, "recalld/stop")
        _wait_for_lock(settings, time.monotonic() + settings.start_seconds)
    except (OSError, ValueError, KeyError, TypeError):
        os.close(lock)
        message = f"the daemon at {settings.socket} does not answer as recalld does"
        raise Exit(UNAVAILABLE, message) from None
    except BaseException:
        os.close(lock)
        raise
    return lock


def _http_address(settings: Settings) -> str:
    """The address at which a running daemon serves HTTP; empty if it does not."""
    link = connect(settings.socket, ASK_SECONDS)
    if link is None:
        return ""
    with link:
        url = _ask(link, "recalld/status").get("http")
    return url.partition("://")[2].strip("/") if isinstance(url, str) else ""


def _ask(link: socket.socket, method: str) -> dict[str, Any]:
    """Send a request without parameters; ValueError, KeyError or OSError if there is no result."""
    import json

    request: dict[str, Any] = {"jsonrpc": "2.0", "id": "recalld-attach", "method": method}
    link.settimeout(ASK_SECONDS)
    link.sendall(json.dumps(request).encode() + b"\n")
    line = b""
    while not line.endswith(b"\n"):
        chunk = link.recv(65_536)
        if not chunk:
            raise ConnectionResetError
        line += chunk
    result: dict[str, Any] = json.loads(line)["result"]
    return result


def _wait_for_lock(settings: Settings, deadline: float) -> None:
    """Wait until a stopping daemon has released the data directory."""
    try:
        lock = os.open(settings.lock, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return
    try:
        while not _try_lock(lock):
            if time.monotonic() > deadline:
                raise Exit(UNAVAILABLE, "the old daemon has not exited yet; try again")
            time.sleep(0.005)
    finally:
        os.close(lock)


def connect_or_start(settings: Settings) -> socket.socket:
    """Return a connection to the daemon; start a daemon if none is running."""
    link = connect(settings.socket)
    if link is not None:
        return link
    deadline = time.monotonic() + settings.start_seconds
    lock = acquire_start_lock(settings, "is still starting the daemon")
    try:
        link = connect(settings.socket)
        if link is not None:
            return link
        _start(settings, deadline)
        link = connect(settings.socket)
        if link is None:
            raise Exit(UNAVAILABLE, f"the daemon exited at once; see {settings.log_file}")
        return link
    finally:
        os.close(lock)


def acquire_start_lock(settings: Settings, activity: str) -> int:
    """Return a descriptor that holds the start lock until it is closed.

    `activity` is written into the lock file, for the error message of a process that waits in vain.
    """
    deadline = time.monotonic() + settings.start_seconds
    directories.make(settings.directories.state)
    lock = _open(settings.start_lock, os.O_RDWR)
    try:
        while not _try_lock(lock):
            if time.monotonic() > deadline:
                holder = os.pread(lock, 200, 0).decode(errors="replace").strip()
                holder = holder or "another process is still starting the daemon"
                raise Exit(UNAVAILABLE, f"{holder}; try again")
            time.sleep(0.005)
    except BaseException:
        os.close(lock)
        raise
    try:
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"pid {os.getpid()} {activity}".encode(), 0)
    except OSError:
        pass  # a full disk: the lock works without the text
    return lock


def _try_lock(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _start(settings: Settings, deadline: float, http: str = "") -> None:
    """Start a daemon that outlives this process, and wait until it listens.

    With `http`, an address, the daemon serves HTTP there and does not end when it is idle.
    """
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    log = _open_log(settings.log_file)
    # -P: do not import a folder named `daemon` from the current directory.
    arguments = [sys.executable, "-P", "-m", "daemon", "serve", "--spawned"]
    arguments += ["--bind", http] if http else ["--no-http"]
    arguments += ["--ready-fd", str(writing), "--socket", str(settings.socket)]
    if settings.fixtures:
        arguments.append("--fixtures")
    try:
        _spawn_detached(arguments, log)
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


def _spawn_detached(arguments: list[str], log: int) -> None:
    """Run a program as a child of init, in a session of its own.

    Some clients kill every descendant of their MCP process when they exit. A short-lived
    intermediate process starts the daemon, so that the daemon is no descendant of the client.
    """
    intermediate = os.fork()
    if intermediate == 0:
        failure = 0
        try:
            _spawn(arguments, log)
        except OSError as error:
            failure = error.errno or errno.EIO
        finally:
            os._exit(failure)
    _, status = os.waitpid(intermediate, 0)
    failure = os.waitstatus_to_exitcode(status)
    if failure:
        failure = failure if failure > 0 else errno.EINTR
        raise OSError(failure, os.strerror(failure))


def _spawn(arguments: list[str], log: int) -> None:
    os.posix_spawn(
        arguments[0],
        arguments,
        {name: value for name, value in os.environ.items() if name not in CLIENT_VARIABLES},
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, log, 1),
            (os.POSIX_SPAWN_DUP2, log, 2),
        ],
        setsid=True,  # a client that kills our process group must not kill the daemon
        setsigdef=[signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE],
    )


def _open_log(path: Path) -> int:
    """Open the log of the daemon; a large one is renamed first."""
    try:
        if path.exists() and path.stat().st_size > MAX_LOG_BYTES:
            path.rename(path.with_suffix(".log.1"))
    except OSError as error:
        raise Exit(CANNOT_CREATE, f"{path}: {error.strerror}") from None
    return _open(path, os.O_WRONLY | os.O_APPEND)


def _open(path: Path, flags: int) -> int:
    try:
        return os.open(path, flags | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise Exit(CANNOT_CREATE, f"{path}: {error.strerror}") from None


def _last_line(path: Path) -> str:
    try:
        lines = path.read_text(errors="replace").strip().splitlines()
    except OSError:
        lines = []
    return lines[-1][:300] if lines else "its log is empty"

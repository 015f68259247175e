"""The reasons for which a daemon ends: signals, idleness, a lost client, deleted files."""

import asyncio
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import anyio
import structlog

from daemon.rpc.connections import Connections
from daemon.rpc.shutdown import Shutdown

PARENT_SECONDS: Final = 2.0
CHECK_SECONDS: Final = 2.0

log: Final = structlog.get_logger()


async def stop_when_orphaned(shutdown: Shutdown, parent: int) -> None:
    """Stop when the client dies, even if another process still holds our input open."""
    while os.getppid() == parent:  # noqa: ASYNC110  (there is no event to wait for)
        await anyio.sleep(PARENT_SECONDS)
    log.info("daemon.orphaned")
    shutdown.stop()


def handle_signals(shutdown: Shutdown) -> None:
    """SIGTERM and SIGINT start an orderly shutdown; SIGHUP is ignored.

    These are plain handlers, not the event loop's: asyncio removes its own when the loop closes,
    and a second signal at that moment would end the process with the wrong exit code.
    """
    loop = asyncio.get_running_loop()

    def stop(_number: int, _frame: object) -> None:
        loop.call_soon_threadsafe(shutdown.stop)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def ignore_signals() -> None:
    """The process is about to exit; a signal now must not change its exit code."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)


async def stop_when_idle(
    connections: Connections, is_busy: Callable[[], bool], shutdown: Shutdown, idle_seconds: float
) -> None:
    """Stop a daemon that a bridge started after `idle_seconds` without a connection or work."""
    while True:
        idle = time.monotonic() - connections.idle_since
        if not len(connections) and not is_busy() and idle >= idle_seconds:
            log.info("daemon.idle", seconds=round(idle))
            shutdown.stop()
            return
        is_idle = not len(connections) and not is_busy()
        pause = idle_seconds - idle if is_idle else min(idle_seconds, 5.0)
        await anyio.sleep(max(0.05, pause))


async def stop_when_unreachable(shutdown: Shutdown, files: tuple[Path, ...]) -> None:
    """Stop when the socket or the lock file is gone: no client can reach this daemon any more.

    Acknowledged writes are on disk already, or were deleted with the directory. Attached bridges
    find or start the next daemon.
    """
    ours = [_inode(path) for path in files]
    while [_inode(path) for path in files] == ours:  # noqa: ASYNC110  (there is no event)
        await anyio.sleep(CHECK_SECONDS)
    log.warning("daemon.unreachable", gone=[p.name for p in files if _inode(p) is None])
    shutdown.stop()


def _inode(path: Path) -> int | None:
    try:
        return path.lstat().st_ino
    except OSError:
        return None

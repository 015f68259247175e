"""Descriptors: a limit that is high enough, a reserve for files, and quiet accept errors.

A process often starts with 1,024 descriptors. Every connection takes one, and so do the files of
open banks. So the limit is raised as far as the system allows, and connections are limited so that
`RESERVED` descriptors remain for files: a flood of connections must not make a write fail.

If descriptors run out all the same, asyncio reports every single failure to accept a connection,
up to 512 times a second, with a traceback. Here such failures are counted and logged at most once
in `QUIET_SECONDS`.
"""

import asyncio
import errno
import resource
from typing import Any, Final

import structlog

#: Descriptors for databases, logs, snapshots and probes. 64 open banks take about 400.
RESERVED: Final = 512
#: More than this is of no use, and some systems allow a billion.
ENOUGH: Final = 65_536
FEWEST: Final = 16
QUIET_SECONDS: Final = 10.0

_OUT_OF_RESOURCES: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

log: Final = structlog.get_logger()


def raise_limit() -> int:
    """Raise the soft limit of descriptors to the hard limit, within reason; returns the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = ENOUGH if hard == resource.RLIM_INFINITY else min(hard, ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        return wanted
    return ENOUGH if soft == resource.RLIM_INFINITY else soft


def connections_within(descriptors: int, wanted: int, *, listeners: int = 2) -> int:
    """The connections that each listener may have, so that the reserve remains."""
    room = max(FEWEST, (descriptors - RESERVED) // listeners)
    if room < wanted:
        log.warning("connections.limited", connections=room, descriptors=descriptors)
    return min(wanted, room)


class LoopErrors:
    """An exception handler for the event loop that keeps accept errors from filling the log."""

    def __init__(self) -> None:
        self._count = 0
        self._quiet_until = float("-inf")

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not isinstance(error, OSError) or error.errno not in _OUT_OF_RESOURCES:
            loop.default_exception_handler(context)
            return
        self._count += 1
        if loop.time() >= self._quiet_until:
            name = errno.errorcode.get(error.errno, "?")
            log.error("accept.failed", error=name, failures=self._count)
            self._quiet_until = loop.time() + QUIET_SECONDS
            self._count = 0

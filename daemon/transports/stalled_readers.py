"""Closes a connection whose client stops reading its answers.

The time runs while output waits in the transport, and starts again whenever the client takes some
of it. A client that is slow but reads is never closed; an idle client has no output waiting.
"""

import asyncio
from typing import Final

import structlog

STALL_SECONDS: Final = 30.0

log: Final = structlog.get_logger()


class StallGuard:
    """The watch over the output of one transport; call `wrote` after each write."""

    __slots__ = ("_last", "_loop", "_name", "_seconds", "_timer", "_transport")

    def __init__(
        self, transport: asyncio.WriteTransport, name: str, seconds: float = STALL_SECONDS
    ) -> None:
        self._transport = transport
        self._name = name
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._last = 0

    def wrote(self, _bytes: int = 0) -> None:
        """Output was added: watch it until all of it is sent."""
        waiting = self._transport.get_write_buffer_size()
        if self._timer is None and waiting:
            self._last = waiting
            self._timer = self._loop.call_later(self._seconds, self._look)
        elif self._timer is not None:
            self._last += _bytes

    def stop(self) -> None:
        """The connection is gone."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = None
        waiting = self._transport.get_write_buffer_size()
        if not waiting:
            return
        if waiting >= self._last:
            log.warning("peer.stalled", transport=self._name, unsent=waiting)
            self._transport.abort()
            return
        self._last = waiting
        self._timer = self._loop.call_later(self._seconds, self._look)

"""The wire of a peer on an asyncio transport.

The event loop calls the protocol object directly when bytes arrive: there is no task, queue or
wake-up between a request and its answer.
"""

import asyncio
import select
from typing import Final, cast

import anyio

from daemon.rpc.peer import Peer, PeerServices
from daemon.transports.stalled_readers import STALL_SECONDS, StallGuard

#: The time a half-closed connection may wait for its last answers.
LINGER_SECONDS: Final = 10.0


class StreamWire(asyncio.Protocol):
    """A two-way asyncio transport and its peer."""

    stall_seconds = STALL_SECONDS
    is_probe = False

    def __init__(self, services: PeerServices, transport: str, private: frozenset[str]) -> None:
        self._services = services
        self._name = transport
        self._private = private
        self._transport: asyncio.Transport
        self._peer: Peer
        self._guard: StallGuard
        self._gone = anyio.Event()

    # --- called by asyncio -------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        high = self._services.settings.output_bytes
        self._transport.set_write_buffer_limits(high=high, low=high // 4)
        self._guard = StallGuard(self._transport, self._name, self.stall_seconds)
        self._peer = Peer(
            self._services,
            self,
            transport=self._name,
            private=self._private,
            is_probe=self.is_probe,
        )

    def data_received(self, data: bytes) -> None:
        self._peer.feed(data)

    def eof_received(self) -> bool:
        """A half-closed connection still gets its answers; a fully closed one is dropped."""
        if self._is_hung_up():
            return False
        self._peer.end_input()
        self._services.tasks.start_soon(self._linger)
        return True

    def resume_writing(self) -> None:
        self._peer.resume()

    def connection_lost(self, exc: Exception | None) -> None:
        self._gone.set()
        self._guard.stop()
        self._peer.lost()

    # --- called by the peer ------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        self._transport.write(data)
        self._guard.wrote(len(data))

    def unsent(self) -> int:
        return self._transport.get_write_buffer_size()

    def pause(self) -> None:
        self._transport.pause_reading()

    def resume(self) -> None:
        if not self._transport.is_closing():
            self._transport.resume_reading()

    def close(self) -> None:
        self._transport.close()

    # -----------------------------------------------------------------------------------------

    def _is_hung_up(self) -> bool:
        poll = select.poll()
        poll.register(self._transport.get_extra_info("socket").fileno(), 0)
        return any(event & select.POLLHUP for _, event in poll.poll(0))

    async def _linger(self) -> None:
        with anyio.move_on_after(LINGER_SECONDS):
            await self._gone.wait()
        if not self._gone.is_set():
            self._transport.abort()

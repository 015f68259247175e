"""asyncio transports, as the peer wants them.

A protocol object's methods are called straight from the event loop when bytes are there: no task,
no queue and no wake-up stand between a request and its answer.
"""

import asyncio
import select
from typing import TYPE_CHECKING, Final, cast

import anyio

from daemon.rpc.peer import Peer

if TYPE_CHECKING:
    from daemon.rpc.hub import Hub

#: How long a half-closed connection may wait for its last answers.
LINGER_SECONDS: Final = 10.0


class StreamWire(asyncio.Protocol):
    """A two-way asyncio transport and its peer."""

    def __init__(self, hub: "Hub", transport: str, private: frozenset[str]) -> None:
        self._hub = hub
        self._name = transport
        self._private = private
        self._transport: asyncio.Transport
        self._peer: Peer
        self._gone = anyio.Event()

    # --- called by asyncio -------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        high = self._hub.settings.output_bytes
        self._transport.set_write_buffer_limits(high=high, low=high // 4)
        self._peer = Peer(self._hub, self, transport=self._name, private=self._private)

    def data_received(self, data: bytes) -> None:
        self._peer.feed(data)

    def eof_received(self) -> bool:
        """Half-closed: answers are still wanted. Wholly closed: nobody reads them any more."""
        if self._is_hung_up():
            return False
        self._peer.end_input()
        self._hub.tasks.start_soon(self._linger)
        return True

    def resume_writing(self) -> None:
        self._peer.resume()

    def connection_lost(self, exc: Exception | None) -> None:
        self._gone.set()
        self._peer.lost()

    # --- called by the peer ------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        self._transport.write(data)

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

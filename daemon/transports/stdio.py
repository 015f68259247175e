"""stdio: the wire of a process that its client started.

asyncio reads and writes pipes and sockets. It cannot wait for regular files, terminals and the null
device, so a thread reads those.
"""

import asyncio
import os
import stat
from typing import Final

import anyio
import anyio.to_thread

from daemon.operations.descriptors import Descriptors
from daemon.rpc.peer import Peer, PeerServices

#: The time for answers under way after the end of input; clients wait 2 s before they kill.
GRACE_SECONDS: Final = 1.2
FLUSH_SECONDS: Final = 0.5
CHUNK: Final = 65_536


class StdioWire:
    """Two descriptors as one connection. `ended`: the input is over. `done`: the connection is."""

    def __init__(self, services: PeerServices) -> None:
        self.done = anyio.Event()
        self.ended = anyio.Event()
        self.peer: Peer
        self._services = services
        self._reader: asyncio.ReadTransport | None = None
        self._writer: asyncio.WriteTransport | None = None
        self._file = -1
        self._resumed = anyio.Event()
        self._is_paused = False

    async def open(self, descriptors: Descriptors) -> None:
        loop = asyncio.get_running_loop()
        if _can_wait(descriptors.write):
            high = self._services.settings.output_bytes
            writer, _ = await loop.connect_write_pipe(
                lambda: _WriteEnd(self), os.fdopen(descriptors.write, "wb", 0)
            )
            writer.set_write_buffer_limits(high=high, low=high // 4)
            self._writer = writer
        else:
            self._file = descriptors.write
        self.peer = Peer(self._services, self, transport="stdio")
        if _can_wait(descriptors.read):
            reader, _ = await loop.connect_read_pipe(
                lambda: _ReadEnd(self), os.fdopen(descriptors.read, "rb", 0)
            )
            self._reader = reader
        else:
            self._services.tasks.start_soon(self._read_in_thread, descriptors.read)

    async def serve(self) -> None:
        """Run until the client closes our input or output; running calls then get a grace time."""
        await self.ended.wait()
        with anyio.move_on_after(GRACE_SECONDS):
            await self.done.wait()
        if not self.done.is_set():
            self.peer.cancel_all()
            await self.shut()

    async def shut(self) -> None:
        """Flush the queued output and close."""
        self.close()
        with anyio.move_on_after(FLUSH_SECONDS):
            await self.done.wait()
        if not self.done.is_set() and self._writer is not None:
            self._writer.abort()
        self.peer.lost()

    # --- called by the peer ------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        if self._writer is not None:
            self._writer.write(data)
            return
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._file, view) :]
        except OSError:
            self.over()

    def unsent(self) -> int:
        return self._writer.get_write_buffer_size() if self._writer is not None else 0

    def pause(self) -> None:
        self._is_paused = True
        if self._reader is not None and not self._reader.is_closing():
            self._reader.pause_reading()

    def resume(self) -> None:
        self._is_paused = False
        self._resumed.set()
        self._resumed = anyio.Event()
        if self._reader is not None and not self._reader.is_closing():
            self._reader.resume_reading()

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
        else:
            self.over()

    # -----------------------------------------------------------------------------------------

    def input_over(self) -> None:
        if not self.ended.is_set():
            self.ended.set()
            self.peer.end_input()

    def over(self) -> None:
        """The connection is gone."""
        self.ended.set()
        self.done.set()
        self.peer.lost()

    async def _read_in_thread(self, descriptor: int) -> None:
        while True:
            try:
                chunk = await anyio.to_thread.run_sync(
                    os.read, descriptor, CHUNK, abandon_on_cancel=True
                )
            except OSError:
                chunk = b""
            if not chunk:
                break
            self.peer.feed(chunk)
            while self._is_paused:
                await self._resumed.wait()
        self.input_over()


class _ReadEnd(asyncio.Protocol):
    def __init__(self, wire: StdioWire) -> None:
        self._wire = wire

    def data_received(self, data: bytes) -> None:
        self._wire.peer.feed(data)

    def eof_received(self) -> None:
        self._wire.input_over()

    def connection_lost(self, exc: Exception | None) -> None:
        self._wire.input_over()


class _WriteEnd(asyncio.Protocol):
    def __init__(self, wire: StdioWire) -> None:
        self._wire = wire

    def resume_writing(self) -> None:
        self._wire.peer.resume()

    def connection_lost(self, exc: Exception | None) -> None:
        self._wire.over()


def _can_wait(descriptor: int) -> bool:
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)

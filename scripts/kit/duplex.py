"""Non-blocking line client on two descriptors, in one thread.

A client that writes without reading can deadlock with a server whose output buffer is full, so
every wait here covers both directions.
"""

import contextlib
import os
import select
import time
from collections.abc import Callable
from typing import Final

CHUNK: Final = 1 << 16


class Silence(Exception):
    """The awaited line did not arrive in time."""


class Hangup(Exception):
    """The other side closed the connection."""


class Duplex:
    """Writes bytes and passes every received line to `heard`, in order."""

    def __init__(self, read: int, write: int, heard: Callable[[bytes], None]) -> None:
        self.read, self.write, self.heard = read, write, heard
        for descriptor in {read, write}:
            os.set_blocking(descriptor, False)
        self._rest: list[bytes] = []

    def exchange(self, data: bytes, done: Callable[[], bool], seconds: float) -> None:
        """Write all bytes, and read until `done` returns true."""
        deadline = time.monotonic() + seconds
        left = memoryview(data)
        while left or not done():
            wait = deadline - time.monotonic()
            if wait <= 0:
                raise Silence(f"no answer within {seconds:g} s")
            readable, writable, _ = select.select(
                [self.read], [self.write] if left else [], [], min(wait, 1.0)
            )
            if writable:
                with contextlib.suppress(BlockingIOError):
                    try:
                        left = left[os.write(self.write, left) :]
                    except (BrokenPipeError, ConnectionResetError) as end:
                        raise Hangup("the server stopped reading") from end
            if readable:
                self._hear()

    def _hear(self) -> None:
        try:
            chunk = os.read(self.read, CHUNK)
        except BlockingIOError:
            return
        except ConnectionResetError as end:
            raise Hangup("the server reset the connection") from end
        if not chunk:
            raise Hangup("the server closed its output")
        if b"\n" not in chunk:
            self._rest.append(chunk)
            return
        first, *lines = chunk.split(b"\n")
        self.heard(b"".join([*self._rest, first]))
        for line in lines[:-1]:
            self.heard(line)
        self._rest = [lines[-1]] if lines[-1] else []

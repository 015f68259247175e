"""The frames of one HTTP response, sent as one JSON body or as an event stream.

A call that sends only its answer gets a JSON response. A message before the answer (progress, a log
message, a request to the client) or a long wait turns the response into an event stream. The choice
is made as late as possible, so that errors keep their status.

Streams of legacy sessions are resumable. Each event has an id, and sent events are kept for a
while, so that a client that lost the connection can fetch the rest with `Last-Event-ID`. An id
contains the label of its stream, so that a client never gets the events of another stream.
"""

from collections import deque
from typing import Final

import anyio

from daemon.transports.http.edge.messages import PLAIN, RawHeaders, Send

#: When a client should reconnect after we closed its stream.
RETRY_MS: Final = 500

STREAM_HEADERS: Final[RawHeaders] = [
    *PLAIN,
    (b"content-type", b"text/event-stream"),
    (b"x-accel-buffering", b"no"),
]


class Stream:
    """The queued frames of one response. A stream with a `label` is resumable."""

    def __init__(self, *, limit: int, label: str = "", priming: bool = False) -> None:
        self.label = label
        self.priming = priming
        #: Whether anything but the answer was sent, so that only an event stream can carry it.
        self.is_talkative = False
        self.is_done = False
        self.is_detached = False
        self.has_reader = False
        #: The status and extra headers of a JSON response.
        self.status: tuple[int, RawHeaders] = (200, [])
        self._limit = limit
        self._events: deque[tuple[int, bytes]] = deque()
        self._last = 0
        self._taken = 0
        self._unread = 0
        self._kept = 0
        self._wake = anyio.Event()
        self._drained = anyio.Event()
        self._turn = 0

    # --- the sending side --------------------------------------------------------------------

    def send(self, frame: bytes) -> None:
        """Queue a frame that is not the answer. A client that reads too slowly is dropped."""
        if self.is_done:
            return
        self.is_talkative = True
        self._append(frame)
        if self._unread > 4 * self._limit and not self.label:
            self.is_done = True

    def finish(self, frame: bytes = b"") -> None:
        """Queue the answer, if any, and end the stream."""
        if self.is_done:
            return
        if frame:
            self._append(frame)
        self.is_done = True
        self._wake.set()

    def detach(self) -> None:
        """Close the response but not the call; the client will fetch the rest later."""
        if self.label and (self.priming or self._last):
            self.is_detached = True
            self._wake.set()

    async def room(self) -> None:
        """Wait until the reader has taken most of the queued frames."""
        while self._unread > self._limit and not self.is_done and self.has_reader:
            await self._drained.wait()

    def _append(self, frame: bytes) -> None:
        self._last += 1
        self._events.append((self._last, frame))
        self._unread += len(frame)
        self._kept += len(frame)
        while self._kept > 4 * self._limit and len(self._events) > 1:
            number, old = self._events.popleft()
            self._kept -= len(old)
            if number > self._taken:
                self._unread -= len(old)
        self._wake.set()

    # --- the reading side --------------------------------------------------------------------

    @property
    def size(self) -> int:
        """The bytes kept for a client that reconnects."""
        return self._kept

    def take(self) -> list[tuple[int, bytes]]:
        """The events since the last call, numbered."""
        new = [event for event in self._events if event[0] > self._taken]
        self._taken = self._last
        self._unread = 0
        self._release_writers()
        if not self.label:
            self._events.clear()
            self._kept = 0
        return new

    def rewind(self, number: int) -> None:
        """Read again from after event `number`."""
        self._taken = min(number, self._last)
        self._unread = sum(len(frame) for n, frame in self._events if n > self._taken)

    def claim(self) -> int:
        """Become the reader; the previous reader stops."""
        self._turn += 1
        self.has_reader = True
        self._wake.set()
        return self._turn

    def is_mine(self, turn: int) -> bool:
        return self._turn == turn

    def release(self, turn: int) -> None:
        if self._turn == turn:
            self.has_reader = False
            self._release_writers()

    def _release_writers(self) -> None:
        drained, self._drained = self._drained, anyio.Event()
        drained.set()

    @property
    def position(self) -> int:
        """The number of the last event that was taken."""
        return self._taken

    async def wait(self, seconds: float) -> bool:
        """Wait for a change; False if there was none in that time."""
        if not self._wake.is_set():
            with anyio.move_on_after(seconds):
                await self._wake.wait()
        came = self._wake.is_set()
        if came:
            self._wake = anyio.Event()
        return came


def event(frame: bytes, label: str, number: int) -> bytes:
    """One server-sent event; the frame is one line that ends in LF."""
    head = b"id: %s.%d\n" % (label.encode(), number) if label else b""
    return head + b"event: message\ndata: " + frame + b"\n"


def priming_event(label: str, number: int) -> bytes:
    """An event without data, whose id can be resumed from (2025-11-25)."""
    return b"id: %s.%d\nretry: %d\ndata:\n\n" % (label.encode(), number, RETRY_MS)


async def write_stream(
    stream: Stream, send: Send, *, turn: int, keep_alive: float, headers: RawHeaders
) -> None:
    """Send the response as an event stream until it is done, detached or taken over."""
    await send(
        {"type": "http.response.start", "status": 200, "headers": [*STREAM_HEADERS, *headers]}
    )
    head = priming_event(stream.label, stream.position) if stream.priming else b":\n\n"
    await send({"type": "http.response.body", "body": head, "more_body": True})
    while stream.is_mine(turn):
        new = stream.take()
        if new:
            body = b"".join(event(frame, stream.label, number) for number, frame in new)
            await send({"type": "http.response.body", "body": body, "more_body": True})
            continue
        if stream.is_done or stream.is_detached:
            break
        if not await stream.wait(keep_alive):
            await send({"type": "http.response.body", "body": b":\n\n", "more_body": True})
    stream.is_detached = False
    await send({"type": "http.response.body", "body": b""})

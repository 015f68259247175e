"""uvicorn's HTTP/1.1 parser behind a door that does not wait for ever.

uvicorn bounds neither the time a request may take to arrive nor the size of its head. Here both
have a limit, as has the number of connections; a request for another server (absolute form) is not
ours to answer. What is refused before its head is whole never becomes a request: no handler hears
of it. The head of an answer waits for its body, so that an answer is one packet and one wake-up.
"""

import asyncio
import time
from collections.abc import Callable
from email.utils import formatdate
from typing import Any, Final, cast

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from daemon.transports.http.edge.messages import CODES, Pace, error_body

MOST_HEADERS: Final = 100
MOST_HEAD_BYTES: Final = 16 * 1024
#: How long we go on reading, and forgetting, what is still being sent to us after our last word:
#: closing at once would take that word away from whoever is still sending.
LINGER_SECONDS: Final = 2.0

_REASONS: Final = {
    400: b"Bad Request",
    403: b"Forbidden",
    408: b"Request Timeout",
    431: b"Request Header Fields Too Large",
    503: b"Service Unavailable",
}


class Doorway(ServerState):
    """What all connections share."""

    def __init__(self, connections: int, pace: Pace) -> None:
        super().__init__()
        self.pace = pace
        self.most_connections = connections
        #: Refused before they were a request, by status.
        self.refused: dict[tuple[str, ...], int] = {}
        self._dated = 0.0

    def date(self, now: float) -> None:
        """Keep the Date header right, to the second, without a timer."""
        if now - self._dated >= 1.0:
            self._dated = now
            self.default_headers = [(b"date", formatdate(usegmt=True).encode())]


class Door(HttpToolsProtocol):
    """One accepted connection."""

    def __init__(self, config: Config, doorway: Doorway) -> None:
        super().__init__(config=config, server_state=doorway, app_state={})
        self._doorway = doorway
        self._deadline: asyncio.TimerHandle | None = None
        self._head_bytes = 0
        self._in_head = True
        self._in_body = False
        self._is_shut = False
        self._is_lingering = False
        #: The request whose body is being read has a cycle of its own: what answers it.
        self._has_cycle = False
        #: The cycle whose handler runs, or ran last; uvicorn's own `cycle` is the newest, which
        #: may still wait behind it.
        self._active: RequestResponseCycle | None = None
        #: What is said last, when everything before it is answered.
        self._farewell = b""
        self._is_patient = True

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) > self._doorway.most_connections:
            self._turn_away(503, f"at most {self._doorway.most_connections} connections")
            return
        self._start_clock(self._doorway.pace.head)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_clock()
        if self._active is not None:
            _hang_up(self._active)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_shut:
            return
        if self._in_head:
            self._head_bytes += len(data)
        super().data_received(data)
        # A clock runs only while a request is under way: most arrive whole, and need none.
        if self._in_body:
            if self._deadline is None:
                self._start_clock(self._doorway.pace.body)
        elif self._head_bytes:
            if self._deadline is None:
                self._start_clock(self._doorway.pace.head)
            # What is still in the head after all of `data` was read is all head.
            if self._head_bytes > MOST_HEAD_BYTES:
                self._turn_away(431, f"the head of a request is at most {MOST_HEAD_BYTES} bytes")

    def on_message_begin(self) -> None:
        self._in_head = True
        self._has_cycle = False
        # At least this: it may have begun in a chunk that was counted for the request before it.
        self._head_bytes = max(1, self._head_bytes)
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._stop_clock()
        self._in_head = False
        self._in_body = True
        self._head_bytes = 0
        if self._is_shut:
            return
        head = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if len(self.headers) > MOST_HEADERS or head > MOST_HEAD_BYTES:
            self._turn_away(431, f"at most {MOST_HEADERS} headers, {MOST_HEAD_BYTES} bytes in all")
            return
        if not self.url.startswith(b"/") and self.url != b"*":
            self._turn_away(403, "this is no proxy: the request target must be a path")
            return
        codings = b",".join(v for n, v in self.headers if n == b"transfer-encoding").lower()
        if codings.strip() not in (b"", b"chunked"):
            self._turn_away(400, "the only transfer coding we take is chunked")
            return
        if self.url == b"*":
            self.url = b"/"
        self._doorway.date(time.monotonic())
        super().on_headers_complete()
        self._has_cycle = True
        if self.scope["method"] != "HEAD":  # whose answer has no body to wait for
            together = _Together(self.transport, self._close_gently)
            self.cycle.transport = cast("asyncio.Transport", together)

    def on_body(self, body: bytes) -> None:
        if not self._is_shut:
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._stop_clock()
        self._in_head = True
        self._in_body = False
        self._has_cycle = False
        if not self._is_shut:
            super().on_message_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._active = cycle
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        if self._is_lingering:
            return
        super().on_response_complete()
        if self._farewell and not self._is_answering():
            self._leave()

    def send_400_response(self, msg: str) -> None:
        self._turn_away(400, "this is not HTTP/1.1 as we understand it")

    def _unsupported_upgrade_warning(self) -> None:
        """Upgrades are not offered; the request is answered as if none was asked for."""

    # -----------------------------------------------------------------------------------------

    def _start_clock(self, seconds: float) -> None:
        self._deadline = self.loop.call_later(seconds, self._too_slow)

    def _stop_clock(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_slow(self) -> None:
        pace = self._doorway.pace
        what, seconds = ("body", pace.body) if self._in_body else ("head", pace.head)
        if self.flow.read_paused:  # it is we who do not read
            self._start_clock(seconds)
        else:
            self._turn_away(408, f"the {what} of a request must arrive in {seconds:g} s")

    def _turn_away(self, status: int, message: str) -> None:
        """Refuse the request that is being read, after those before it are answered.

        Nothing is ever written into a response that is under way.
        """
        if self._is_shut:
            return
        self._is_shut = True
        self._stop_clock()
        refused, label = self._doorway.refused, (str(status),)
        refused[label] = refused.get(label, 0) + 1
        if self.transport.is_closing():
            return
        # Who was too slow, or one too many, gets no more of our time.
        self._is_patient = status not in (408, 503)
        body = error_body(CODES[status], message)
        self._farewell = (
            b"HTTP/1.1 %d %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\n"
            b"connection: close\r\n\r\n%s" % (status, _REASONS[status], len(body), body)
        )
        if self._has_cycle:
            if self.pipeline and self.pipeline[0][0] is self.cycle:
                self.pipeline.popleft()  # it waits behind others, and will not have its turn
            else:
                if self.cycle.response_started:
                    self._farewell = b""  # answered already, before all of it was here
                _hang_up(self.cycle)
                self._leave()
                return
        if not self._is_answering():
            self._leave()

    def _is_answering(self) -> bool:
        return self._active is not None and not self._active.response_complete

    def _leave(self) -> None:
        self._unset_keepalive_if_required()
        if not self.transport.is_closing():
            if self._farewell:
                self.transport.write(self._farewell)
            if self._is_patient:
                self._close_gently()
            else:
                self.transport.close()

    def _close_gently(self) -> None:
        """Close; while the rest of a request is still on its way, our side only, and then soon."""
        if self._is_lingering:
            return
        if not (self._has_cycle or self._farewell) or self.transport.is_closing():
            self.transport.close()
            return
        self._is_shut = self._is_lingering = True
        self.pipeline.clear()
        self._stop_clock()
        self._unset_keepalive_if_required()
        self.flow.resume_reading()
        self.transport.write_eof()
        self._deadline = self.loop.call_later(LINGER_SECONDS, self.transport.close)


def _hang_up(cycle: RequestResponseCycle) -> None:
    """Tell a handler that nobody is there any more; what it still says goes nowhere."""
    if not cycle.response_complete:
        cycle.disconnected = True
        cycle.message_event.set()


class _Together:
    """A transport that sends the head of an answer with the first of its body."""

    __slots__ = ("_close", "_held", "_transport")

    def __init__(self, transport: asyncio.Transport, close: Callable[[], None]) -> None:
        self._transport = transport
        self._close = close
        self._held: bytes | None = None

    def write(self, data: bytes) -> None:
        held = self._held
        if held is None:
            # The first thing written is the head; a "100 Continue" goes out at once.
            if data.startswith(b"HTTP/1.1 100"):
                self._transport.write(data)
            else:
                self._held = data
        elif held:
            self._held = b""
            self._transport.write(held + data)
        else:
            self._transport.write(data)

    def close(self) -> None:
        self._close()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

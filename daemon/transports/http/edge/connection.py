"""One accepted HTTP/1.1 connection: uvicorn's parser, with limits on time and size.

uvicorn limits neither the time a request may take to arrive nor the size of its head. This module
adds both limits, and a limit on the number of connections. A request rejected here never reaches a
handler. A request in absolute form, meant for a proxy, is rejected too. The head of a response is
held back until its body, so that a response is one packet.

The class extends `HttpToolsProtocol`, which uvicorn does not document as an interface. It overrides
`Protocol` and parser callbacks and reads public attributes; `UVICORN_MEMBERS` lists them, a test
checks them, and pyproject.toml bounds the version range.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from email.utils import formatdate
from typing import Any, Final, cast

from httptools import HttpRequestParser
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from daemon.transports.http.edge.messages import CODES, Pace, error_body
from daemon.transports.stalled_readers import StallGuard

#: Connections beyond the limit that may ask for health, so that probes work under overload.
PROBE_SLOTS: Final = 8
_PROBES: Final = (b"/health", b"/health/live", b"/health/ready")
MAX_HEADERS: Final = 100
MAX_HEAD_BYTES: Final = 16 * 1024
#: How long input is read and discarded after the last response. Closing at once would send a TCP
#: reset, and a client that is still sending would lose the response.
LINGER_SECONDS: Final = 2.0

#: The members of uvicorn's classes that this module uses, besides documented interfaces.
UVICORN_MEMBERS: Final = {
    HttpToolsProtocol: (
        "connection_made",
        "connection_lost",
        "data_received",
        "on_message_begin",
        "on_headers_complete",
        "on_body",
        "on_message_complete",
        "on_response_complete",
        "pause_writing",
        "send_400_response",
        "shutdown",
    ),
    RequestResponseCycle: ("run_asgi",),
}
#: The attributes that uvicorn sets on a connection and on a request's cycle.
CONNECTION_ATTRIBUTES: Final = (
    "connections",
    "cycle",
    "flow",
    "headers",
    "logger",
    "loop",
    "parser",
    "pipeline",
    "scope",
    "tasks",
    "timeout_keep_alive_task",
    "transport",
)
CYCLE_ATTRIBUTES: Final = (
    "disconnected",
    "message_event",
    "response_complete",
    "response_started",
    "transport",
)

_REASONS: Final = {
    400: b"Bad Request",
    403: b"Forbidden",
    408: b"Request Timeout",
    431: b"Request Header Fields Too Large",
    503: b"Service Unavailable",
    505: b"HTTP Version Not Supported",
}

#: uvicorn warns about malformed requests and unsupported upgrades. Both are answered and counted
#: here, and stderr belongs to structlog.
_silent: Final = logging.getLogger("recalld.uvicorn")
_silent.disabled = True


class ConnectionState(ServerState):
    """The state that all connections share."""

    def __init__(self, connections: int, pace: Pace) -> None:
        super().__init__()
        self.pace = pace
        self.max_connections = connections
        #: Connections rejected before they sent a complete request, by status.
        self.rejected: dict[tuple[str, ...], int] = {}
        self._dated = 0.0

    def unsent(self) -> int:
        """The bytes of responses that wait for their readers, on all connections."""
        return sum(
            each.transport.get_write_buffer_size()
            for each in self.connections
            if isinstance(each, HttpConnection)
        )

    def update_date(self, now: float) -> None:
        """Keep the Date header accurate to the second, without a timer."""
        if now - self._dated >= 1.0:
            self._dated = now
            self.default_headers = [(b"date", formatdate(usegmt=True).encode())]


class HttpConnection(HttpToolsProtocol):
    """One accepted connection."""

    def __init__(self, config: Config, state: ConnectionState) -> None:
        super().__init__(config=config, server_state=state, app_state={})
        self.logger = _silent
        self._state = state
        self._deadline: asyncio.TimerHandle | None = None
        self._head_bytes = 0
        self._in_head = True
        self._in_body = False
        self._is_shut = False
        self._is_lingering = False
        #: Whether the request whose body is being read has a cycle (a handler) already.
        self._has_cycle = False
        #: The cycle whose handler runs or ran last. uvicorn's `cycle` is the newest one, which may
        #: still be queued behind it.
        self._active: RequestResponseCycle | None = None
        #: The error response that is sent after all earlier requests are answered.
        self._last_response = b""
        self._may_linger = True
        #: Whether this connection is over the limit and may only ask for health.
        self._is_probe = False
        self._guard: StallGuard | None = None

    # --- called by asyncio and by the parser -------------------------------------------------

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        # 0, so that `pause_writing` reports every answer that the client did not take at once.
        transport.set_write_buffer_limits(high=0)
        self._guard = StallGuard(transport, "http", self._state.pace.stall)
        over = len(self.connections) - self._state.max_connections
        if over > PROBE_SLOTS:
            self._reject(503, f"at most {self._state.max_connections} connections")
            return
        self._is_probe = over > 0
        self._start_timer(self._state.pace.head)

    def pause_writing(self) -> None:
        """Output waits: from now on the client must read some of it every 30 seconds."""
        super().pause_writing()
        if self._guard is not None:
            self._guard.wrote()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        if self._guard is not None:
            self._guard.stop()
        if self._active is not None:
            _disconnect(self._active)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_shut:
            return
        if self._in_head:
            self._head_bytes += len(data)
        super().data_received(data)
        # The timer runs only while a request is incomplete; most requests arrive in one piece.
        if self._in_body:
            if self._deadline is None:
                self._start_timer(self._state.pace.body)
        elif self._head_bytes:
            if self._deadline is None:
                self._start_timer(self._state.pace.head)
            # All of `data` has been parsed, so `_head_bytes` counts an incomplete head only.
            if self._head_bytes > MAX_HEAD_BYTES:
                self._reject(431, f"the head of a request is at most {MAX_HEAD_BYTES} bytes")

    def on_message_begin(self) -> None:
        self._in_head = True
        self._has_cycle = False
        # At least 1: the request may begin in a chunk that was counted for the one before it.
        self._head_bytes = max(1, self._head_bytes)
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._stop_timer()
        self._in_head = False
        self._in_body = True
        self._head_bytes = 0
        if self._is_shut:
            return
        head = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if len(self.headers) > MAX_HEADERS or head > MAX_HEAD_BYTES:
            self._reject(431, f"at most {MAX_HEADERS} headers, {MAX_HEAD_BYTES} bytes in all")
            return
        if self._is_probe and self.url not in _PROBES:
            self._reject(503, f"at most {self._state.max_connections} connections")
            return
        if not self.url.startswith(b"/") and self.url != b"*":
            self._reject(403, "this is no proxy: the request target must be a path")
            return
        codings = b",".join(v for n, v in self.headers if n == b"transfer-encoding").lower()
        if codings.strip() not in (b"", b"chunked"):
            self._reject(400, "the only supported transfer coding is chunked")
            return
        version = cast("HttpRequestParser", self.parser).get_http_version()
        if version not in ("1.0", "1.1"):
            self._reject(505, "the supported versions are HTTP/1.0 and HTTP/1.1")
            return
        if version == "1.0" and codings:
            self._reject(400, "HTTP/1.0 has no transfer codings")
            return
        if self.url == b"*":
            self.url = b"/"
        self._state.update_date(time.monotonic())
        super().on_headers_complete()
        self._has_cycle = True
        if not (self.pipeline and self.pipeline[0][0] is self.cycle):
            self._active = self.cycle  # uvicorn has started its handler
        if self.scope["method"] != "HEAD":  # the response to HEAD has no body to wait for
            together = _HeadWithBody(self.transport, self._close_gently)
            self.cycle.transport = cast("asyncio.Transport", together)

    def on_body(self, body: bytes) -> None:
        if not self._is_shut:
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._stop_timer()
        self._in_head = True
        self._in_body = False
        self._has_cycle = False
        if not self._is_shut:
            super().on_message_complete()

    def on_response_complete(self) -> None:
        if self._is_lingering:
            return
        following = self.pipeline[-1][0] if self.pipeline else None
        super().on_response_complete()
        if self._is_probe:
            self.transport.close()
            return
        if following is not None and not (self.pipeline and self.pipeline[-1][0] is following):
            self._active = following  # uvicorn has started its handler
        if self._last_response and not self._is_answering():
            self._leave()

    def send_400_response(self, msg: str) -> None:
        self._reject(400, "this is not valid HTTP/1.1")

    # --- limits and the end ------------------------------------------------------------------

    def _start_timer(self, seconds: float) -> None:
        self._deadline = self.loop.call_later(seconds, self._time_out)

    def _stop_timer(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _stop_keep_alive_timer(self) -> None:
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()
            self.timeout_keep_alive_task = None

    def _time_out(self) -> None:
        pace = self._state.pace
        part, seconds = ("body", pace.body) if self._in_body else ("head", pace.head)
        if self.flow.read_paused:  # back-pressure: the connection is not being read
            self._start_timer(seconds)
        else:
            self._reject(408, f"the {part} of a request must arrive in {seconds:g} s")

    def _reject(self, status: int, message: str) -> None:
        """Reject the request that is being read, after all earlier requests are answered.

        Nothing is written into a response under way.
        """
        if self._is_shut:
            return
        self._is_shut = True
        self._stop_timer()
        rejected, label = self._state.rejected, (str(status),)
        rejected[label] = rejected.get(label, 0) + 1
        if self.transport.is_closing():
            return
        # A slow client or one over the limit is not waited for.
        self._may_linger = status not in (408, 503)
        body = error_body(CODES[status], message)
        self._last_response = (
            b"HTTP/1.1 %d %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\n"
            b"connection: close\r\n\r\n%s" % (status, _REASONS[status], len(body), body)
        )
        if self._has_cycle:
            if self.pipeline and self.pipeline[0][0] is self.cycle:
                self.pipeline.popleft()  # it is queued behind others and will not be started
            else:
                if self.cycle.response_started:
                    self._last_response = b""  # answered already, before it was complete
                _disconnect(self.cycle)
                self._leave()
                return
        if not self._is_answering():
            self._leave()

    def _is_answering(self) -> bool:
        return self._active is not None and not self._active.response_complete

    def _leave(self) -> None:
        self._stop_keep_alive_timer()
        if not self.transport.is_closing():
            if self._last_response:
                self.transport.write(self._last_response)
            if self._may_linger:
                self._close_gently()
            else:
                self.transport.close()

    def _close_gently(self) -> None:
        """Close the connection; while a request is still arriving, close our side first."""
        if self._is_lingering:
            return
        if not (self._has_cycle or self._last_response) or self.transport.is_closing():
            self.transport.close()
            return
        self._is_shut = self._is_lingering = True
        self.pipeline.clear()
        self._stop_timer()
        self._stop_keep_alive_timer()
        self.flow.resume_reading()
        self.transport.write_eof()
        self._deadline = self.loop.call_later(LINGER_SECONDS, self.transport.close)


def _disconnect(cycle: RequestResponseCycle) -> None:
    """Make a handler see that its client is gone; its further output is discarded."""
    if not cycle.response_complete:
        cycle.disconnected = True
        cycle.message_event.set()


class _HeadWithBody:
    """A transport that sends the head of a response together with the first part of its body."""

    __slots__ = ("_close", "_held", "_transport")

    def __init__(self, transport: asyncio.Transport, close: Callable[[], None]) -> None:
        self._transport = transport
        self._close = close
        self._held: bytes | None = None

    def write(self, data: bytes) -> None:
        held = self._held
        if held is None:
            # The first write is the head, unless it is "100 Continue", which is sent at once.
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

"""Server-sent events: a strict parser, and a response that is read in the background.

`Parser` implements the algorithm of the HTML standard. In addition it records problems that lenient
clients ignore: invalid UTF-8, unknown fields, an unterminated event. `EventStream` reads one
response in the background. A case can look at the events so far, wait for the next one with a
timeout, and disconnect at any time.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import queue
import socket
import threading
import time
from dataclasses import dataclass
from typing import Any

FLOOD = 64 * 1024 * 1024
"""The most bytes accepted on one stream; no case needs as many."""

FIELDS = (b"data", b"id", b"event", b"retry")


@dataclass(frozen=True)
class Event:
    """One event; `data` is None if the event has no such field."""

    data: str | None = None
    id: str | None = None
    name: str | None = None
    retry: str | None = None

    @property
    def message(self) -> Any:
        """The JSON-RPC message of the event, or None."""
        return json.loads(self.data) if self.data else None


class Parser:
    """Parses bytes into events; `wrong` holds problems that lenient clients ignore."""

    def __init__(self) -> None:
        self.wrong: list[str] = []
        self.comments = 0
        self._rest = b""
        self._event: dict[str, str] = {}
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> list[Event]:
        """Add a chunk and return the events that it completes."""
        self._rest += chunk
        found: list[Event] = []
        while (cut := _line_end(self._rest)) is not None:
            line, self._rest = self._rest[: cut[0]], self._rest[cut[1] :]
            event = self._line(line)
            if event is not None:
                found.append(event)
        return found

    def end(self) -> None:
        """End of the stream. Clients discard an event that no blank line terminates."""
        if self._rest.strip() or self._data or self._event:
            self.wrong.append("the last event was not ended by a blank line")

    def _line(self, line: bytes) -> Event | None:
        if not line:
            return self._dispatch()
        if line.startswith(b":"):
            self.comments += 1
            return None
        name, _, value = line.partition(b":")
        try:
            text = value.removeprefix(b" ").decode("utf-8")
        except UnicodeDecodeError:
            self.wrong.append(f"not UTF-8: {line[:80]!r}")
            return None
        if name not in FIELDS:
            return None  # the HTML standard: unknown fields are ignored
        if name == b"data":
            self._data.append(text)
        else:
            self._event[name.decode()] = text
        return None

    def _dispatch(self) -> Event | None:
        if not self._data and not self._event:
            return None
        fields, self._event = self._event, {}
        data, self._data = self._data, []
        event = Event(
            "\n".join(data) if data else None,
            fields.get("id"),
            fields.get("event"),
            fields.get("retry"),
        )
        if event.data:
            try:
                json.loads(event.data)
            except ValueError:
                self.wrong.append(f"data that is no JSON: {event.data[:80]!r}")
                return None
        return event


def _line_end(data: bytes) -> tuple[int, int] | None:
    """The end of the first line and the start of the next: LF, CR LF or CR alone."""
    ends = [at for at in (data.find(b"\n"), data.find(b"\r")) if at >= 0]
    if not ends:
        return None
    at = min(ends)
    if data[at : at + 1] == b"\r":
        if at + 1 == len(data):
            return None  # an LF may follow in the next chunk
        return at, at + 2 if data[at + 1 : at + 2] == b"\n" else at + 1
    return at, at + 1


def parse(body: bytes) -> list[Event]:
    """All events of a complete body."""
    return Parser().feed(body.rstrip(b"\r\n") + b"\n\n")


class EventStream:
    """A response, stream or not, read in the background. Closing it disconnects."""

    def __init__(self, connection: http.client.HTTPConnection, *, head_seconds: float) -> None:
        self.events: list[Event] = []
        self.body = b""
        self.ended = False
        self.parser = Parser()
        self._taken = 0
        self._head_seconds = head_seconds
        self._head: http.client.HTTPResponse | None = None
        self._has_head = threading.Event()
        self._connection = connection
        self._sock = connection.sock  # `Connection: close` makes HTTPConnection drop it
        self._chunks: queue.Queue[bytes] = queue.Queue()
        threading.Thread(target=self._read, daemon=True, name="event-stream").start()

    def _read(self) -> None:
        seen = 0
        with contextlib.suppress(OSError, ValueError, AttributeError, http.client.HTTPException):
            self._head = response = self._connection.getresponse()
            self._has_head.set()
            with contextlib.closing(response):
                while seen < FLOOD and (chunk := response.read1(65536)):
                    seen += len(chunk)
                    self._chunks.put(chunk)
        self._has_head.set()
        self._chunks.put(b"")

    @property
    def _response(self) -> http.client.HTTPResponse:
        self._has_head.wait(self._head_seconds)
        if self._head is None:
            raise TimeoutError(f"no answer at all in {self._head_seconds:g} seconds")
        return self._head

    @property
    def status(self) -> int:
        return self._response.status

    @property
    def headers(self) -> dict[str, str]:
        return {name.lower(): value for name, value in self._response.getheaders()}

    @property
    def is_stream(self) -> bool:
        return "text/event-stream" in self.headers.get("content-type", "")

    def _pump(self, seconds: float) -> bool:
        """Process received data, waiting up to this long; return whether anything arrived."""
        if self.ended:
            return False
        try:
            chunk = self._chunks.get(timeout=max(0.001, seconds))
        except queue.Empty:
            return False
        if not chunk:
            self.ended = True
            if self._head is not None and self.is_stream:
                self.parser.end()
            return True
        self.body += chunk
        if self.is_stream:
            self.events += self.parser.feed(chunk)
        return True

    def next(self, seconds: float) -> Event | None:
        """The next event, or None after the timeout or at the end of the stream."""
        until = time.monotonic() + seconds
        while self._taken == len(self.events):
            left = until - time.monotonic()
            if self.ended or left <= 0:
                return None
            self._pump(left)
        self._taken += 1
        return self.events[self._taken - 1]

    def next_message(self, seconds: float) -> Any:
        """The next message; events without one are skipped."""
        until = time.monotonic() + seconds
        while (event := self.next(max(0.0, until - time.monotonic()))) is not None:
            if event.data:
                return event.message
        return None

    def gather(self, seconds: float) -> list[Event]:
        """Read until the end of the stream or the timeout."""
        until = time.monotonic() + seconds
        while not self.ended and (left := until - time.monotonic()) > 0:
            self._pump(left)
        self._taken = len(self.events)
        return self.events

    def commented(self, seconds: float) -> bool:
        """Whether a new comment arrives in time."""
        before = self.parser.comments
        until = time.monotonic() + seconds
        while not self.ended and (left := until - time.monotonic()) > 0:
            self._pump(left)
            if self.parser.comments > before:
                return True
        return False

    @property
    def messages(self) -> list[Any]:
        """All messages so far; for a JSON response, the one in its body."""
        if self.is_stream:
            return [event.message for event in self.events if event.data]
        return [json.loads(self.body)] if self.body.strip() else []

    def close(self) -> None:
        """Disconnect."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self._sock.close()

    def __enter__(self) -> EventStream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

"""Event streams over HTTP: read strictly, and never waited for without a bound.

`Parser` is the algorithm of the HTML standard, with one thing more: it remembers what a forgiving
client would have let pass (bytes that are no UTF-8, fields nobody knows, an event that was never
ended). `EventStream` is one response being read in the background, so that a case can ask what has
come so far, wait a while for the next event, and hang up at any moment.
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
"""More than any case asks for on one stream."""

FIELDS = (b"data", b"id", b"event", b"retry")


@dataclass(frozen=True)
class Event:
    """One event, as the server wrote it; `data` is None where it had no such field."""

    data: str | None = None
    id: str | None = None
    name: str | None = None
    retry: str | None = None

    @property
    def message(self) -> Any:
        """The message it carries; None for an event that carries none."""
        return json.loads(self.data) if self.data else None


class Parser:
    """Bytes in, events out; `wrong` is what a lenient client would not have complained about."""

    def __init__(self) -> None:
        self.wrong: list[str] = []
        self.comments = 0
        self._rest = b""
        self._event: dict[str, str] = {}
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that are complete with this chunk."""
        self._rest += chunk
        found: list[Event] = []
        while (cut := _line_end(self._rest)) is not None:
            line, self._rest = self._rest[: cut[0]], self._rest[cut[1] :]
            event = self._line(line)
            if event is not None:
                found.append(event)
        return found

    def end(self) -> None:
        """The stream is over: what was not ended by a blank line is lost to every client."""
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
            self.wrong.append(f"a line that is no field: {line[:80]!r}")
        elif name == b"data":
            self._data.append(text)
        else:
            self._event[name.decode()] = text
        return None

    def _dispatch(self) -> Event | None:
        if not self._data and not self._event:
            return None
        fields, self._event = self._event, {}
        data, self._data = self._data, []
        if fields.get("event", "message") != "message":
            self.wrong.append(f"an event called {fields['event']!r}, which no client listens to")
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
    """Where the first line ends and the next begins: LF, CR LF or CR alone."""
    ends = [at for at in (data.find(b"\n"), data.find(b"\r")) if at >= 0]
    if not ends:
        return None
    at = min(ends)
    if data[at : at + 1] == b"\r":
        if at + 1 == len(data):
            return None  # whether an LF follows is not known yet
        return at, at + 2 if data[at + 1 : at + 2] == b"\n" else at + 1
    return at, at + 1


def parse(body: bytes) -> list[Event]:
    """All events of a body that was read to its end."""
    return Parser().feed(body.rstrip(b"\r\n") + b"\n\n")


class EventStream:
    """A response that may be a stream, read in the background. Closing it hangs up."""

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
        self._sock = connection.sock  # the connection forgets it if the answer says it will close
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
        """Take in what has come, waiting at most so long for anything; whether something came."""
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
        """The next event; None if none came in time, or the stream is over."""
        until = time.monotonic() + seconds
        while self._taken == len(self.events):
            left = until - time.monotonic()
            if self.ended or left <= 0:
                return None
            self._pump(left)
        self._taken += 1
        return self.events[self._taken - 1]

    def next_message(self, seconds: float) -> Any:
        """The next message, skipping events that carry none."""
        until = time.monotonic() + seconds
        while (event := self.next(max(0.0, until - time.monotonic()))) is not None:
            if event.data:
                return event.message
        return None

    def gather(self, seconds: float) -> list[Event]:
        """Everything until the end of the stream, or for so long."""
        until = time.monotonic() + seconds
        while not self.ended and (left := until - time.monotonic()) > 0:
            self._pump(left)
        self._taken = len(self.events)
        return self.events

    def commented(self, seconds: float) -> bool:
        """Whether a comment that was not there yet comes in that time."""
        before = self.parser.comments
        until = time.monotonic() + seconds
        while not self.ended and (left := until - time.monotonic()) > 0:
            self._pump(left)
            if self.parser.comments > before:
                return True
        return False

    @property
    def messages(self) -> list[Any]:
        """All messages so far; of an answer that is no stream, the one in its body."""
        if self.is_stream:
            return [event.message for event in self.events if event.data]
        return [json.loads(self.body)] if self.body.strip() else []

    def close(self) -> None:
        """Hang up, as a client that goes away does."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self._sock.close()

    def __enter__(self) -> EventStream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

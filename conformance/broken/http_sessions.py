"""Sessions and event streams of the reference server over HTTP.

A stream holds the numbered messages of one response, so that a client that lost its connection can
resume. A session is a connection of the reference server that distributes its messages to streams:
messages of a call go to the stream of that call, all others to the stream of the GET. The context
variable `SPEAKING` holds the stream of the call that the current thread runs.
"""

from __future__ import annotations

import itertools
import json
import secrets
import threading
import time
from contextvars import ContextVar
from typing import Any

from conformance.broken.reference import Connection, Server
from conformance.revisions import D

SPEAKING: ContextVar[Stream | None] = ContextVar("speaking", default=None)

SHARED_NOTES = ("/list_changed", "/updated")
"""Notifications that belong to no call, even if a call caused them."""

IDLE_SECONDS = 2.0
"""Idle sessions are deleted after this time."""


class Stream:
    """The messages of one response."""

    def __init__(self, label: str = "") -> None:
        self.label = label
        self.messages: list[Any] = []
        self.done = False
        self.detached = False
        self.readers = 0
        self._change = threading.Condition()

    def put(self, message: Any) -> None:
        with self._change:
            if self.done:
                return
            self.messages.append(message)
            self._change.notify_all()

    def finish(self) -> None:
        with self._change:
            self.done = True
            self._change.notify_all()

    def detach(self) -> None:
        """End the HTTP response; the call continues."""
        with self._change:
            self.detached = True
            self._change.notify_all()

    def after(self, number: int, seconds: float) -> list[Any]:
        """The messages after the first `number`; waits up to `seconds` for one."""

        def ready() -> bool:
            return len(self.messages) > number or self.done or self.detached

        with self._change:
            self._change.wait_for(ready, seconds)
            return self.messages[number:]


class Session:
    """The session of a legacy client: its connection state and its streams."""

    def __init__(self, server: Server, handle: str, owner: str) -> None:
        self.handle = handle
        self.owner = owner
        self.streams: dict[str, Stream] = {}
        self._labels = itertools.count(1)
        self._secret = secrets.token_hex(4)
        self._server = server
        self.standalone = self.new_stream()
        self.connection = _SessionConnection(self, server)
        self.seen = time.monotonic()

    def new_stream(self) -> Stream:
        stream = Stream(f"{self._secret}{next(self._labels)}")
        self.streams[stream.label] = stream
        return stream

    def route(self, data: bytes) -> None:
        """Add a message to the stream that it belongs to."""
        message = json.loads(data)
        quirk = self._server.quirk
        method = message.get("method", "") if isinstance(message, dict) else ""
        asks = bool(method) and "id" in message
        own = SPEAKING.get()
        if own is not None and own not in self.streams.values():
            own = None  # caused by a call of another session
        is_shared = method.endswith(SHARED_NOTES) or (asks and quirk("http_asks_on_get"))
        target = self.standalone if own is None or is_shared else own
        target.put(message)
        if quirk("http_broadcast") and method and not asks:
            for other in (self.standalone, *([own] if own is not None else [])):
                if other is not target:
                    other.put(message)
        if quirk("http_answers_on_get") and not method:
            self.standalone.put(message)

    @property
    def is_idle(self) -> bool:
        busy = self.standalone.readers or self.connection.in_flight
        return not busy and time.monotonic() - self.seen > IDLE_SECONDS

    def end(self) -> None:
        if not self._server.quirk("http_streams_live"):
            self.standalone.finish()
        self.connection.finish(0)


class _SessionConnection(Connection):
    """A connection whose messages go to the streams of a session."""

    def __init__(self, session: Session, server: Server) -> None:
        super().__init__(server, session.route)

    def detach(self) -> None:
        stream = SPEAKING.get()
        if stream is not None and self.revision == D:
            stream.detach()

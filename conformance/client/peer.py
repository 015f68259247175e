"""A client that speaks one revision, correctly by default and wrongly on request.

It stores incoming frames until a case asks for them, answers requests from the server, and reports
every frame to its observer, which records evidence and runs the scans.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable
from typing import Any

from conformance import revisions
from conformance.check import Failed, fail, need
from conformance.client.connection_state import LISTEN, ConnectionState
from conformance.client.fairness import is_answer, is_honest, is_malformed, raise_rate_limit
from conformance.client.frames import Frame, dump, key, parse, parts_of, show
from conformance.client.observer import Observer, ReceivedFrame, Sent
from conformance.client.results import result_of
from conformance.client.wire import Closed, Flood, OutOfTime, Wire

UNSET: Any = object()

INBOX_LIMIT = 20000
"""The number of unexpected frames above which the server is flooding."""

Answerer = Callable[[dict[str, Any]], Any]


class Peer:
    """One connection, seen from the client's side."""

    def __init__(
        self,
        wire: Wire,
        revision: str,
        observer: Observer,
        *,
        number: int = 0,
        timeout: float = 5.0,
        first_timeout: float = 15.0,
        quiet: float = 0.4,
    ) -> None:
        self.wire = wire
        self.revision = revision
        self.number = number
        self.timeout = timeout
        self.quiet = quiet
        self.capabilities: dict[str, Any] = {}
        self.initialized = False
        self.agreed: Any = None
        self.said_initialized = False
        self.server_capabilities: dict[str, Any] | None = None
        #: The server's capabilities, and its tools by name, as the run has discovered them.
        self.known_capabilities: dict[str, Any] | None = None
        self.tools: dict[str, dict[str, Any]] = {}
        self.over_http = False
        self.answerers: dict[str, Answerer | None] = {}
        self.server_requests: list[Frame] = []
        self.inbox: list[Frame] = []
        self.kind: bytes | None = None
        self.scanned = True
        self.spoiled = False  # something malformed was sent: ids of later responses are uncertain
        self._state = ConnectionState()
        self._observer = observer
        self._first_timeout = first_timeout
        self._has_received = False
        self._ids = itertools.count(1)
        self._open: dict[tuple[str, Any], Sent] = {}
        self._closed: dict[tuple[str, Any], Sent] = {}
        self._duplicate_ids: set[tuple[str, Any]] = set()
        self._cancelled: set[tuple[str, Any]] = set()

    @property
    def modern(self) -> bool:
        return self.revision in revisions.MODERN

    @property
    def basic(self) -> str:
        """The method that every server of the revision must answer."""
        return "server/discover" if self.modern else "ping"

    # -- sending ----------------------------------------------------------------------------------

    def next_id(self) -> int:
        return next(self._ids)

    def build(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        id: Any = UNSET,
        revision: str | None = None,
        meta: dict[str, Any] | None = None,
        capabilities: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Build a well-formed request; modern revisions add the `_meta` envelope."""
        message: dict[str, Any] = {"jsonrpc": "2.0"}
        message["id"] = self.next_id() if id is UNSET else id
        message["method"] = method
        body = dict(params) if params is not None else None
        if (revision or self.revision) in revisions.MODERN:
            body = body or {}
            declared = self.capabilities if capabilities is None else capabilities
            body["_meta"] = {**revisions.meta(declared), **body.get("_meta", {}), **(meta or {})}
        elif meta:
            body = body or {}
            body["_meta"] = {**body.get("_meta", {}), **meta}
        if body is not None:
            message["params"] = body
        return message

    def request(self, method: str, params: dict[str, Any] | None = None, **more: Any) -> Any:
        """Send a request and return its id without waiting."""
        message = self.build(method, params, **more)
        self.send(message, revision=more.get("revision"))
        return message["id"]

    def send(self, message: Any, *, revision: str | None = None) -> None:
        """Send a message and register its requests, so that their responses are recognised."""
        raw = dump(message)
        self.expect(message, raw, revision)
        self.send_raw(raw + b"\n")

    def expect(self, message: Any, raw: bytes, revision: str | None = None) -> None:
        """Register a request, so that its response is recognised."""
        for element in message if isinstance(message, list) else [message]:
            if isinstance(element, dict) and "id" in element and "method" in element:
                params = element.get("params")
                sent = Sent(
                    element["id"],
                    str(element["method"]),
                    params if isinstance(params, dict) else {},
                    revision or self.revision,
                    raw,
                    is_honest(element, revision or self.revision),
                )
                if key(sent.id) in self._open:
                    self._duplicate_ids.add(key(sent.id))
                self._open[key(sent.id)] = sent
                self._state.note_meta(sent)

    @property
    def asked_for_logs(self) -> bool:
        """Whether any request has set a log level in its `_meta`."""
        return self._state.asked_for_logs

    def restore(self) -> None:
        """Undo the changes that can be undone: end subscriptions."""
        for name, id in self._state.listens.items():
            self._cancelled.add(name)
            self.notify("notifications/cancelled", {"requestId": id})
        self._state.listens.clear()
        for uri in list(self._state.uris):
            self.call("resources/unsubscribe", {"uri": uri})

    def is_finished(self, token: Any) -> bool:
        """Whether every request with this progress token was answered."""
        asked = self._state.tokens.get(key(token))
        return asked is not None and not any(id in self._open for id in asked)

    def send_raw(self, data: bytes) -> None:
        """Send bytes as they are; whatever is not a series of registered requests spoils."""
        self.spoiled = self.spoiled or is_malformed(data)
        self._observer.sent(self, data)
        self.wire.pace.wait()
        try:
            self.wire.send(data, timeout=self.response_timeout() * (4 if self.over_http else 1))
        except OutOfTime as error:
            raise Failed(str(error)) from error

    def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        self.send_raw(dump(message) + b"\n")

    def cancel(self, id: Any, **more: Any) -> None:
        if self._open.get(key(id), None) is not None and self._open[key(id)].method != LISTEN:
            self._cancelled.add(key(id))
        self.notify("notifications/cancelled", {"requestId": id, **more})

    # -- receiving --------------------------------------------------------------------------------

    def response_timeout(self) -> float:
        """The timeout for a response; longer until the server has sent its first frame."""
        return self.timeout if self._has_received else max(self.timeout, self._first_timeout)

    def next(self, timeout: float) -> Frame | None:
        """Read the next frame from the wire, or None after the timeout."""
        line = self.wire.line(timeout)
        if line is None:
            return None
        self._has_received = True
        frame = parse(line)
        for part in parts_of(frame):
            self._observe(part)
        return frame

    def _observe(self, frame: Frame) -> None:
        sent, again = None, False
        if frame.kind in ("result", "error") and frame.has_id:
            name = key(frame.id)
            sent = self._open.pop(name, None)
            if sent is not None:
                self._closed[name] = sent
                if frame.kind == "result":
                    self._state.note(sent)
            else:
                sent = self._closed.get(name)
                # Two responses are fine if the id was used for two requests.
                again = sent is not None and name not in self._duplicate_ids
        revision = sent.revision if sent is not None else self.revision
        self._observer.received(ReceivedFrame(frame, revision, sent, again, self))
        if frame.kind == "request":
            self._serve(frame)

    def _serve(self, frame: Frame) -> None:
        """Answer a request from the server."""
        if len(self.server_requests) >= INBOX_LIMIT:
            raise Flood("requests without end")
        self.server_requests.append(frame)
        method = frame.method or ""
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": frame.id}
        if method in self.answerers:
            answerer = self.answerers[method]
            if answerer is None:
                return
            answer["result"] = answerer(frame.params)
        elif method == "ping":
            answer["result"] = {}
        else:
            answer["error"] = {"code": -32601, "message": "not offered by this client"}
        self.send_raw(dump(answer) + b"\n")

    def _keep(self, frame: Frame) -> None:
        if len(self.inbox) >= INBOX_LIMIT:
            raise Flood(f"{INBOX_LIMIT} frames that answer nothing")
        self.inbox.append(frame)

    def wait(self, wanted: Callable[[Frame], bool], timeout: float | None = None) -> Frame | None:
        """The first stored or new frame that satisfies `wanted`; None after the timeout."""
        for position, frame in enumerate(self.inbox):
            if wanted(frame):
                return self.inbox.pop(position)
        until = time.monotonic() + (self.response_timeout() if timeout is None else timeout)
        while (left := until - time.monotonic()) > 0:
            frame_or_none = self.next(left)
            if frame_or_none is None:
                break
            if wanted(frame_or_none):
                return frame_or_none
            self._keep(frame_or_none)
        return None

    def reply(self, id: Any, timeout: float | None = None) -> Frame:
        """The response to the request with this id. Fails if none arrives."""
        wanted = key(id)

        def answers(frame: Frame) -> bool:
            return frame.kind in ("result", "error") and key(frame.id) == wanted

        patience = self.response_timeout() if timeout is None else timeout
        try:
            frame = self.wait(answers, patience)
        except Closed as error:
            raise Failed(f"{error} instead of answering request {show(dump(id), 60)}") from error
        if frame is not None and frame.kind == "error":
            raise_rate_limit(frame)
        if frame is None:
            sent = self._open.get(wanted)
            what = f"{sent.method} (id {show(dump(id), 60)})" if sent else show(dump(id), 60)
            fail(f"no answer to {what} within {patience:g} s{self._odd()}")
        return frame

    def _odd(self) -> str:
        """A hint that shows the last unexpected frame."""
        return f"; received instead: {show(self.inbox[-1].raw, 160)}" if self.inbox else ""

    def call(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        timeout: float | None = None,
        **more: Any,
    ) -> Frame:
        return self.reply(self.request(method, params, **more), timeout)

    def result(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        timeout: float | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        """The result object of a call that must succeed."""
        frame = self.call(method, params, timeout=timeout, **more)
        return result_of(frame, method)

    def tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        timeout: float | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        params: dict[str, Any] = {"name": name}
        if arguments is not None:
            params["arguments"] = arguments
        return self.result("tools/call", params, timeout=timeout, **more)

    def request_with(self, id: Any) -> Sent | None:
        """The request with this id, answered or not."""
        return self._open.get(key(id)) or self._closed.get(key(id))

    # -- opening ----------------------------------------------------------------------------------

    def initialize(
        self,
        version: str | None = None,
        *,
        capabilities: dict[str, Any] | None = None,
        say_initialized: bool = True,
    ) -> Frame:
        """The legacy handshake. Returns the response, success or error."""
        self.capabilities = {} if capabilities is None else capabilities
        frame = self.call(
            "initialize",
            {
                "protocolVersion": self.revision if version is None else version,
                "capabilities": self.capabilities,
                "clientInfo": revisions.CLIENT,
            },
            revision=self.revision if not self.modern else revisions.D,
        )
        if frame.kind == "result" and isinstance(frame.result, dict):
            self.initialized = True
            self.agreed = frame.result.get("protocolVersion")
            offered = frame.result.get("capabilities")
            self.server_capabilities = offered if isinstance(offered, dict) else {}
            if say_initialized:
                self.said_initialized = True
                self.notify("notifications/initialized")
        return frame

    # -- assertions -------------------------------------------------------------------------------

    def marker(self, timeout: float | None = None, *, early: Iterable[Frame] = ()) -> list[Frame]:
        """Send a request that must be answered; return the frames that precede its response."""
        seen = list(early)
        id = self.request(self.basic)
        wanted = key(id)
        until = time.monotonic() + (self.response_timeout() if timeout is None else timeout)
        while (left := until - time.monotonic()) > 0:
            frame = self.next(left)
            if frame is None:
                break
            if frame.kind in ("result", "error") and key(frame.id) == wanted:
                if frame.kind == "error":
                    raise_rate_limit(frame)
                return seen
            seen.append(frame)
            if len(seen) > INBOX_LIMIT:
                raise Flood("frames without end")
        came = f"; it had sent {show(seen[-1].raw, 120)}" if seen else ""
        raise Failed(f"the connection did not answer the request that came next{came}")

    def probe(self, raw: bytes, *, expected: int = 1, quiet: float | None = None) -> list[Frame]:
        """Send a line and a marker; return all frames except the response to the marker.

        The server may answer the marker first, so this waits another `quiet` seconds.
        """
        self.send_raw(raw + b"\n")
        try:
            frames = self.marker()
            until = time.monotonic() + (self.quiet if quiet is None else quiet)
            while len(frames) < expected and (left := until - time.monotonic()) > 0:
                late = self.next(left)
                if late is not None:
                    frames.append(late)
        except Closed as error:
            raise Failed(f"{error} after {show(raw, 120)}") from error
        for frame in frames:  # an error without an id settles the request that it refuses
            if frame.kind == "error" and not frame.has_id and self._open:
                name, sent = self._open.popitem()
                self._closed[name] = sent
        return frames

    def expect_error(
        self,
        raw: bytes,
        codes: Iterable[int] | None,
        *,
        id: Any = UNSET,
        may_echo: Any = UNSET,
        exactly_one: bool = True,
    ) -> Frame:
        """Send an invalid line: the server must send one error and keep the connection open.

        The error must carry `id`. If `id` is unset, the error must carry no id (absent or null) or
        the one in `may_echo`.
        """
        frames = [f for f in self.probe(raw) if is_answer(f)]
        what = show(raw, 100)
        if not frames:
            fail(f"no answer to {what}")
        frame = frames[0]
        if frame.kind != "error":
            fail(f"{what} was answered with {show(frame.raw)} and not with an error")
        if exactly_one:
            need(len(frames) == 1, f"{what} was answered {len(frames)} times")
        if codes is not None:
            wanted = list(codes)
            if self.over_http and self.modern:
                wanted.append(-32020)  # an invalid message has no valid routing headers
            names = " or ".join(map(str, wanted))
            need(
                frame.code in wanted, f"error code {frame.code!r} for {what}; it should be {names}"
            )
        if id is not UNSET:
            need(
                key(frame.id) == key(id),
                f"the error carries id {frame.id!r}, the request had {id!r}",
            )
        elif frame.has_id and (may_echo is UNSET or key(frame.id) != key(may_echo)):
            fail(f"the error carries id {frame.id!r}, which no request had")
        return frame

    def expect_silence(self, raw: bytes) -> None:
        """Send a line that must not be answered."""
        frames = self.probe(raw, expected=0)
        frames = self.marker(early=frames)
        answers = [frame for frame in frames if is_answer(frame)]
        if answers:
            fail(f"{show(raw, 120)} must not be answered, but {show(answers[0].raw)} came")

    @property
    def is_clean(self) -> bool:
        """Whether no request is in flight and the state of the connection is unchanged."""
        in_flight = any(name not in self._cancelled for name in self._open)
        return not (in_flight or self._state.is_changed or self.wire.ended or self.answerers)

    def discard_inbox(self) -> None:
        self.inbox.clear()
        self.server_requests.clear()

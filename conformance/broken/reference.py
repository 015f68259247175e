"""The reference server: correct, small, five revisions, both eras, one thread for each connection.

Every check is proven with it: the check passes on the correct server and fails when a defect is
injected. The server does not know the checks. Defects hook into the code that reads and writes
bytes and messages.
"""

from __future__ import annotations

import contextvars
import itertools
import json
import os
import queue
import threading
import time
from collections.abc import Callable
from typing import Any

from conformance.broken import methods
from conformance.broken.defects.registry import NO_DEFECT, Defect
from conformance.broken.errors import INFO, RpcError
from conformance.broken.tasks import Task
from conformance.client.frames import key
from conformance.revisions import (
    ALL,
    CLIENT_CAPABILITIES,
    LEVELS,
    LOG_LEVEL,
    PROTOCOL_VERSION,
    SERVER_INFO,
    B,
    D,
    E,
)

LIMIT = 4 * 1024 * 1024


class Server:
    """State that all connections share."""

    def __init__(self, defect: Defect = NO_DEFECT) -> None:
        self.defect = defect
        self.tally = {"started": 0, "finished": 0, "cancelled": 0}
        self.connections: list[Connection] = []
        self.lock = threading.Lock()
        self.calls = 0
        self.tasks: dict[Any, Task] = {}
        self.remembered: Any = None
        self.dead = False

    def quirk(self, name: str) -> Any:
        return self.defect.quirks.get(name)

    def changed(self, what: str) -> None:
        """Notify all subscribed connections that a list changed."""
        for connection in list(self.connections):
            connection.notify_changed(what)


class Batch:
    """Responses to a batch, collected until the last one arrives."""

    def __init__(self, connection: Connection, count: int) -> None:
        self.connection = connection
        self._context = contextvars.copy_context()
        self.waiting = count
        self.answers: list[Any] = []

    def settle(self, answer: Any) -> None:
        if answer is not None:
            self.answers.append(answer)
        self.waiting -= 1
        if self.waiting == 0 and (self.answers or self.connection.quirk("empty_batch")):
            # The batch is answered in its own context, not in the context of its last element.
            self._context.run(self.connection.write, self.answers)


class Call:
    """One request in flight."""

    def __init__(
        self, connection: Connection, request: dict[str, Any], batch: Batch | None
    ) -> None:
        self.connection = connection
        self.request = request
        self.batch = batch
        self.params: dict[str, Any] = {}
        self.revision = D
        self.cancelled = threading.Event()
        self.capabilities: dict[str, Any] = {}
        self.log_level: str | None = None
        self.done = False

    @property
    def modern(self) -> bool:
        return self.revision == E

    def answer(self, body: dict[str, Any]) -> None:
        """Send the response, unless the call was cancelled."""
        connection = self.connection
        with connection.lock:
            if self.done or (self.cancelled.is_set() and not connection.quirk("answers_cancelled")):
                return
            self.done = True
            connection.in_flight.pop(key(self.request["id"]), None)
        response = {"jsonrpc": "2.0", "id": self.request["id"], **body}
        if self.modern and "result" in body:
            meta = {SERVER_INFO: INFO, **body["result"].get("_meta", {})}
            response["result"] = {"resultType": "complete", **body["result"], "_meta": meta}
        connection.respond(self.request, response, self.batch)


class Connection:
    """One byte stream and its state."""

    def __init__(self, server: Server, write: Callable[[bytes], None]) -> None:
        self.server = server
        self.lock = threading.RLock()
        self.revision: str | None = None
        self.initialized = False
        self.capabilities: dict[str, Any] = {}
        self.log_level = "info"
        self.watched: set[str] = set()
        self.listens: dict[tuple[str, Any], tuple[Any, dict[str, Any]]] = {}
        self.in_flight: dict[tuple[str, Any], Call] = {}
        self.asked: dict[Any, queue.Queue[dict[str, Any]]] = {}
        self.closed = threading.Event()
        self.broken = False
        self._ids = itertools.count(1)
        self._write = write
        self._out = threading.RLock()  # a signal handler can write during a write
        with server.lock:
            server.connections.append(self)

    def quirk(self, name: str) -> Any:
        return self.server.quirk(name)

    # -- bytes ------------------------------------------------------------------------------------

    def serve(self, read: Callable[[], bytes]) -> None:
        """Read lines and handle them until the end of input."""
        buffer = bytearray()
        skipping = False
        while chunk := read():
            looked = 0 if self.quirk("frame_per_read") else len(buffer)
            buffer += chunk
            if self.quirk("frame_per_read") and not chunk.endswith(b"\n"):
                buffer += b"\n"
            if self.quirk("one_line_per_read"):
                del buffer[buffer.find(b"\n") + 1 :]
            while (end := buffer.find(b"\n", looked)) >= 0:
                line = bytes(buffer[:end])
                del buffer[: end + 1]
                looked = 0
                if skipping:
                    skipping = False
                else:
                    self.handle_line(line)
                if self.broken:
                    raise BrokenPipeError
            if len(buffer) > (self.quirk("limit") or LIMIT):
                if not skipping:
                    self.respond({}, self.error(None, RpcError(-32600, "line too long")), None)
                skipping = True
                buffer.clear()
        if buffer and self.quirk("hangs_at_eof"):
            time.sleep(4)

    def finish(self, seconds: float) -> None:
        """Wait for calls in flight, then cancel the rest."""
        until = time.monotonic() + seconds
        while self.in_flight and time.monotonic() < until and not self.quirk("hasty"):
            time.sleep(0.01)
        self.closed.set()
        with self.server.lock:
            self.server.connections.remove(self)
        self.server.dead = bool(self.quirk("dies_with_first"))
        for call in list(self.in_flight.values()):
            call.cancelled.set()

    def write(self, message: Any) -> None:
        data = message if isinstance(message, bytes) else _dump(message)
        if self.server.defect.out is not None:
            data = self.server.defect.out(self, data)
        with self._out:
            try:
                self._write(data)
            except OSError:
                self.broken = True

    def send(self, told: Any) -> None:
        """Write the return value of a hook: nothing, one message or several."""
        if isinstance(told, list):
            for part in told:
                self.send(part)
        elif told is not None:
            self.write(told)

    def respond(
        self, request: dict[str, Any], response: dict[str, Any], batch: Batch | None
    ) -> None:
        hook = self.server.defect.reply
        told = hook(self, request, response) if hook is not None else response
        if batch is not None:
            batch.settle(told)
        else:
            self.send(told)

    def detach(self) -> None:
        """End the HTTP response of the current call. Does nothing on other transports."""

    def notify(self, method: str, params: dict[str, Any] | None = None, **more: Any) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0", **more, "method": method}
        if params is not None:
            message["params"] = params
        hook = self.server.defect.notification
        self.send(hook(self, message) if hook is not None else message)

    def error(self, id: Any, error: RpcError) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": id, "error": error.as_error()}

    # -- messages ---------------------------------------------------------------------------------

    def handle_line(self, line: bytes) -> None:
        if self.server.dead:
            return
        if len(self.server.connections) > 50 and self.quirk("slow_in_a_crowd"):
            time.sleep(0.3)
        if self.server.defect.line is not None:
            spoiled = self.server.defect.line(self, line)
            if spoiled is None:
                return
            line = spoiled
        if not line.strip(b" \t\r"):
            return
        try:
            value = json.loads(line.decode("utf-8"), parse_constant=_refuse)
        except (ValueError, RecursionError):
            self.respond({}, self.error(None, RpcError(-32700, "not JSON")), None)
            return
        if self.server.defect.message is not None:
            value = self.server.defect.message(self, value)
            if value is None:
                return
        if isinstance(value, list):
            self.handle_batch(value)
        else:
            self.handle(value, None)

    def handle_batch(self, elements: list[Any]) -> None:
        if self.revision != B or not elements:
            error = RpcError(-32600, "an array is no message here")
            self.respond({}, self.error(None, error), None)
            return
        wanted = [e for e in elements if not (isinstance(e, dict) and _is_notification(e))]
        batch = Batch(self, len(wanted))
        for element in elements:
            if isinstance(element, dict) and element.get("method") == "initialize":
                told = self.error(element.get("id"), RpcError(-32600, "initialize comes alone"))
                self.respond(element, told, batch)
            else:
                self.handle(element, batch)

    def handle(self, message: Any, batch: Batch | None) -> None:
        if batch is None and _is_response(message):
            self.handle_response(message)
            return
        if isinstance(message, dict) and _is_notification(message):
            self.handle_notification(message["method"], message.get("params"))
            return
        id = message.get("id") if isinstance(message, dict) else None
        readable = isinstance(id, str | int) and not isinstance(id, bool)
        if not isinstance(message, dict) or not readable or not _is_request(message):
            told = self.error(id if readable else None, RpcError(-32600, "not a request"))
            self.respond(message if isinstance(message, dict) else {}, told, batch)
            return
        with self.lock:
            if key(id) in self.in_flight or key(id) in self.listens:
                error = RpcError(-32600, "that id is in use", {"duplicateId": id})
                self.respond({}, self.error(None, error), batch)
                return
            call = Call(self, message, batch)
            self.in_flight[key(id)] = call
        try:
            self.begin(call)
        except RpcError as error:
            call.answer({"error": error.as_error()})

    def begin(self, call: Call) -> None:
        """Determine the era, check the envelope, and run the method."""
        params = call.request.get("params")
        if params is not None and not isinstance(params, dict):
            raise RpcError(-32602, "params is not an object")
        call.params = dict(params or {})
        method = call.request["method"]
        meta = call.params.get("_meta", {})
        if not isinstance(meta, dict):
            if not self.quirk("serves_early"):
                raise RpcError(-32602, "_meta is not an object")
            meta = {}
        handshake = method == "initialize" and isinstance(call.params.get("protocolVersion"), str)
        if PROTOCOL_VERSION in meta and not handshake:
            call.revision = E
            self._open_modern(call, meta)
        elif method != "initialize" and self.revision is None:
            if method != "ping" and not self.quirk("serves_early"):
                code = -32602 if method in methods.LEGACY or method in methods.MODERN else -32601
                raise RpcError(code, "initialize first, or send a _meta with a protocol version")
        else:
            call.revision = self.revision or D
            call.capabilities = self.capabilities
            call.log_level = self.log_level
        table = methods.MODERN if call.modern else methods.LEGACY
        if method not in table:
            raise RpcError(-32601, "no such method")
        token = meta.get("progressToken")
        if token is not None and (isinstance(token, bool) or not isinstance(token, str | int)):
            raise RpcError(-32602, "progressToken is neither a string nor an integer")
        table[method](call)

    def _open_modern(self, call: Call, meta: dict[str, Any]) -> None:
        version = meta[PROTOCOL_VERSION]
        if not isinstance(meta.get(CLIENT_CAPABILITIES), dict):
            raise RpcError(-32602, "_meta lacks client capabilities")
        if not isinstance(version, str):
            raise RpcError(-32602, "the protocol version is not a string")
        if version != E:
            data = {"supported": [*reversed(ALL)], "requested": version}
            raise RpcError(-32022, "Unsupported protocol version", data)
        if LOG_LEVEL in meta and meta[LOG_LEVEL] not in LEVELS:
            raise RpcError(-32602, "no such log level")
        call.capabilities = meta[CLIENT_CAPABILITIES]
        call.log_level = meta.get(LOG_LEVEL)

    # -- notifications and requests to the client -------------------------------------------------

    def handle_notification(self, method: str, params: Any) -> None:
        if method == "notifications/initialized" and self.revision is not None:
            self.initialized = True
        if method == "notifications/cancelled" and isinstance(params, dict):
            targets = self.server.connections if self.quirk("cancels_anywhere") else [self]
            for connection in list(targets):
                connection.cancel(params.get("requestId"))

    def cancel(self, id: Any) -> None:
        name = key(id)
        with self.lock:
            if self.quirk("loose_ids"):
                name = next((n for n in self.in_flight if str(n[1]) == str(id)), name)
            if not self.quirk("listens_forever"):
                self.listens.pop(name, None)
            names = list(self.in_flight) if self.quirk("cancels_all") else [name]
            for found in names:
                call = self.in_flight.get(found)
                if call is not None:
                    call.cancelled.set()
                    if not self.quirk("answers_cancelled"):
                        del self.in_flight[found]
                    if call.batch is not None:
                        call.batch.settle(None)

    def handle_response(self, message: dict[str, Any]) -> None:
        box = self.asked.pop(message.get("id"), None)
        if box is not None:
            box.put(message)

    def ask(self, method: str, params: dict[str, Any], call: Call) -> dict[str, Any] | None:
        """Send a request to the client and wait for its response."""
        id = 1 if self.quirk("same_request_id") else next(self._ids)
        box: queue.Queue[dict[str, Any]] = queue.Queue()
        self.asked[id] = box
        self.notify(method, params, id=id)
        for _ in range(400):
            try:
                return box.get(timeout=0.05)
            except queue.Empty:
                if call.cancelled.is_set() or self.closed.is_set():
                    return None
        return None

    def notify_changed(self, what: str) -> None:
        method = f"notifications/{what}/list_changed"
        if self.initialized or self.quirk("tells_everybody"):
            self.notify(method)
        for id, filter in list(self.listens.values()):
            if filter.get(f"{what}ListChanged") is True:
                self.notify(method, {"_meta": methods.subscription(id)})

    def end_subscriptions(self) -> None:
        """End every subscription."""
        for id, _ in list(self.listens.values()):
            self.notify("notifications/cancelled", {"requestId": id})
            meta = {SERVER_INFO: INFO, **methods.subscription(id)}
            result = {"resultType": "complete", "_meta": meta}
            self.respond({"id": id}, {"jsonrpc": "2.0", "id": id, "result": result}, None)


def _dump(message: Any) -> bytes:
    return json.dumps(message, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"


def _refuse(word: str) -> Any:
    raise ValueError(word)


def _is_response(message: Any) -> bool:
    if not isinstance(message, dict) or "method" in message:
        return False
    return ("result" in message) != ("error" in message)


def _is_notification(message: dict[str, Any]) -> bool:
    return (
        "id" not in message
        and message.get("jsonrpc") == "2.0"
        and isinstance(message.get("method"), str)
        and "result" not in message
        and "error" not in message
    )


def _is_request(message: dict[str, Any]) -> bool:
    return (
        message.get("jsonrpc") == "2.0"
        and isinstance(message.get("method"), str)
        and "result" not in message
        and "error" not in message
    )


def write_all(fd: int) -> Callable[[bytes], None]:
    """A function that writes all bytes of its argument to a descriptor."""

    def write(data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]

    return write

"""The unanswered requests of one client, and the connection state to restore in a new daemon.

Pure bookkeeping over lines, without I/O. When the daemon dies, the bridge answers every request in
this table with an error that says whether a retry is safe. Standard library only (see
`daemon.bridge.process`).
"""

import json
import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple, NoReturn, cast

from daemon.bridge.retry_advice import READS, advice
from daemon.version import VERSION

#: The start of an answer as our daemon writes it; the id is found without parsing the rest.
_ANSWER: Final = re.compile(rb'\{"jsonrpc":"2\.0","id":("(?:[^"\\]|\\.)*"|-?[0-9.]+),')

REPLAY_ID: Final = "recalld-bridge-replay"
#: Bounds the memory a hostile client can use; more than a daemon ever has in flight.
MAX_WAITING: Final = 10_000
MAX_DEPTH: Final = 64  # equals protocol.jsonrpc.MAX_DEPTH
MAX_BATCH: Final = 1024  # equals protocol.connection.MAX_BATCH


class Fraction(str):
    """A number with a fraction or exponent, in its original spelling."""

    __slots__ = ()


def _no_constants(name: str) -> NoReturn:
    raise ValueError(name)


#: json.loads without encoding detection, and as strict as the daemon.
_scan: Final = json.JSONDecoder(parse_float=Fraction, parse_constant=_no_constants).raw_decode


class Waiting(NamedTuple):
    """A request without an answer; `tool` is empty unless it calls one.

    `state` is the connection state that it changes: a subscribed URI or a log level.
    """

    id: str
    method: str
    tool: str
    state: str = ""


#: Requests that change the state of the connection, and the parameter with the new value.
_STATE_PARAMETERS: Final = {
    "resources/subscribe": "uri",
    "resources/unsubscribe": "uri",
    "logging/setLevel": "level",
}


class PendingRequests:
    """The requests in flight of one client, its handshake, subscriptions and log level."""

    def __init__(self) -> None:
        self.waiting: dict[str, Waiting] = {}
        self.retry_safe: frozenset[str] = frozenset()
        self.initialize: dict[str, Any] | None = None
        self._opening: dict[str, Any] | None = None  # an initialize without an answer
        self.initialized: bytes | None = None
        #: Subscribed resources and log level of a legacy client, as confirmed by the daemon.
        self.uris: dict[str, None] = {}
        self.level: str | None = None

    def asked_by(self, lines: Iterable[bytes]) -> frozenset[str]:
        """Return the ids of the requests in these lines, which the same client sent."""
        copy = PendingRequests()
        copy.initialize, copy._opening = self.initialize, self._opening
        for line in lines:
            copy.sent(line)
        return frozenset(copy.waiting)

    def sent(self, line: bytes) -> None:
        """Record a line that the client sent."""
        try:
            text = line.decode().strip(" \t\r")
            message, end = _scan(text)
        except (ValueError, RecursionError):
            return  # the daemon will reject it without an id
        if end != len(text) or _is_too_deep(text, message):
            return
        if isinstance(message, dict):
            self._record_message(cast("dict[str, Any]", message), line)
        elif isinstance(message, list) and self._has_batches():
            elements = cast("list[Any]", message)
            for element in elements if len(elements) <= MAX_BATCH else []:
                if isinstance(element, dict):
                    self._record_message(cast("dict[str, Any]", element), line)

    def answered(self, line: bytes) -> None:
        """Record a line that the daemon sent."""
        found = _ANSWER.match(line)
        if found is not None:
            self._settle(_answered_key(found[1]), line.startswith(b'"result"', found.end()))
        elif line[:1] == b"[":
            for element in json.loads(line):
                if "id" in element:
                    self._settle(_canonical(element["id"]), "result" in element)

    def _settle(self, key: str, is_result: bool) -> None:
        """Remove an answered request; only a result changes the connection state."""
        waiting = self.waiting.pop(key, None)
        if waiting is None:
            return
        if waiting.method == "initialize":
            self._settle_opening(is_result)
        elif is_result and waiting.method == "resources/subscribe":
            self.uris[waiting.state] = None
        elif is_result and waiting.method == "resources/unsubscribe":
            self.uris.pop(waiting.state, None)
        elif is_result and waiting.method == "logging/setLevel":
            self.level = waiting.state

    def _record_message(self, message: dict[str, Any], line: bytes) -> None:
        method = message.get("method")
        if not isinstance(method, str):
            return
        params: dict[str, Any] = message["params"] if _has_params(message) else {}
        if "id" not in message:
            self._record_notification(method, params, line)
            return
        request_id = message["id"]
        if not _is_id(request_id):
            return
        if method == "initialize" and self.initialize is None:
            self._opening = message
        name = params.get("name") if method == "tools/call" else None
        key = _canonical(request_id)
        if key not in self.waiting:
            if len(self.waiting) >= MAX_WAITING:
                del self.waiting[next(iter(self.waiting))]
            tool = name if isinstance(name, str) else ""
            state = params.get(_STATE_PARAMETERS.get(method, ""), "")
            state = state if isinstance(state, str) else ""
            self.waiting[key] = Waiting(key, method, tool, state)

    def _settle_opening(self, is_open: bool) -> None:
        """Record the answer to an initialize; only a successful one is replayed."""
        if is_open and self._opening is not None:
            self.initialize = self._opening
        self._opening = None

    def _has_batches(self) -> bool:
        """Return whether this client may send batches; otherwise the daemon rejects them whole."""
        opening = self.initialize or self._opening
        if opening is None or not _has_params(opening):
            return False
        return bool(opening["params"].get("protocolVersion") == "2025-03-26")

    def _record_notification(self, method: str, params: dict[str, Any], line: bytes) -> None:
        if method == "notifications/initialized":
            self.initialized = line
        elif method == "notifications/cancelled":
            request_id = params.get("requestId")
            if _is_id(request_id):
                found = self.waiting.get(_canonical(request_id))
                if found is not None and found.method != "initialize":
                    del self.waiting[found.id]

    def replay(self) -> bytes | None:
        """Return the initialize request to replay to a new daemon, with our own id."""
        if self.initialize is None:
            return None
        return json.dumps({**self.initialize, "id": REPLAY_ID}).encode() + b"\n"

    def missed_updates(self) -> bytes:
        """Return an update notification for every subscribed resource, in case it has changed."""
        if self.initialized is None:
            return b""
        method = "notifications/resources/updated"
        notes = ({"jsonrpc": "2.0", "method": method, "params": {"uri": uri}} for uri in self.uris)
        return b"".join(json.dumps(note).encode() + b"\n" for note in notes)

    def lose(self, waiting: Waiting, reason: str) -> bytes:
        """Remove a request that the daemon did not answer, and return the error for it."""
        self.waiting.pop(waiting.id, None)
        is_safe = waiting.method in READS or waiting.tool in self.retry_safe
        reason = f"{reason}; {advice(is_safe)}"
        error = {
            "code": -32603,
            "message": f"The daemon went away: {reason}",
            "data": {
                "kind": "daemon_lost",
                "retrySafe": is_safe,
                "details": reason,
                "version": VERSION,
            },
        }
        body = json.dumps(error, ensure_ascii=False)
        return f'{{"jsonrpc":"2.0","id":{waiting.id},"error":{body}}}\n'.encode()


def _has_params(message: dict[str, Any]) -> bool:
    return isinstance(message.get("params"), dict)


def _canonical(request_id: Any) -> str:
    """Return the canonical spelling of an id, which is the one that our daemon echoes."""
    if type(request_id) is int:
        return str(request_id)
    if type(request_id) is Fraction:
        return _whole(request_id)
    return json.dumps(request_id, ensure_ascii=False)


def _answered_key(raw: bytes) -> str:
    """Return the canonical spelling of an echoed id: 1.0 is 1, -0 is 0, escapes are decoded."""
    if raw[:1] == b'"':
        return raw.decode() if b"\\" not in raw else _canonical(json.loads(raw))
    return _whole(raw.decode())


def _whole(number: str) -> str:
    whole = number.partition(".")[0]
    return "0" if whole == "-0" else whole


def _is_id(value: Any) -> bool:
    """Return whether the daemon accepts this id, by the rule of `protocol.jsonrpc.identity`."""
    if type(value) is Fraction:
        whole, _, rest = value.partition(".")
        return whole.lstrip("-").isdigit() and rest.strip("0") == ""
    if isinstance(value, str):
        return "\0" not in value and not any("\ud800" <= letter <= "\udfff" for letter in value)
    return type(value) is int


def _is_too_deep(text: str, message: Any) -> bool:
    """Return whether the daemon rejects a message for its depth, without reading its id."""
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return False
    level: list[Any] = [message]
    for _ in range(MAX_DEPTH):
        level = [inner for value in level for inner in _children(value)]
        if not level:
            return False
    return any(isinstance(value, (dict, list)) for value in level)


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(cast("dict[str, Any]", value).values())
    return cast("list[Any]", value) if isinstance(value, list) else []

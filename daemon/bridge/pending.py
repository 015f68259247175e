"""What a bridge must know of the traffic it carries: which requests have no answer yet.

Pure bookkeeping over lines, no I/O. When the daemon dies, every request in here gets an answer from
the bridge instead, which says whether asking again is safe. Standard library only (see
`daemon.bridge.process`).
"""

import json
import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple, NoReturn, cast

from daemon.bridge.retry_advice import READS, advice
from daemon.version import VERSION

#: How our daemon writes an answer; the id stands where it can be found without parsing the rest.
_ANSWER: Final = re.compile(rb'\{"jsonrpc":"2\.0","id":("(?:[^"\\]|\\.)*"|-?[0-9.]+),')

REPLAY_ID: Final = "recalld-bridge-replay"
#: More than a daemon ever has in flight; a bound for what a hostile client makes us remember.
MOST_WAITING: Final = 10_000
MAX_DEPTH: Final = 64  # as protocol.jsonrpc has it
MAX_BATCH: Final = 1024  # as protocol.connection has it


class Fraction(str):
    """A number with a fraction or exponent, as it was written."""

    __slots__ = ()


def _no_constants(name: str) -> NoReturn:
    raise ValueError(name)


#: json.loads without the guessing of encodings, and as strict as the daemon.
_scan: Final = json.JSONDecoder(parse_float=Fraction, parse_constant=_no_constants).raw_decode


class Waiting(NamedTuple):
    """A request the client waits for; `tool` is empty unless it calls one.

    `wish` is what it wants the connection to remember: a URI to follow, a log level.
    """

    id: str
    method: str
    tool: str
    wish: str = ""


#: Requests whose effect lasts as long as the connection, and the parameter that says what.
_WISHES: Final = {
    "resources/subscribe": "uri",
    "resources/unsubscribe": "uri",
    "logging/setLevel": "level",
}


class Pending:
    """The requests in flight of one client, the handshake it made, and what that remembers."""

    def __init__(self) -> None:
        self.waiting: dict[str, Waiting] = {}
        self.retry_safe: frozenset[str] = frozenset()
        self.initialize: dict[str, Any] | None = None
        self._opening: dict[str, Any] | None = None  # an initialize that has no answer yet
        self.initialized: bytes | None = None
        #: What the daemon has agreed to: resources a legacy client follows, the level of its log.
        self.uris: dict[str, None] = {}
        self.level: str | None = None

    def asked_by(self, lines: Iterable[bytes]) -> frozenset[str]:
        """The ids that these lines would wait for, sent by the same client."""
        alike = Pending()
        alike.initialize, alike._opening = self.initialize, self._opening
        for line in lines:
            alike.sent(line)
        return frozenset(alike.waiting)

    def sent(self, line: bytes) -> None:
        """The client sent this line."""
        try:
            text = line.decode().strip(" \t\r")
            message, end = _scan(text)
        except (ValueError, RecursionError):
            return  # the daemon will say what is wrong with it, without an id
        if end != len(text) or _is_too_deep(text, message):
            return
        if isinstance(message, dict):
            self._note(cast("dict[str, Any]", message), line)
        elif isinstance(message, list) and self._has_batches():
            elements = cast("list[Any]", message)
            for element in elements if len(elements) <= MAX_BATCH else []:
                if isinstance(element, dict):
                    self._note(cast("dict[str, Any]", element), line)

    def answered(self, line: bytes) -> None:
        """The daemon sent this line."""
        found = _ANSWER.match(line)
        if found is not None:
            self._settle(_answered_key(found[1]), line.startswith(b'"result"', found.end()))
        elif line[:1] == b"[":
            for element in json.loads(line):
                if "id" in element:
                    self._settle(_canonical(element["id"]), "result" in element)

    def _settle(self, key: str, is_done: bool) -> None:
        """A request was answered, with a result or an error; only results have an effect."""
        waiting = self.waiting.pop(key, None)
        if waiting is None:
            return
        if waiting.method == "initialize":
            self._settle_opening(is_done)
        elif is_done and waiting.method == "resources/subscribe":
            self.uris[waiting.wish] = None
        elif is_done and waiting.method == "resources/unsubscribe":
            self.uris.pop(waiting.wish, None)
        elif is_done and waiting.method == "logging/setLevel":
            self.level = waiting.wish

    def _note(self, message: dict[str, Any], line: bytes) -> None:
        method = message.get("method")
        if not isinstance(method, str):
            return
        params: dict[str, Any] = message["params"] if _has_params(message) else {}
        if "id" not in message:
            self._notice(method, params, line)
            return
        request_id = message["id"]
        if not _is_id(request_id):
            return
        if method == "initialize" and self.initialize is None:
            self._opening = message
        name = params.get("name") if method == "tools/call" else None
        key = _canonical(request_id)
        if key not in self.waiting:
            if len(self.waiting) >= MOST_WAITING:
                del self.waiting[next(iter(self.waiting))]
            tool = name if isinstance(name, str) else ""
            wish = params.get(_WISHES.get(method, ""), "")
            self.waiting[key] = Waiting(key, method, tool, wish if isinstance(wish, str) else "")

    def _settle_opening(self, is_open: bool) -> None:
        """An initialize was answered; only one that was agreed is ever made again."""
        if is_open and self._opening is not None:
            self.initialize = self._opening
        self._opening = None

    def _has_batches(self) -> bool:
        """Whether this client may send arrays; the daemon refuses them whole otherwise."""
        opening = self.initialize or self._opening
        if opening is None or not _has_params(opening):
            return False
        return bool(opening["params"].get("protocolVersion") == "2025-03-26")

    def _notice(self, method: str, params: dict[str, Any], line: bytes) -> None:
        if method == "notifications/initialized":
            self.initialized = line
        elif method == "notifications/cancelled":
            request_id = params.get("requestId")
            if _is_id(request_id):
                found = self.waiting.get(_canonical(request_id))
                if found is not None and found.method != "initialize":
                    del self.waiting[found.id]

    def replay(self) -> bytes | None:
        """The handshake to make again with a new daemon, under an id of our own."""
        if self.initialize is None:
            return None
        return json.dumps({**self.initialize, "id": REPLAY_ID}).encode() + b"\n"

    def stale(self) -> bytes:
        """Notifications that what the client follows may have changed while nobody was watching."""
        if self.initialized is None:
            return b""
        method = "notifications/resources/updated"
        notes = ({"jsonrpc": "2.0", "method": method, "params": {"uri": uri}} for uri in self.uris)
        return b"".join(json.dumps(note).encode() + b"\n" for note in notes)

    def lose(self, waiting: Waiting, reason: str) -> bytes:
        """The answer to a request that the daemon took with it."""
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
    """One spelling an id, as the daemon echoes it when it came in that spelling."""
    if type(request_id) is int:
        return str(request_id)
    if type(request_id) is Fraction:
        return _whole(request_id)
    return json.dumps(request_id, ensure_ascii=False)


def _answered_key(raw: bytes) -> str:
    """The same spelling for an id as the daemon echoes it: 1.0 is 1, -0 is 0, escapes are read."""
    if raw[:1] == b'"':
        return raw.decode() if b"\\" not in raw else _canonical(json.loads(raw))
    return _whole(raw.decode())


def _whole(number: str) -> str:
    whole = number.partition(".")[0]
    return "0" if whole == "-0" else whole


def _is_id(value: Any) -> bool:
    """Whether the daemon will answer under this id (`protocol.jsonrpc.identity` decides there)."""
    if type(value) is Fraction:
        whole, _, rest = value.partition(".")
        return whole.lstrip("-").isdigit() and rest.strip("0") == ""
    if isinstance(value, str):
        return "\0" not in value and not any("\ud800" <= letter <= "\udfff" for letter in value)
    return type(value) is int


def _is_too_deep(text: str, message: Any) -> bool:
    """Whether the daemon refuses a message for its depth, and so cannot tell its id."""
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return False
    level: list[Any] = [message]
    for _ in range(MAX_DEPTH):
        level = [inner for value in level for inner in _inside(value)]
        if not level:
            return False
    return any(isinstance(value, (dict, list)) for value in level)


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(cast("dict[str, Any]", value).values())
    return cast("list[Any]", value) if isinstance(value, list) else []

"""What a bridge must know of the traffic it carries: which requests have no answer yet.

Pure bookkeeping over lines, no I/O. When the daemon dies, every request in here gets an answer from
the bridge instead, which says whether asking again is safe. Standard library only (see
`daemon.bridge`).
"""

import json
import re
from typing import Any, Final, NamedTuple, cast

from daemon.version import VERSION

#: How our daemon writes an answer; the id stands where it can be found without parsing the rest.
_ANSWER: Final = re.compile(rb'\{"jsonrpc":"2\.0","id":("(?:[^"\\]|\\.)*"|-?[0-9.]+),')
#: Methods that change nothing: asking twice is as good as asking once.
_READS: Final = frozenset(
    {
        "initialize",
        "ping",
        "health/check",
        "server/discover",
        "tools/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "resources/subscribe",
        "resources/unsubscribe",
        "prompts/list",
        "prompts/get",
        "completion/complete",
        "logging/setLevel",
        "subscriptions/listen",
    }
)

REPLAY_ID: Final = "recalld-bridge-replay"
#: More than a daemon ever has in flight; a bound for what a hostile client makes us remember.
MOST_WAITING: Final = 10_000
#: json.loads without the guessing of encodings: the same parser at less than half the cost.
_scan: Final = json.JSONDecoder().raw_decode


class Waiting(NamedTuple):
    """A request the client waits for; `tool` is empty unless it calls one."""

    id: str
    method: str
    tool: str


class Pending:
    """The requests in flight of one client, and the handshake it made."""

    def __init__(self) -> None:
        self.waiting: dict[str, Waiting] = {}
        self.retry_safe: frozenset[str] = frozenset()
        self.initialize: dict[str, Any] | None = None
        self.initialized: bytes | None = None

    def sent(self, line: bytes) -> None:
        """The client sent this line."""
        try:
            text = line.decode().strip()
            message, end = _scan(text)
        except (ValueError, RecursionError):
            return  # the daemon will say what is wrong with it, without an id
        if end != len(text):
            return
        for element in cast("list[Any]", message) if isinstance(message, list) else [message]:
            if isinstance(element, dict):
                self._note(cast("dict[str, Any]", element), line)

    def answered(self, line: bytes) -> None:
        """The daemon sent this line."""
        found = _ANSWER.match(line)
        if found is not None:
            raw = found[1]
            if b"\\" not in raw:
                self.waiting.pop(raw.decode(), None)
                return
            self.waiting.pop(_canonical(json.loads(raw)), None)
        elif line[:1] == b"[":
            for element in json.loads(line):
                if "id" in element:
                    self.waiting.pop(_canonical(element["id"]), None)

    def _note(self, message: dict[str, Any], line: bytes) -> None:
        method = message.get("method")
        if not isinstance(method, str):
            return
        params: dict[str, Any] = message["params"] if _has_params(message) else {}
        if "id" not in message:
            self._notice(method, params, line)
            return
        request_id = message["id"]
        if isinstance(request_id, bool) or not isinstance(request_id, (int, str, float)):
            return
        if method == "initialize" and self.initialize is None:
            self.initialize = message
        name = params.get("name") if method == "tools/call" else None
        key = _canonical(request_id)
        if key not in self.waiting:
            if len(self.waiting) >= MOST_WAITING:
                del self.waiting[next(iter(self.waiting))]
            tool = name if isinstance(name, str) else ""
            self.waiting[key] = Waiting(key, method, tool)

    def _notice(self, method: str, params: dict[str, Any], line: bytes) -> None:
        if method == "notifications/initialized":
            self.initialized = line
        elif method == "notifications/cancelled":
            request_id = params.get("requestId")
            if isinstance(request_id, (int, str)):
                found = self.waiting.get(_canonical(request_id))
                if found is not None and found.method != "initialize":
                    del self.waiting[found.id]

    def replay(self) -> bytes | None:
        """The handshake to make again with a new daemon, under an id of our own."""
        if self.initialize is None:
            return None
        return json.dumps({**self.initialize, "id": REPLAY_ID}).encode() + b"\n"

    def lose(self, waiting: Waiting, reason: str) -> bytes:
        """The answer to a request that the daemon took with it."""
        self.waiting.pop(waiting.id, None)
        is_safe = waiting.method in _READS or waiting.tool in self.retry_safe
        advice = (
            "asking again is safe"
            if is_safe
            else "it may or may not have been done: check before asking again"
        )
        error = {
            "code": -32603,
            "message": f"The daemon went away: {reason}; {advice}",
            "data": {
                "kind": "daemon_lost",
                "retrySafe": is_safe,
                "details": f"{reason}; {advice}",
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
    if isinstance(request_id, float) and request_id.is_integer():
        return str(int(request_id))
    return json.dumps(request_id, ensure_ascii=False)

"""Test oracle of the fuzzer: checks every response against the frames that were sent.

The oracle parses all sent bytes with the standard library's JSON parser, which is more lenient than
recalld, and counts every id in them. Each line from the server must be one well-formed message.
Each id in a response must have been sent, and may occur at most as often as it was sent. Ids with
the prefix `V-` or `M-` were sent once and unchanged: they must be answered.
"""

import json
import re
import sys
from collections import Counter
from decimal import Decimal
from typing import Any, Final

Identity = tuple[str, str | Decimal]

# The fuzzer sends ids of 5,000 digits, which Python's default limit would reject.
sys.set_int_max_str_digits(0)

BOM: Final = b"\xef\xbb\xbf"
ANY_ID: Final = re.compile(rb'"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?[0-9.eE+-]+)')
# An internal error is a caught crash, unless its message names a limit.
EXPLAINED: Final = frozenset({"overloaded"})
DAEMON_LOST: Final = "daemon_lost"


class Violation(Exception):
    """The server violated a rule."""


class _Members(list[tuple[str, Any]]):
    """An object with its members in order, including duplicate keys."""


class Oracle:
    def __init__(self, *, deaths: bool = False) -> None:
        self.explained = EXPLAINED | {DAEMON_LOST} if deaths else EXPLAINED
        self.sent: Counter[Identity] = Counter()
        self.answered: Counter[Identity] = Counter()
        self.unanswered: set[str] = set()
        self.lines_sent = 0
        self.nameless = 0
        self.codes: Counter[int] = Counter()
        self.notices = 0
        self._partial = b""

    def sending(self, data: bytes) -> None:
        """Record the ids in bytes that are about to be written."""
        *lines, self._partial = (self._partial + data).split(b"\n")
        for line in lines:
            self.lines_sent += 1
            for identity in ids_in(line):
                self.sent[identity] += 1

    def require(self, identity: str) -> None:
        """Require a response to this id, which was sent unchanged."""
        self.unanswered.add(identity)

    def received(self, line: bytes) -> None:
        message = _parse(line)
        if isinstance(message, list):
            if not message:
                raise Violation("an empty batch was received")
            for element in message:
                self._message(element, line)
        else:
            self._message(message, line)

    def _message(self, message: Any, line: bytes) -> None:
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            raise Violation(f"not a JSON-RPC message: {line[:300]!r}")
        if "method" in message:
            if "id" in message:
                raise Violation(f"a request to a client without capabilities: {line[:300]!r}")
            if not isinstance(message["method"], str) or "result" in message or "error" in message:
                raise Violation(f"neither notification nor response: {line[:300]!r}")
            self.notices += 1
            return
        if ("result" in message) == ("error" in message):
            raise Violation(f"not exactly one of result and error: {line[:300]!r}")
        if "error" in message:
            self._error(message["error"], line)
        elif not isinstance(message["result"], dict):
            raise Violation(f"a result that is not an object: {line[:300]!r}")
        self._identity(message, line)

    def _error(self, error: Any, line: bytes) -> None:
        if not isinstance(error, dict) or not isinstance(error.get("message"), str):
            raise Violation(f"a malformed error: {line[:300]!r}")
        code = error.get("code")
        if not isinstance(code, int) or isinstance(code, bool):
            raise Violation(f"an error code that is not an integer: {line[:300]!r}")
        self.codes[code] += 1
        data = error.get("data")
        kind = data.get("kind") if isinstance(data, dict) else None
        if code == -32603 and kind not in self.explained:
            raise Violation(f"an internal error: {line[:300]!r}")

    def _identity(self, message: dict[str, Any], line: bytes) -> None:
        if message.get("id") is None:
            self.nameless += 1
            if "error" not in message:
                raise Violation(f"a result without an id: {line[:300]!r}")
            if self.nameless > self.lines_sent + self.batched:
                raise Violation(f"more errors without an id than lines sent: {line[:300]!r}")
            return
        identity = name(message["id"])
        if identity is None:
            raise Violation(f"an id that is neither string nor number: {line[:300]!r}")
        self.answered[identity] += 1
        if not self.sent[identity]:
            raise Violation(f"an id that was not sent: {line[:300]!r}")
        if self.answered[identity] > self.sent[identity]:
            times = self.sent[identity]
            raise Violation(
                f"answered more often than the {times} times it was sent: {line[:300]!r}"
            )
        self.unanswered.discard(str(identity[1]))

    @property
    def batched(self) -> int:
        """Allow an error for each element of a batch."""
        return self.sent.total()

    def settle(self) -> None:
        """Check that all required responses have arrived."""
        if self.unanswered:
            some = sorted(self.unanswered)[:5]
            raise Violation(
                f"{len(self.unanswered)} requests were never answered: {', '.join(some)}"
            )


def name(value: Any) -> Identity | None:
    """An id as a dictionary key: 1 and 1.0 are equal, 1 and "1" are not."""
    if isinstance(value, str):
        return ("s", value)
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return ("n", Decimal(value))
    return None


def ids_in(line: bytes) -> list[Identity]:
    """Every id that a server could find in this line."""
    line = line.removeprefix(BOM).strip()
    try:
        tree = json.loads(line.decode(), parse_float=Decimal, object_pairs_hook=_Members)
    except RecursionError:
        return [found for text in ANY_ID.findall(line) for found in _loose(text)]
    except ValueError:
        return []
    elements = [tree] if isinstance(tree, _Members) else tree if isinstance(tree, list) else []
    found: list[Identity] = []
    for element in elements:
        if isinstance(element, _Members):
            named = [name(value) for key, value in element if key == "id"]
            found.extend(identity for identity in named if identity is not None)
    return found


def _loose(text: bytes) -> list[Identity]:
    try:
        identity = name(json.loads(text, parse_float=Decimal))
    except ValueError:
        return []
    return [identity] if identity else []


def _parse(line: bytes) -> Any:
    try:
        return json.loads(
            line.decode(), parse_float=Decimal, parse_constant=_refuse, object_pairs_hook=_unique
        )
    except (ValueError, RecursionError) as reason:
        raise Violation(f"not a line of JSON ({reason}): {line[:300]!r}") from reason


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _unique(members: list[tuple[str, Any]]) -> dict[str, Any]:
    unique = dict(members)
    if len(unique) != len(members):
        raise ValueError("duplicate key")
    return unique

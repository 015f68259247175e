"""What may come back, whatever was sent.

The oracle reads the bytes that went out with a parser of its own (the standard library's, which
is more lenient than any server of ours should be) and keeps count of every id it can find in
them. Then each line that comes back has to be one well-formed message, and each id that comes
back one that was sent, no more often than it was sent. Ids of the `V-` and `M-` families were
sent unharmed and once: those have to come back.
"""

import json
import re
import sys
from collections import Counter
from decimal import Decimal
from typing import Any, Final

Identity = tuple[str, str | Decimal]

# A 5,000-digit id is one of the things we send; Python's own guard would hide it from the oracle.
sys.set_int_max_str_digits(0)

BOM: Final = b"\xef\xbb\xbf"
ANY_ID: Final = re.compile(rb'"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?[0-9.eE+-]+)')
# An internal error is a crash that was caught, unless the server says which limit it stood at.
EXPLAINED: Final = frozenset({"overloaded"})
DAEMON_LOST: Final = "daemon_lost"


class Broken(Exception):
    """The server did what it may not do."""


class _Members(list[tuple[str, Any]]):
    """An object with its members in order, doubled keys included."""


class Oracle:
    def __init__(self, *, deaths: bool = False) -> None:
        self.explained = EXPLAINED | {DAEMON_LOST} if deaths else EXPLAINED
        self.sent: Counter[Identity] = Counter()
        self.answered: Counter[Identity] = Counter()
        self.owed: set[str] = set()
        self.lines_sent = 0
        self.nameless = 0
        self.codes: Counter[int] = Counter()
        self.notices = 0
        self._partial = b""

    def sending(self, data: bytes) -> None:
        """Takes note of the ids in what is about to be written."""
        *lines, self._partial = (self._partial + data).split(b"\n")
        for line in lines:
            self.lines_sent += 1
            for identity in ids_in(line):
                self.sent[identity] += 1

    def owe(self, identity: str) -> None:
        """This id goes out unharmed: its answer must come."""
        self.owed.add(identity)

    def received(self, line: bytes) -> None:
        message = _parse(line)
        if isinstance(message, list):
            if not message:
                raise Broken("an empty batch came back")
            for element in message:
                self._message(element, line)
        else:
            self._message(message, line)

    def _message(self, message: Any, line: bytes) -> None:
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            raise Broken(f"not a JSON-RPC message: {line[:300]!r}")
        if "method" in message:
            if "id" in message:
                raise Broken(f"a request to a client without capabilities: {line[:300]!r}")
            if not isinstance(message["method"], str) or "result" in message or "error" in message:
                raise Broken(f"neither notification nor response: {line[:300]!r}")
            self.notices += 1
            return
        if ("result" in message) == ("error" in message):
            raise Broken(f"not exactly one of result and error: {line[:300]!r}")
        if "error" in message:
            self._error(message["error"], line)
        elif not isinstance(message["result"], dict):
            raise Broken(f"a result that is no object: {line[:300]!r}")
        self._identity(message, line)

    def _error(self, error: Any, line: bytes) -> None:
        if not isinstance(error, dict) or not isinstance(error.get("message"), str):
            raise Broken(f"a malformed error: {line[:300]!r}")
        code = error.get("code")
        if not isinstance(code, int) or isinstance(code, bool):
            raise Broken(f"an error code that is no integer: {line[:300]!r}")
        self.codes[code] += 1
        data = error.get("data")
        kind = data.get("kind") if isinstance(data, dict) else None
        if code == -32603 and kind not in self.explained:
            raise Broken(f"an internal error: {line[:300]!r}")

    def _identity(self, message: dict[str, Any], line: bytes) -> None:
        if message.get("id") is None:
            self.nameless += 1
            if "error" not in message:
                raise Broken(f"a result without an id: {line[:300]!r}")
            if self.nameless > self.lines_sent + self.batched:
                raise Broken(f"more errors without an id than lines sent: {line[:300]!r}")
            return
        identity = name(message["id"])
        if identity is None:
            raise Broken(f"an id that is neither string nor number: {line[:300]!r}")
        self.answered[identity] += 1
        if not self.sent[identity]:
            raise Broken(f"an id nobody sent: {line[:300]!r}")
        if self.answered[identity] > self.sent[identity]:
            times = self.sent[identity]
            raise Broken(f"answered more often than the {times} times it was sent: {line[:300]!r}")
        self.owed.discard(str(identity[1]))

    @property
    def batched(self) -> int:
        """Elements of batches may each get an error of their own."""
        return self.sent.total()

    def settle(self) -> None:
        """Call when everything owed has had its time."""
        if self.owed:
            some = sorted(self.owed)[:5]
            raise Broken(f"{len(self.owed)} requests were never answered: {', '.join(some)}")


def name(value: Any) -> Identity | None:
    """An id as something to count by: 1 and 1.0 are the same number, 1 and "1" are not the same."""
    if isinstance(value, str):
        return ("s", value)
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return ("n", Decimal(value))
    return None


def ids_in(line: bytes) -> list[Identity]:
    """Every id that a server could read as one from this line."""
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
        raise Broken(f"not a line of JSON ({reason}): {line[:300]!r}") from reason


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _unique(members: list[tuple[str, Any]]) -> dict[str, Any]:
    told = dict(members)
    if len(told) != len(members):
        raise ValueError("a key comes twice")
    return told

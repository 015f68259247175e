"""Recovers the request id of an oversized message from its first and last few thousand bytes.

A client cannot match an error without an id to its request, and waits until it times out. Most
clients write the id before the large member or as the last member, so the two ends of the line are
enough. They are parsed strictly:

- from the front, member by member at the top level, up to the member that is cut off;
- from the back, complete scalar members before the final brace. Parsing backwards is safe because
  the last brace of an object cannot be part of a string, and because the quote that opens a string
  is never preceded by a backslash while a quote inside it always is.

In doubtful cases (two different ids, a response, an escaped id, not an object) no id is returned.
"""

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from protocol.framing import Oversized
from protocol.jsonrpc import identity

_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_SCALAR: Final = re.compile(rb'(?:"(?:[^"\\]|\\.)*"|[-+.0-9a-zA-Z]+)(?=[ \t\r\n,}])', re.DOTALL)
_NESTING: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|["{}\[\]]', re.DOTALL)
_COLON: Final = re.compile(rb"[ \t\r\n]*:[ \t\r\n]*")
_NEXT: Final = re.compile(rb"[ \t\r\n]*,[ \t\r\n]*")
_OPEN: Final = re.compile(rb"[ \t\r\n]*\{[ \t\r\n]*")
_CLOSE: Final = re.compile(rb"\}[ \t\r\n]*\Z")
#: The last scalar member of the remaining bytes, with the comma or brace before it.
_LAST: Final = re.compile(
    rb'[,{][ \t\r\n]*("[^"\\]*")[ \t\r\n]*:[ \t\r\n]*("[^"\\]*"|[-+.0-9a-zA-Z]+)[ \t\r\n]*\Z'
)
_key: Final = msgspec.json.Decoder(str)
_id: Final = msgspec.json.Decoder(str | int | float)

#: A member: its name, and its value if that is a complete scalar, else empty.
Member = tuple[str, bytes]


def salvage_id(line: Oversized) -> bytes:
    """Return the raw id of an oversized request; empty when it cannot be determined."""
    try:
        front = list(_front(line.head))
        members = front + list(_back(line.tail)) if front else []
        names = {name for name, _ in members}
        if names.isdisjoint(("method", "params")) or names & {"result", "error"}:
            return b""  # a response; its id belongs to a request that we sent
        ids = {value for name, value in members if name == "id"}
        return ids.pop() if len(ids) == 1 and all(map(_is_plain, ids)) else b""
    except (msgspec.MsgspecError, ValueError):
        return b""


def _front(head: bytes) -> Iterator[Member]:
    """Yield the top-level members, up to and including the one that the head cuts off."""
    opened = _OPEN.match(head)
    at = opened.end() if opened else len(head)
    while key := _STRING.match(head, at):
        colon = _COLON.match(head, key.end())
        if colon is None:
            return
        name = _key.decode(key[0])
        scalar = _SCALAR.match(head, colon.end())
        yield name, scalar[0] if scalar else b""
        end = scalar.end() if scalar else _end_of_nested(head, colon.end())
        further = _NEXT.match(head, end) if end else None
        if further is None:
            return
        at = further.end()


def _end_of_nested(head: bytes, at: int) -> int:
    """Return the end of an object or array; 0 when the head ends before it."""
    if head[at : at + 1] not in (b"{", b"["):
        return 0
    depth = 0
    for found in _NESTING.finditer(head, at):
        mark = found[0]
        if mark in b"{[":
            depth += 1
        elif mark in b"}]":
            depth -= 1
            if depth == 0:
                return found.end()
        elif mark == b'"':
            return 0  # the head ends inside a string
    return 0


def _back(tail: bytes) -> Iterator[Member]:
    """Yield the scalar members at the end of the object, last first."""
    closed = _CLOSE.search(tail)
    if closed is None:
        return
    rest = tail[: closed.start()]
    while found := _LAST.search(rest):
        yield _key.decode(found[1]), found[2]
        rest = rest[: found.start()]


def _is_plain(raw: bytes) -> bool:
    """Return whether a raw id can be echoed unchanged."""
    if not raw or b"\\" in raw:
        return False
    _id.decode(raw)
    return bool(identity(raw))

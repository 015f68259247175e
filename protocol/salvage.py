"""The id of a message that was too long to keep, from its first and last few thousand bytes.

A refusal without the id of its request is matched with nothing: the caller waits until it gives up.
Most clients write the id before the large member or as the last member of all, so the two ends of
a line are enough, if they are read strictly:

- from the front, member by member at the top level, up to the member that is cut off;
- from the back, whole scalar members before the final brace. Walking backwards is safe because the
  last brace of an object cannot be part of a string, and because the quote that opens a string is
  never preceded by a backslash while one inside it always is.

Where anything is in doubt (two different ids, an answer instead of a request, an escaped id, no
object at all) there is no id, and the refusal has none.
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
#: A scalar member at the end of what is left, and the mark before it.
_LAST: Final = re.compile(
    rb'[,{][ \t\r\n]*("[^"\\]*")[ \t\r\n]*:[ \t\r\n]*("[^"\\]*"|[-+.0-9a-zA-Z]+)[ \t\r\n]*\Z'
)
_key: Final = msgspec.json.Decoder(str)
_id: Final = msgspec.json.Decoder(str | int | float)

#: A member: its name, and its value where that is a scalar and whole.
Member = tuple[str, bytes]


def salvage_id(line: Oversized) -> bytes:
    """The id to refuse an overlong request under, as it was written; empty when it has none."""
    try:
        front = list(_front(line.head))
        members = front + list(_back(line.tail)) if front else []
        names = {name for name, _ in members}
        if names.isdisjoint(("method", "params")) or names & {"result", "error"}:
            return b""  # an answer of the peer's has an id too, that of a request of ours
        ids = {value for name, value in members if name == "id"}
        return ids.pop() if len(ids) == 1 and all(map(_is_plain, ids)) else b""
    except (msgspec.MsgspecError, ValueError):
        return b""


def _front(head: bytes) -> Iterator[Member]:
    """The members at the top level, up to and with the one that the head ends in."""
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
    """Where an object or array ends; 0 when the head ends before."""
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
            return 0  # a string that the head ends in
    return 0


def _back(tail: bytes) -> Iterator[Member]:
    """The scalar members at the end of the object, last first."""
    closed = _CLOSE.search(tail)
    if closed is None:
        return
    rest = tail[: closed.start()]
    while found := _LAST.search(rest):
        yield _key.decode(found[1]), found[2]
        rest = rest[: found.start()]


def _is_plain(raw: bytes) -> bool:
    """Whether this can be echoed as it stands."""
    if not raw or b"\\" in raw:
        return False
    _id.decode(raw)
    return bool(identity(raw))

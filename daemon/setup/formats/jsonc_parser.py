"""Parser for JSON with comments and trailing commas that keeps the position of every value.

The editor in `jsonc.py` changes a file by replacing spans of its text, so the parser returns nodes
with their offsets. Quotes and escapes follow RFC 8259; JSON5 extensions are refused.
"""

import json
import re
from typing import Any, Final

from daemon.setup.formats.syntax import fault_at

MAX_DEPTH: Final = 100
_BLANK: Final = re.compile(r"(?:[ \t\r\n]++|//[^\r\n]*+|/\*(?s:.*?)\*/)++")
_STRING: Final = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_GOES_ON: Final = re.compile(r"[\w.+-]")
_LITERAL: Final = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")


class Node:
    """A value with its span, and the members of an object or the elements of an array."""

    __slots__ = ("elements", "end", "members", "start", "value")

    def __init__(self, start: int) -> None:
        self.start = start
        self.end = start
        self.value: Any = None
        self.members: list[Member] | None = None
        self.elements: list[Member] | None = None


class Member:
    """One member of an object, or an element of an array with the name "".

    `comma` is the offset of the comma after it, or -1.
    """

    __slots__ = ("comma", "name", "node", "start")

    def __init__(self, name: str, start: int, node: Node) -> None:
        self.name = name
        self.start = start
        self.node = node
        self.comma = -1


def parse(text: str) -> Node | None:
    """The root value; None for a file without a value. Raises SyntaxFault."""
    parser = _Parser(text)
    at = parser.skip(0)
    if at == len(text):
        return None
    root = parser.value(at, 0)
    end = parser.skip(root.end)
    if end < len(text):
        raise fault_at(text, end, f"unexpected {text[end]!r} after the end of the value")
    return root


def skip_blank(text: str, at: int) -> int:
    """The offset after white space and comments."""
    found = _BLANK.match(text, at)
    return found.end() if found else at


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text

    def skip(self, at: int) -> int:
        at = skip_blank(self._text, at)
        if self._text.startswith("/*", at):
            raise fault_at(self._text, at, "the comment has no end")
        return at

    def value(self, at: int, depth: int) -> Node:
        text = self._text
        if depth > MAX_DEPTH:
            raise fault_at(text, at, f"nested deeper than {MAX_DEPTH} levels")
        if text.startswith("{", at):
            return self._object(at, depth)
        if text.startswith("[", at):
            return self._array(at, depth)
        node = Node(at)
        if text.startswith('"', at):
            node.value, node.end = self._string(at)
            return node
        found = _LITERAL.match(text, at)
        if found is None or _GOES_ON.match(text, found.end()):
            shown = repr(text[at]) if at < len(text) else "the end of the file"
            raise fault_at(text, at, f"expected a value, found {shown}")
        node.value, node.end = json.loads(found[0]), found.end()
        return node

    def _string(self, at: int) -> tuple[str, int]:
        found = _STRING.match(self._text, at)
        if found is None:
            raise fault_at(self._text, at, "the string is not terminated or has a wrong escape")
        value: str = json.loads(found[0])
        return value, found.end()

    def _object(self, start: int, depth: int) -> Node:
        text, node = self._text, Node(start)
        members: list[Member] = []
        at = self.skip(start + 1)
        while not text.startswith("}", at):
            if members and members[-1].comma < 0:
                raise fault_at(text, at, f"expected ',' or '}}'{self._found(at)}")
            if not text.startswith('"', at):
                raise fault_at(text, at, f"expected a name in double quotes{self._found(at)}")
            name, end = self._string(at)
            colon = self.skip(end)
            if not text.startswith(":", colon):
                raise fault_at(text, colon, f"expected ':'{self._found(colon)}")
            member = Member(name, at, self.value(self.skip(colon + 1), depth + 1))
            members.append(member)
            at = self.skip(member.node.end)
            if text.startswith(",", at):
                member.comma = at
                at = self.skip(at + 1)
        node.end = at + 1
        node.members = members
        node.value = {member.name: member.node.value for member in members}
        return node

    def _array(self, start: int, depth: int) -> Node:
        text, node = self._text, Node(start)
        elements: list[Member] = []
        at = self.skip(start + 1)
        while not text.startswith("]", at):
            if elements and elements[-1].comma < 0:
                raise fault_at(text, at, f"expected ',' or ']'{self._found(at)}")
            element = Member("", at, self.value(at, depth + 1))
            elements.append(element)
            at = self.skip(element.node.end)
            if text.startswith(",", at):
                element.comma = at
                at = self.skip(at + 1)
        node.end = at + 1
        node.elements = elements
        node.value = [element.node.value for element in elements]
        return node

    def _found(self, at: int) -> str:
        return (
            f", found {self._text[at]!r}" if at < len(self._text) else ", found the end of the file"
        )

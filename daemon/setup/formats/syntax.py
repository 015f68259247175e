"""Shared terms of the file editors: a syntax error with its position, paths and indentation."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

#: A place in a configuration file: the keys from the root to a value.
Key = tuple[str, ...]
MISSING: Final = object()

_INDENTED: Final = re.compile(r"^([ \t]++)(?![\s*/#])", re.MULTILINE)


class Item(str):
    """A part of a key that is the `name` of an element of a list, not the name of a member."""

    __slots__ = ()


class SyntaxFault(Exception):
    """A file that cannot be parsed, or whose structure does not permit the change."""

    def __init__(self, reason: str, line: int, column: int) -> None:
        super().__init__(f"line {line}, column {column}: {reason}")
        self.reason = reason
        self.line = line
        self.column = column


def fault_at(text: str, offset: int, reason: str) -> SyntaxFault:
    """A fault at a character offset; lines and columns count from 1."""
    before = text[:offset]
    line = before.count("\n") + 1
    return SyntaxFault(reason, line, offset - (before.rfind("\n") + 1) + 1)


def newline_of(text: str) -> str:
    """The line ending of a file: that of its first line."""
    end = text.find("\n")
    return "\r\n" if end > 0 and text[end - 1] == "\r" else "\n"


def indent_unit(text: str, default: str = "  ") -> str:
    """One level of indentation: that of the first indented line that is not a comment."""
    found = _INDENTED.search(text)
    if found is None:
        return default
    return "\t" if found[1].startswith("\t") else found[1][:8]


def lookup(data: Any, key: Key) -> Any:
    """The value at a key, or MISSING. An element of a list is found by its `name`."""
    for part in key:
        if isinstance(data, Mapping):
            data = cast("Mapping[str, Any]", data).get(part, MISSING)
        elif isinstance(data, Sequence) and not isinstance(data, str):
            items = cast("Sequence[Any]", data)
            data = next((item for item in items if name_of(item) == part), MISSING)
        else:
            return MISSING
        if data is MISSING:
            return MISSING
    return data


def without(data: Any, key: Key) -> Any:
    """A copy of the data without the value at a key, and without containers that it leaves empty.

    Two versions of a file that differ only at the key are equal after this function.
    """
    first, *rest = key
    if isinstance(data, Mapping):
        mapping = dict(cast("Mapping[str, Any]", data))
        if first in mapping:
            inner = without(mapping[first], tuple(rest)) if rest else None
            mapping[first] = inner
            if inner is None or inner in ({}, []):
                del mapping[first]
        return mapping
    if isinstance(data, Sequence) and not isinstance(data, str):
        items = cast("Sequence[Any]", data)
        return [item for item in items if name_of(item) != first]
    return data


def name_of(item: Any) -> str:
    """The `name` of an element of a list; empty if it has none."""
    return str(cast("Any", item).get("name", "")) if isinstance(item, Mapping) else ""

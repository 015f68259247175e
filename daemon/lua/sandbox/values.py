"""Conversion between Lua values and plain Python values, inside a script process.

Lua strings are bytes. A table is an array if it is marked as one, or if its keys are 1 to n; an
unmarked empty table is an object, as in Context Harness. Holes in an array become null.
"""

from collections.abc import Callable
from typing import Any, Final, cast

import lupa.lua54

DEEPEST: Final = 64
#: The size of a number, a key mark or a bracket, for the estimate of a value's size.
_SMALL: Final = 8

lua: Final[Any] = lupa.lua54  # its stubs describe another version


class Unusable(Exception):
    """A Lua value that has no counterpart in JSON; the message names its place."""


class ToPython:
    """Converts Lua values to Python, up to a total size in bytes."""

    def __init__(self, is_array: Callable[[Any], bool], limit: int, *, binary: bool) -> None:
        self._is_array = is_array
        self._limit = limit
        self._left = limit
        #: Whether strings that are not UTF-8 become bytes; otherwise they are refused.
        self._binary = binary

    def __call__(self, value: Any, place: str, depth: int = 0, *, functions: bool = False) -> Any:
        """The value in Python. With `functions`, functions in a table are left out."""
        match value:
            case None | bool() | int():
                self._spend(_SMALL, place)
                return value
            case float():
                self._spend(_SMALL, place)
                if value != value or value in (float("inf"), float("-inf")):
                    raise Unusable(f"{place}: {value} is not a JSON number")
                return value
            case bytes():
                self._spend(len(value), place)
                return self._text(value, place)
            case _ if lua.lua_type(value) == "table":
                if depth >= DEEPEST:
                    raise Unusable(f"{place}: tables are nested more than {DEEPEST} deep")
                return self._table(value, place, depth, functions=functions)
            case _:
                kind = lua.lua_type(value) or "userdata"
                raise Unusable(f"{place}: a {kind} is not a JSON value")

    def _table(self, table: Any, place: str, depth: int, *, functions: bool) -> Any:
        self._spend(_SMALL, place)
        found: dict[Any, Any] = {}
        for key, value in table.items():
            if functions and lua.lua_type(value) in ("function", "thread"):
                continue
            if isinstance(key, bool) or not isinstance(key, (int, float, bytes)):
                raise Unusable(f"{place}: a {type(key).__name__} is not a JSON key")
            self._spend(_SMALL, place)
            name = self._text(key, place) if isinstance(key, bytes) else key
            shown = name if isinstance(name, (str, int, float)) else "?"
            found[name] = self(value, f"{place}.{shown}", depth + 1, functions=functions)
        if self._is_array(table):
            return self._list(found, place)
        if found and all(isinstance(key, int) and key >= 1 for key in found):
            longest = max(found)
            if longest <= 2 * len(found):
                return self._list(found, place)
        named = {key if isinstance(key, str) else str(key): found[key] for key in found}
        # Lua iterates in the order of its hash table, which differs from run to run.
        return dict(sorted(named.items()))

    def _list(self, found: dict[Any, Any], place: str) -> list[Any]:
        positions = [key for key in found if isinstance(key, int) and key >= 1]
        if len(positions) != len(found):
            raise Unusable(f"{place}: an array has positions only, no names")
        longest = max(positions, default=0)
        self._spend(longest, place)
        return [found.get(position) for position in range(1, longest + 1)]

    def _text(self, value: bytes, place: str) -> Any:
        self._spend(len(value), place)
        try:
            return value.decode()
        except UnicodeDecodeError:
            if self._binary:
                return value
            raise Unusable(f"{place}: a string is not UTF-8") from None

    def _spend(self, size: int, place: str) -> None:
        self._left -= size
        if self._left < 0:
            raise Unusable(f"{place}: the value is larger than {self._limit} bytes")


class ToLua:
    """Converts plain Python values to Lua."""

    def __init__(self, new_table: Callable[[], Any], new_array: Callable[[], Any]) -> None:
        self._new_table = new_table
        self._new_array = new_array

    def __call__(self, value: Any) -> Any:
        match value:
            case str():
                # A lone surrogate cannot come from JSON, and must not raise inside Lua.
                return value.encode("utf-8", "replace")
            case dict():
                table = self._new_table()
                for key, entry in cast("dict[str, Any]", value).items():
                    if entry is not None:
                        table[self(str(key))] = self(entry)
                return table
            case list() | tuple():
                table = self._new_array()
                for position, entry in enumerate(cast("list[Any]", value), 1):
                    if entry is not None:
                        table[position] = self(entry)
                return table
            case int() if not isinstance(value, bool) and not -(2**63) <= value < 2**63:
                return float(value)
            case _:
                return value

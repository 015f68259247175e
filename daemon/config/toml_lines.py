"""Line numbers of keys in a TOML file, for error messages; `tomllib` does not report them."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

_HEADER: Final = re.compile(r"\s*(\[{1,2})([^\]]+)\]{1,2}\s*(?:#.*)?$")
_KEY: Final = re.compile(r"""\s*+([A-Za-z0-9_\-."']++(?: ++[A-Za-z0-9_\-."']++)*+)\s*+=""")


def line_of(text: str, path: Sequence[str]) -> int:
    """The line of the key at this path, else that of its nearest table; 1 if neither is found.

    Each line is read on its own, so a line inside a string of several lines may be mistaken for a
    key. The number is only a hint for a person.
    """
    wanted = tuple(path)
    table: tuple[str, ...] = ()
    best, depth = 1, 0
    for number, line in enumerate(text.splitlines(), 1):
        header = _HEADER.match(line)
        if header:
            table = _keys(f"[{header.group(2)}]")
            at = table
        else:
            key = _KEY.match(line)
            at = (*table, *_keys(f"{key.group(1)} = 0")) if key else ()
        if at and len(at) > depth and at == wanted[: len(at)]:
            best, depth = number, len(at)
    return best


def _keys(line: str) -> tuple[str, ...]:
    """The keys of a table header or an assignment, with quotes and dots interpreted."""
    import tomllib

    try:
        found: Any = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return ()
    names: list[str] = []
    while isinstance(found, dict) and found:
        name, found = next(iter(cast("Mapping[str, Any]", found).items()))
        names.append(name)
    return tuple(names)

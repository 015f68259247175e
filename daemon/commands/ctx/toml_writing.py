"""Writes tables as TOML, for values that were read from TOML."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final, cast

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")


def write_toml(tables: Mapping[str, Any], comment: str) -> str:
    """The text of a file with these tables and a first line of comment."""
    lines = [f"# {comment}"]
    _write_table(lines, (), tables)
    return "\n".join(lines) + "\n"


def _write_table(lines: list[str], keys: tuple[str, ...], table: Mapping[str, Any]) -> None:
    plain = {key: value for key, value in table.items() if not isinstance(value, dict)}
    if keys and (plain or not table):
        lines += ["", f"[{'.'.join(_key(key) for key in keys)}]"]
    lines += [f"{_key(key)} = {_value(value)}" for key, value in plain.items()]
    for key, value in table.items():
        if isinstance(value, dict):
            _write_table(lines, (*keys, key), cast("dict[str, Any]", value))


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _text(key)


def _text(value: str) -> str:
    # JSON escapes are TOML escapes, apart from DEL, which JSON leaves as it is.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")


def _value(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _text(value)
        case int() | float():
            return repr(value)
        case list():
            return f"[{', '.join(_value(each) for each in cast('list[Any]', value))}]"
        case dict():
            pairs = cast("dict[str, Any]", value).items()
            return "{" + ", ".join(f"{_key(key)} = {_value(each)}" for key, each in pairs) + "}"
        case _:  # dates and times of TOML
            return str(value)

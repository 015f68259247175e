"""The parts of statements that only SQLite understands. See `store.database.Dialect`."""

from typing import Any, Final

import msgspec
import orjson


class SqliteDialect:
    """Implements `store.database.Dialect`. `connection.py` registers the function `casefold`."""

    locked = ""  # BEGIN IMMEDIATE has locked the whole file
    contains = "instr(casefold(items.title || char(10) || items.text), ?)"
    has_tag = "EXISTS (SELECT 1 FROM json_each(items.tags) AS tag WHERE tag.value = ?)"
    asks = "substr(rtrim(items.text), -1) = '?'"

    each_tag = "JOIN json_each(items.tags) AS tag"
    texts = numbers = "SELECT value FROM json_each(?)"

    def member(self, column: str, name: str) -> str:
        return f"json_extract({column}, '$.{name}')"

    def has_member(self, name: str, wanted: Any) -> tuple[str, list[Any]]:
        condition, values = _member(wanted)
        exists = "EXISTS (SELECT 1 FROM json_each(items.metadata) AS member WHERE member.key = ?"
        return f"{exists} AND {condition})", [name, *values]


DIALECT: Final = SqliteDialect()


def _member(wanted: Any) -> tuple[str, list[Any]]:
    """The condition that a metadata member equals a JSON value in type and value."""
    match wanted:
        case None:
            return "member.type = 'null'", []
        case bool():
            return "member.type = ?", ["true" if wanted else "false"]
        case int() if not -(2**63) <= wanted < 2**63:
            return "FALSE", []  # no stored number is that large
        case int() | float():
            return "member.type IN ('integer', 'real') AND member.atom = ?", [wanted]
        case str():
            return "member.type = 'text' AND member.atom = ?", [wanted]
        case _:
            # Earlier versions wrote large floats as 1e22, with msgspec; orjson writes 1e+22.
            written = {orjson.dumps(wanted).decode(), msgspec.json.encode(wanted).decode()}
            return f"member.value IN ({','.join(['json(?)'] * len(written))})", sorted(written)

"""Editor for TOML files: changes one table and leaves every other byte as it is.

Our entry is a table with a header of its own. Its lines are found by a scanner that splits a file
into statements, and are replaced as text, because tomlkit counts the comments after a table as part
of it and would remove them. Entries in other notations (inline tables, dotted keys) are left to
tomlkit. The caller compares all other values afterwards.
"""

import json
import re
import tomllib
from typing import Any, Final, Literal, NamedTuple, cast

from daemon.setup.formats.syntax import Key, SyntaxFault, fault_at, newline_of

_ERROR: Final = re.compile(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)$", re.DOTALL)
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_KEY_PART: Final = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'[^']*'|[A-Za-z0-9_-]+")
_TOKEN: Final = re.compile(
    r'"""(?s:(?:[^"\\]|\\.|"{1,2}(?!"))*)"{3,5}'
    r"|'''(?s:(?:[^']|'{1,2}(?!'))*)'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'"
    r"|#[^\n]*|[\[{]|[\]}]|\n|[^\"'#\[\]{}\n]+"
)


class _Statement(NamedTuple):
    """A header, an assignment, or a blank or comment line, with its span up to the line ending."""

    kind: Literal["table", "array", "value", "other"]
    start: int
    end: int
    key: Key


def read(text: str) -> Any:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = _ERROR.match(str(error))
        reason = found[1] if found else str(error)
        if found is None or found[2] is None:
            raise fault_at(text, len(text), reason) from None
        raise SyntaxFault(reason, int(found[2]), int(found[3])) from None


def put(text: str, key: Key, value: Any) -> str:
    """Set a table, or one value in an existing table."""
    read(text)
    statements = _statements(text)
    if isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        span = _table(statements, key)
        if span is not None:
            return _replace(text, span, key, table)
        added = _append(text, key, table)
        return added if _has(added, key) else _with_tomlkit(text, key, table)
    span = _table(statements, key[:-1])
    if span is None:
        return _with_tomlkit(text, key, value)
    newline = newline_of(text)
    line = f"{_name(key[-1])} = {_render(value)}"
    for statement in span:
        if statement.kind == "value" and statement.key == (key[-1],):
            return text[: statement.start] + line + text[statement.end :]
    last = [each for each in span if each.kind != "other"][-1]
    return text[: last.end] + newline + line + text[last.end :]


def drop(text: str, key: Key) -> str:
    """Remove a table with its header; comments around it stay."""
    if not _has(text, key):
        return text
    span = _table(_statements(text), key)
    if span is None:
        return _with_tomlkit(text, key, None)
    return _replace(text, span, key, None)


def _has(text: str, key: Key) -> bool:
    try:
        data: Any = tomllib.loads(text)
        for part in key:
            data = data[part]
    except (tomllib.TOMLDecodeError, KeyError, TypeError):
        return False
    return True


def _append(text: str, key: Key, value: dict[str, Any]) -> str:
    newline = newline_of(text)
    gap = ""
    if text.strip():
        gap = newline if text.endswith("\n") else newline * 2
        if text.endswith(newline * 2):
            gap = ""
    return text + gap + newline.join(_lines(key, value)) + newline


def _replace(text: str, span: list[_Statement], key: Key, value: dict[str, Any] | None) -> str:
    """Replace the statements of a table. Without a value, one blank line before it goes too."""
    if value is not None:
        newline = newline_of(text)
        body = newline.join(_lines(key, value))
        keep = [each for each in span if each.kind != "other"]
        rest = _cut(text, keep[1:])
        return text[: keep[0].start] + body + rest[keep[0].end :]
    result = _cut(text, [each for each in span if each.kind != "other"])
    start = span[0].start
    before, after = result[:start], result[start:]
    for blank in ("\r\n\r\n", "\n\n"):
        if before.endswith(blank) and (not after.strip() or after.startswith(("\n", "\r\n"))):
            return before[: -len(blank) // 2] + after
    return result


def _cut(text: str, statements: list[_Statement]) -> str:
    """Remove statements with their line endings; a comment after a value on its line goes too."""
    for statement in reversed(statements):
        end = text.find("\n", statement.end)
        text = text[: statement.start] + (text[end + 1 :] if end >= 0 else "")
    return text


def _table(statements: list[_Statement], key: Key) -> list[_Statement] | None:
    """The statements of a table that has a header, sub-tables included; None if it has none."""
    found: list[_Statement] = []
    is_inside = False
    for statement in statements:
        if statement.kind in ("table", "array"):
            is_inside = statement.kind == "table" and statement.key[: len(key)] == key
        if is_inside:
            found.append(statement)
    while found and found[-1].kind == "other":
        found.pop()
    has_header = any(each.kind == "table" and each.key == key for each in found)
    return found if has_header else None


def _statements(text: str) -> list[_Statement]:
    found: list[_Statement] = []
    at = 0
    while at < len(text):
        start, depth, end = at, 0, at
        while at < len(text):
            token = _TOKEN.match(text, at)
            assert token is not None, "tomllib accepted the text"
            word = token[0]
            at = token.end()
            if word == "\n" and depth == 0:
                break
            depth += (word in ("[", "{")) - (word in ("]", "}"))
            if not word.startswith("#") and word.strip():
                end = token.start() + len(word.rstrip())
        found.append(_statement(text, start, end))
    return found


def _statement(text: str, start: int, end: int) -> _Statement:
    line = text[start:end].strip()
    start += len(text[start:end]) - len(text[start:end].lstrip()) if line else 0
    if line.startswith("[["):
        return _Statement("array", start, end, _key(line[2:-2]))
    if line.startswith("["):
        return _Statement("table", start, end, _key(line[1:-1]))
    if line:
        return _Statement("value", start, end, _key(line))
    return _Statement("other", start, end, ())


def _key(text: str) -> Key:
    """The parts of a dotted key at the start of a text."""
    parts: list[str] = []
    at = 0
    while True:
        at += len(text[at:]) - len(text[at:].lstrip(" \t"))
        found = _KEY_PART.match(text, at)
        assert found is not None, "tomllib accepted the text"
        word = found[0]
        parts.append(next(iter(tomllib.loads(f"{word} = 0"))))
        at = found.end()
        at += len(text[at:]) - len(text[at:].lstrip(" \t"))
        if not text.startswith(".", at):
            return tuple(parts)
        at += 1


def _lines(key: Key, value: dict[str, Any]) -> list[str]:
    header = f"[{'.'.join(map(_name, key))}]"
    return [header, *(f"{_name(name)} = {_render(each)}" for name, each in value.items())]


def _name(name: str) -> str:
    return name if _BARE.fullmatch(name) else json.dumps(name)


def _render(value: Any) -> str:
    import tomlkit

    if isinstance(value, dict):
        table: Any = tomlkit.inline_table()
        table.update(value)
        return str(table.as_string())
    return str(cast("Any", tomlkit.item(value)).as_string())


def _with_tomlkit(text: str, key: Key, value: Any) -> str:
    import tomlkit
    import tomlkit.exceptions

    try:
        document = tomlkit.parse(text)
        table: Any = document
        for part in key[:-1]:
            if part not in table:
                table[part] = tomlkit.inline_table()
            table = table[part]
        if value is None:
            del table[key[-1]]
        elif isinstance(value, dict):
            inline: Any = tomlkit.inline_table()
            inline.update(value)
            table[key[-1]] = inline
        else:
            table[key[-1]] = value
        return tomlkit.dumps(document)
    except (tomlkit.exceptions.TOMLKitError, TypeError, KeyError):
        name = ".".join(key)
        raise SyntaxFault(f"{name} cannot be changed in this notation", 1, 1) from None

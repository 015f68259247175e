"""Front matter of Markdown files: the block between two lines of three hyphens.

It is YAML in practice. This reader understands the part that notes use: scalars, quoted texts,
lists in brackets, lists with hyphens, and JSON values. Deeper structures are kept as their text.
"""

import re
from typing import Any, Final, NamedTuple

import orjson

_KEY: Final = re.compile(r"([A-Za-z_][\w .-]{0,99}):(?:[ \t]+|$)")
_WORDS: Final[dict[str, Any]] = {"": None, "~": None, "null": None, "true": True, "false": False}
FENCE: Final = "---"
_JSON_STARTS: Final = frozenset('"[{-0123456789')


class Parsed(NamedTuple):
    """The fields of the front matter, and the text after it."""

    fields: dict[str, Any]
    body: str


def parse(text: str) -> Parsed:
    """Split a file; without front matter the whole text is the body."""
    text = text.removeprefix("\ufeff")
    lines = text.split("\n")
    if lines[0].rstrip() != FENCE:
        return Parsed({}, text)
    end = next((at for at, line in enumerate(lines[1:], 1) if line.rstrip() in (FENCE, "...")), 0)
    if not end:
        return Parsed({}, text)
    return Parsed(_fields(lines[1:end]), "\n".join(lines[end + 1 :]))


def _fields(lines: list[str]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    key: str | None = None
    block: list[str] = []
    for line in lines:
        match = _KEY.match(line)
        if match is None:
            block.append(line)
            continue
        _close(fields, key, block)
        name = match[1].rstrip()
        key, block = name, []
        rest = line[match.end() :].rstrip()
        if rest and not rest.startswith(("|", ">")):
            fields[name] = scalar(rest)
    _close(fields, key, block)
    return fields


def _close(fields: dict[str, Any], key: str | None, block: list[str]) -> None:
    """Store the lines below a key: a list, or a text."""
    if key is None or fields.get(key) is not None:
        return
    entries = [line.strip() for line in block if line.strip()]
    if not entries:
        fields.setdefault(key, None)
    elif all(entry.startswith("- ") or entry == "-" for entry in entries):
        fields[key] = [scalar(entry[1:].strip()) for entry in entries]
    else:
        fields[key] = "\n".join(entries)


def scalar(text: str) -> Any:
    """The value of a scalar or of a list in brackets."""
    if text[:1] in _JSON_STARTS:
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            pass
    if text.startswith("[") and text.endswith("]"):
        return [scalar(part.strip()) for part in text[1:-1].split(",") if part.strip()]
    if len(text) >= 2 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    return text

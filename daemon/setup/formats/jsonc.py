"""Editor for JSON with comments: changes one value and leaves every other byte as it is.

`put` and `drop` return the new text. They replace the span of one member, insert a member after the
last one, or remove a member with its comma. Comments, order, indentation, line endings and trailing
commas of the rest stay.
"""

import json
from typing import Any

from daemon.setup.formats.jsonc_parser import Member, Node, parse, skip_blank
from daemon.setup.formats.syntax import Key, fault_at, indent_unit, newline_of


def read(text: str) -> Any:
    """The data of a file; an empty object for a file without a value."""
    root = parse(text)
    return {} if root is None else root.value


def put(text: str, key: Key, value: Any) -> str:
    """Set the value at a key; missing objects on the way are created."""
    root = parse(text)
    if root is None:
        gap = "" if not text.strip() or text.endswith("\n") else newline_of(text)
        body = _render(_nested(key, value), "", text)
        return f"{text if text.strip() else ''}{gap}{body}{newline_of(text)}"
    node = root
    for depth, name in enumerate(key):
        member = _member(text, node, name)
        if member is None:
            return _insert(text, node, name, _nested(key[depth + 1 :], value))
        if depth == len(key) - 1:
            indent = _line_indent(text, member.start)
            rendered = _render(value, indent, text, inline=_is_inline(text, node))
            return text[: member.node.start] + rendered + text[member.node.end :]
        node = member.node
    raise AssertionError("an empty key")


def drop(text: str, key: Key) -> str:
    """Remove the member at a key; the same text if there is none."""
    node = _find(text, key[:-1])
    if node is None or _member(text, node, key[-1]) is None:
        return text
    members = node.members or []
    position = next(i for i, member in enumerate(members) if member.name == key[-1])
    return _remove(text, node, members, position)


def append(text: str, key: Key, value: Any) -> str:
    """Add an element to the array at a key; a missing array is created."""
    node = _find(text, key)
    if node is None:
        return put(text, key, [value])
    if node.elements is None:
        raise fault_at(text, node.start, f"expected an array at {'.'.join(key)}")
    return _insert(text, node, "", value)


def discard(text: str, key: Key, position: int) -> str:
    """Remove one element of the array at a key."""
    node = _find(text, key)
    assert node is not None and node.elements is not None
    return _remove(text, node, node.elements, position)


def _find(text: str, key: Key) -> Node | None:
    node = parse(text)
    for name in key:
        member = None if node is None else _member(text, node, name)
        node = None if member is None else member.node
    return node


def _member(text: str, node: Node, name: str) -> Member | None:
    if node.members is None:
        raise fault_at(text, node.start, f"expected an object that can hold {name!r}")
    found = [member for member in node.members if member.name == name]
    if len(found) > 1:
        raise fault_at(text, found[1].start, f"{name!r} occurs twice in this object")
    return found[0] if found else None


def _nested(key: Key, value: Any) -> Any:
    for name in reversed(key):
        value = {name: value}
    return value


def _render(value: Any, indent: str, text: str, *, inline: bool = False) -> str:
    if inline:
        return json.dumps(value, ensure_ascii=False)
    unit = indent_unit(text)
    newline = newline_of(text)
    lines = json.dumps(value, ensure_ascii=False, indent=unit).split("\n")
    return (newline + indent).join(lines)


def _line_indent(text: str, at: int) -> str:
    """The white space at the start of the line that contains an offset."""
    start = text.rfind("\n", 0, at) + 1
    line = text[start:at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _is_inline(text: str, node: Node) -> bool:
    """Whether an object with members is written on one line."""
    members = node.members or node.elements or []
    return bool(members) and "\n" not in text[node.start : members[-1].node.end]


def _insert(text: str, node: Node, name: str, value: Any) -> str:
    members = node.members or node.elements or []
    newline, unit = newline_of(text), indent_unit(text)
    outer = _line_indent(text, node.start)
    label = "" if node.elements is not None else json.dumps(name, ensure_ascii=False) + ": "
    if not members:
        line = newline + outer + unit + label + _render(value, outer + unit, text)
        inside = text[node.start + 1 : node.end - 1]
        if inside.strip():  # comments only
            kept = inside.rstrip()
            return text[: node.start + 1] + kept + line + newline + outer + text[node.end - 1 :]
        end = inside.rfind("\n")
        tail = inside[end - inside[:end].endswith("\r") :] if end >= 0 else newline + outer
        return text[: node.start + 1] + line + tail + text[node.end - 1 :]
    last = members[-1]
    if _is_inline(text, node):
        addition = f"{label}{_render(value, '', text, inline=True)}"
        if last.comma >= 0:
            return text[: last.comma + 1] + f" {addition}," + text[last.comma + 1 :]
        return text[: last.node.end] + f", {addition}" + text[last.node.end :]
    indent = _line_indent(text, members[0].start)
    addition = newline + indent + label + _render(value, indent, text)
    if last.comma >= 0:
        at = _end_of_line(text, last.comma + 1, node.end - 1)
        return text[:at] + addition + "," + text[at:]
    at = _end_of_line(text, last.node.end, node.end - 1)
    return text[: last.node.end] + "," + text[last.node.end : at] + addition + text[at:]


def _end_of_line(text: str, at: int, limit: int) -> int:
    """The offset after a comment that follows on the same line; `at` if there is none."""
    end = min(skip_blank(text, at), limit)
    line = text[at:end].split("\n", 1)[0].rstrip()
    return at + len(line)


def _remove(text: str, node: Node, members: list[Member], position: int) -> str:
    member = members[position]
    end = member.comma + 1 if member.comma >= 0 else member.node.end
    is_last = position == len(members) - 1
    start = member.start
    line_start = text.rfind("\n", 0, start) + 1
    owns_start = not text[line_start:start].strip(" \t")
    line_end = text.find("\n", end)
    line_end = len(text) if line_end < 0 else line_end + 1
    owns_end = not text[end:line_end].strip()
    if len(members) == 1:
        before, after = text[node.start + 1 : start], text[end : node.end - 1]
        if not (before + after).strip():
            return text[: node.start + 1] + text[node.end - 1 :]
    if owns_start and owns_end:
        result = text[:line_start] + text[line_end:]
    elif is_last:
        previous = members[position - 1] if position else None
        begin = start if previous is None else max(previous.comma + 1, previous.node.end)
        gap = text[begin:start]
        begin = begin if not gap.strip() else start
        result = text[:begin] + text[end:]
    else:
        follow = members[position + 1].start
        result = text[:start] + (text[follow:] if not text[end:follow].strip() else text[end:])
    if is_last and position and member.comma < 0:
        comma = members[position - 1].comma
        result = result[:comma] + result[comma + 1 :]
    return result

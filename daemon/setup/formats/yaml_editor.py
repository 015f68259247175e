"""Editor for YAML files: changes one value and leaves every other byte as it is.

ruamel.yaml parses the file into nodes with their positions. The edit itself is a replacement of
text, because writing the whole document would reformat it. The caller compares all other values
afterwards.
"""

import json
from typing import Any, cast

from daemon.setup.formats.syntax import Item, Key, SyntaxFault, indent_unit, newline_of
from daemon.setup.formats.yaml_parser import Node, compose, load

read = load


def put(text: str, key: Key, value: Any) -> str:
    """Set the value at a key; missing mappings on the way are created."""
    load(text)
    root = compose(text)
    if root is None or root.is_null:
        return _with_end(text) + _block(_nested(key, value), "", text)
    node = root
    for depth, name in enumerate(key):
        found = _child(node, name)
        if found is None:
            return _insert(text, node, name, _nested(key[depth + 1 :], value))
        if depth == len(key) - 1:
            return _replace(text, node, found, name, value)
        label, child = found
        if child.is_null:
            return _fill(text, label, child, _nested(key[depth + 1 :], value))
        node = child
    raise AssertionError("an empty key")


def drop(text: str, key: Key) -> str:
    """Remove the value at a key; the same text if there is none."""
    node = compose(text)
    holder: Node | None = None
    for name in key[:-1]:
        found = None if node is None else _child(node, name)
        holder, node = (None, None) if found is None else found
    found = None if node is None else _child(node, key[-1])
    if node is None or found is None:
        return text
    label, child = found
    start = label.start
    if node.is_flow:
        return _drop_flow(text, label, child)
    line = text.rfind("\n", 0, start) + 1
    lines = text.find("\n", child.end)
    end = len(text) if lines < 0 else lines + 1
    if holder is not None and len(node.members or node.elements) == 1:
        colon = text.index(":", holder.end) + 1
        empty = "[]" if node.kind == "sequence" else "{}"
        return f"{text[:colon]} {empty}{text[colon:line]}{text[end:]}"
    return text[:line] + text[end:]


def _child(node: Node, name: str) -> tuple[Node, Node] | None:
    """The label and the value of a member; for a list, the element with that `name` twice."""
    if node.kind == "mapping":
        return next(((key, value) for key, value in node.members if key.text == name), None)
    if node.kind == "sequence":
        for item in node.elements:
            named = _child(item, "name") if item.kind == "mapping" else None
            if named is not None and named[1].text == name:
                return item, item
        return None
    reason = f"expected a mapping that can hold {name!r}"
    raise SyntaxFault(reason, node.line, node.column + 1)


def _nested(key: Key, value: Any) -> Any:
    for name in reversed(key):
        value = [value] if isinstance(name, Item) else {name: value}
    return value


def _insert(text: str, node: Node, name: str, value: Any) -> str:
    is_list = node.kind == "sequence"
    values = node.elements or [value for _, value in node.members]
    if node.is_flow:
        item = json.dumps(value, ensure_ascii=False)
        item = item if is_list else f"{json.dumps(name)}: {item}"
        end = node.end - 1
        if not values:
            return _unfold(text, node, name, value)
        inner = text[:end].rstrip()
        comma = "" if inner.endswith(",") else ","
        return f"{inner}{comma} {item}{text[len(inner) : end]}{text[end:]}"
    column = node.column
    if is_list:
        column = _line_column(text, values[0].start)
    at = _line_end(text, values[-1].end)
    body = _block([value] if is_list else {name: value}, " " * column, text)
    return _with_end(text[:at]) + body + text[at:]


def _unfold(text: str, node: Node, name: str, value: Any) -> str:
    """Replace `[]` or `{}` by a block."""
    start, end = node.start, node.end
    line = text[text.rfind("\n", 0, start) + 1 : start]
    indent = line[: len(line) - len(line.lstrip())] + indent_unit(text)
    body = _block([value] if node.kind == "sequence" else {name: value}, indent, text)
    rest = _line_end(text, end)
    if start == 0:
        return _block({name: value}, "", text) + text[rest:]
    return text[:start].rstrip() + text[end:rest].rstrip() + newline_of(text) + body + text[rest:]


def _fill(text: str, label: Node, child: Node, value: Any) -> str:
    """Add the first member below a key that has no value."""
    line = _line_column(text, label.start)
    at = _line_end(text, max(label.end, child.end))
    head = text[:at]
    if child.end > child.start:  # `null` or `~` is written out
        head = head[: child.start].rstrip() + text[child.end : at]
    indent = " " * line + indent_unit(text)
    body = _block(value, indent, text)
    return _with_end(head) + body + text[at:]


def _replace(text: str, node: Node, found: tuple[Node, Node], name: str, value: Any) -> str:
    label, child = found
    start, end = child.start, child.end
    if node.is_flow or (child.kind == "scalar" and not isinstance(value, dict | list)):
        return text[:start] + json.dumps(value, ensure_ascii=False) + text[end:]
    column = _line_column(text, label.start)
    is_list = node.kind == "sequence"
    body = _block([value] if is_list else {name: value}, " " * column, text)
    line = text.rfind("\n", 0, label.start) + 1
    rest = _line_end(text, end)
    return text[:line] + body + text[rest:]


def _drop_flow(text: str, label: Node, child: Node) -> str:
    start, end = label.start, child.end
    after = end + len(text[end:]) - len(text[end:].lstrip())
    if text.startswith(",", after):
        follow = after + 1
        follow += len(text[follow:]) - len(text[follow:].lstrip(" "))
        return text[:start] + text[follow:]
    before = text[:start].rstrip()
    return (before[:-1] if before.endswith(",") else before) + text[end:]


def _block(value: Any, indent: str, text: str) -> str:
    """A value as block lines, each with an indentation and a line ending."""
    unit = " " * min(len(indent_unit(text)), 4)
    return "".join(f"{indent}{line}{newline_of(text)}" for line in _lines(value, unit))


def _lines(value: Any, unit: str) -> list[str]:
    if isinstance(value, list):
        found: list[str] = []
        for item in cast("list[Any]", value):
            inner = _lines(item, unit) if isinstance(item, dict) else [_scalar(item)]
            found += [f"{'  ' if i else '- '}{line}" for i, line in enumerate(inner)]
        return found
    lines: list[str] = []
    for name, each in cast("dict[str, Any]", value).items():
        label = name if name.replace("-", "").replace("_", "").isalnum() else json.dumps(name)
        if isinstance(each, dict | list) and each:
            inner = _lines(each, unit)
            lines += [f"{label}:", *(unit + line for line in inner)]
        else:
            lines.append(f"{label}: {_scalar(each)}")
    return lines


def _scalar(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1


def _line_column(text: str, at: int) -> int:
    """The number of blanks at the start of the line of an offset."""
    line = text[text.rfind("\n", 0, at) + 1 :]
    return len(line) - len(line.lstrip(" "))


def _with_end(text: str) -> str:
    return text if not text or text.endswith("\n") else text + newline_of(text)

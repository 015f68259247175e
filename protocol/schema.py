"""JSON Schemas out of Structs, inlined: no `$ref` at the root, none inside.

Clients differ in how much of JSON Schema they follow; some drop tools whose schema has references.
So every definition is written out where it is used, and what only helps programmers (titles made of
class names, docstrings) is left out. Schemas are read by language models, who pay for every word: a
value that may be null says so in one word, and results do not repeat which of their fields are
always there.
"""

from typing import Any, cast

import msgspec


def schema_of(type_: Any) -> dict[str, Any]:
    """The inlined schema of a Struct (or any type msgspec knows)."""
    (root,), definitions = msgspec.json.schema_components([type_])
    schema = _inline(root, definitions, ())
    return cast("dict[str, Any]", schema)


def result_schema_of(type_: Any) -> dict[str, Any]:
    """The same for what goes out, without the words that only a sender needs."""
    return cast("dict[str, Any]", _spare(schema_of(type_)))


def _spare(node: Any) -> Any:
    if isinstance(node, list):
        return [_spare(entry) for entry in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    members = cast("dict[str, Any]", node)
    kept: dict[str, Any] = {}
    for key, value in members.items():
        if key == "properties":
            kept[key] = {name: _spare(entry) for name, entry in value.items()}
        elif key not in ("required", "default"):
            kept[key] = _spare(value)
    return kept


def _inline(node: Any, definitions: dict[str, Any], seen: tuple[str, ...]) -> Any:
    if isinstance(node, list):
        return [_inline(entry, definitions, seen) for entry in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    members = cast("dict[str, Any]", node)
    reference = members.get("$ref")
    if isinstance(reference, str):
        name = reference.rpartition("/")[2]
        if name in seen:
            raise ValueError(f"schema of {name} refers to itself and cannot be inlined")
        definition = cast("dict[str, Any]", definitions[name])
        plain = {key: value for key, value in definition.items() if key != "description"}
        return _inline({**plain, **_beside(members)}, definitions, (*seen, name))
    nullable = _nullable(members)
    if nullable is not None:
        return nullable
    return {
        key: _inline_member(key, value, definitions, seen)
        for key, value in members.items()
        if not _is_class_title(key, value)
    }


def _beside(members: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in members.items() if key != "$ref"}


def _nullable(members: dict[str, Any]) -> dict[str, Any] | None:
    """`anyOf` a plain type or null, said as a list of types."""
    choices = members.get("anyOf")
    if not isinstance(choices, list) or {"type": "null"} not in choices:
        return None
    others = [
        choice for choice in cast("list[dict[str, Any]]", choices) if choice.get("type") != "null"
    ]
    if len(others) != 1 or not isinstance(others[0].get("type"), str) or "enum" in others[0]:
        return None
    rest = {key: value for key, value in members.items() if key != "anyOf"}
    return {**others[0], "type": [others[0]["type"], "null"], **rest}


def _inline_member(key: str, value: Any, definitions: dict[str, Any], seen: tuple[str, ...]) -> Any:
    if key == "properties" and isinstance(value, dict):
        # A property may be called "title"; only keywords of a schema are dropped.
        properties = cast("dict[str, Any]", value)
        return {name: _inline(entry, definitions, seen) for name, entry in properties.items()}
    if key in ("default", "enum", "const", "examples"):
        return value
    return _inline(value, definitions, seen)


def _is_class_title(key: str, value: Any) -> bool:
    return key == "title" and isinstance(value, str) and value[:1].isupper() and " " not in value

"""JSON Schemas out of Structs, inlined: no `$ref` at the root, none inside.

Clients differ in how much of JSON Schema they follow; some drop tools whose schema has references.
So every definition is written out where it is used, and what only helps programmers (titles made of
class names) is left out.
"""

from typing import Any, cast

import msgspec


def schema_of(type_: Any) -> dict[str, Any]:
    """The inlined schema of a Struct (or any type msgspec knows)."""
    (root,), definitions = msgspec.json.schema_components([type_])
    schema = _inline(root, definitions, ())
    return cast("dict[str, Any]", schema)


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
        return _inline(definitions[name], definitions, (*seen, name))
    return {
        key: _inline_member(key, value, definitions, seen)
        for key, value in members.items()
        if not _is_class_title(key, value)
    }


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

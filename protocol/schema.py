"""JSON Schemas of Structs, with every `$ref` replaced by its definition.

Some clients drop tools whose schema contains references, so every definition is inlined. Titles
made of class names and docstrings are removed. Schemas cost language-model tokens, so a nullable
value is written as a list of types, and result schemas omit `required` and `default`.
"""

from typing import Any, cast

import msgspec


def schema_of(type_: Any) -> dict[str, Any]:
    """Return the inlined schema of a Struct or any other type that msgspec supports."""
    (root,), definitions = msgspec.json.schema_components([type_])
    schema = _inline(root, definitions, ())
    return cast("dict[str, Any]", schema)


def result_schema_of(type_: Any) -> dict[str, Any]:
    """Return the schema of a result type, without `required` and `default`."""
    return cast("dict[str, Any]", _without_defaults(schema_of(type_)))


def _without_defaults(node: Any) -> Any:
    if isinstance(node, list):
        return [_without_defaults(entry) for entry in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    members = cast("dict[str, Any]", node)
    kept: dict[str, Any] = {}
    for key, value in members.items():
        if key == "properties":
            kept[key] = {name: _without_defaults(entry) for name, entry in value.items()}
        elif key not in ("required", "default"):
            kept[key] = _without_defaults(value)
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
        return _inline({**plain, **_without_reference(members)}, definitions, (*seen, name))
    nullable = _nullable(members)
    if nullable is not None:
        return nullable
    return {
        key: _inline_member(key, value, definitions, seen)
        for key, value in members.items()
        if not _is_class_title(key, value)
    }


def _without_reference(members: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in members.items() if key != "$ref"}


def _nullable(members: dict[str, Any]) -> dict[str, Any] | None:
    """Rewrite `anyOf` of one plain type and null as a list of types; None if it is not that."""
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
        # A property may be named "title"; drop only the schema keyword.
        properties = cast("dict[str, Any]", value)
        return {name: _inline(entry, definitions, seen) for name, entry in properties.items()}
    if key in ("default", "enum", "const", "examples"):
        return value
    return _inline(value, definitions, seen)


def _is_class_title(key: str, value: Any) -> bool:
    return key == "title" and isinstance(value, str) and value[:1].isupper() and " " not in value

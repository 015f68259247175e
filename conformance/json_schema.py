"""A subset of JSON Schema 2020-12: checks schemas, and values against schemas."""

from __future__ import annotations

import re
from typing import Any

TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "null": type(None),
}

_OBJECTS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_SCHEMAS = (
    "additionalProperties",
    "items",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
    "unevaluatedProperties",
    "unevaluatedItems",
)
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")


def check_schema(schema: Any, path: str = "$") -> str | None:
    """The first error in a schema, or None."""
    if isinstance(schema, bool):
        return None
    if not isinstance(schema, dict):
        return f"{path} is neither an object nor a boolean"
    declared = schema.get("$schema")
    if isinstance(declared, str) and "2020-12" not in declared and "2019-09" not in declared:
        return None  # an older dialect, such as draft-07, has other rules
    kind = schema.get("type")
    if kind is not None:
        names = kind if isinstance(kind, list) else [kind]
        if not names or any(n not in (*TYPES, "integer", "number") for n in names):
            return f"{path}.type is {kind!r}"
    required = schema.get("required")
    if required is not None and (
        not isinstance(required, list)
        or not all(isinstance(name, str) for name in required)
        or len(set(required)) != len(required)
    ):
        return f"{path}.required is not a list of distinct names"
    if "enum" in schema and not isinstance(schema["enum"], list):
        return f"{path}.enum is not a list"
    for word in _NUMBERS:
        if word in schema and not _is_number(schema[word]):
            return f"{path}.{word} is not a number"
    for word in _COUNTS:
        value = schema.get(word, 0)
        if not _is(value, "integer") or value < 0:
            return f"{path}.{word} is not a count"
    if "pattern" in schema and not isinstance(schema["pattern"], str):
        return f"{path}.pattern is not a string"
    for child, where in _children(schema, path):
        found = (
            check_schema(child, where) if where[-1] != "!" else where[:-1] + " has the wrong type"
        )
        if found:
            return found
    return None


def _children(schema: dict[str, Any], path: str) -> list[tuple[Any, str]]:
    """Subschemas with their paths; a container of the wrong type has a path ending in `!`."""
    children: list[tuple[Any, str]] = []
    for word in _OBJECTS:
        value = schema.get(word)
        if isinstance(value, dict):
            children += [(child, f"{path}.{word}.{name}") for name, child in value.items()]
        elif value is not None:
            children.append((None, f"{path}.{word}!"))
    children += [(schema[word], f"{path}.{word}") for word in _SCHEMAS if word in schema]
    for word in _LISTS:
        value = schema.get(word)
        if isinstance(value, list):
            children += [(child, f"{path}.{word}[{n}]") for n, child in enumerate(value)]
        elif value is not None:
            children.append((None, f"{path}.{word}!"))
    return children


def check_value(value: Any, schema: Any, root: Any = None, path: str = "$") -> str | None:
    """The first violation of a schema, or None. Unknown keywords are ignored."""
    root = schema if root is None else root
    if isinstance(schema, bool):
        return None if schema else f"{path} is not allowed"
    if not isinstance(schema, dict):
        return None
    if isinstance(ref := schema.get("$ref"), str):
        target = _resolve(ref, root)
        found = check_value(value, target, root, path) if target is not None else None
        if found:
            return found
    kind = schema.get("type")
    if kind is not None:
        names = kind if isinstance(kind, list) else [kind]
        if not any(_is(value, name) for name in names):
            return f"{path} is not of type {'/'.join(map(str, names))}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{path} is none of the values allowed"
    if "const" in schema and value != schema["const"]:
        return f"{path} is not {schema['const']!r}"
    return (
        _bounds(value, schema, path)
        or _members(value, schema, root, path)
        or _items(value, schema, root, path)
        or _combined(value, schema, root, path)
    )


def _bounds(value: Any, schema: dict[str, Any], path: str) -> str | None:
    if _is_number(value):
        if "minimum" in schema and value < schema["minimum"]:
            return f"{path} is below {schema['minimum']}"
        if "maximum" in schema and value > schema["maximum"]:
            return f"{path} is above {schema['maximum']}"
        if "exclusiveMinimum" in schema and value <= schema["exclusiveMinimum"]:
            return f"{path} is not above {schema['exclusiveMinimum']}"
        if "exclusiveMaximum" in schema and value >= schema["exclusiveMaximum"]:
            return f"{path} is not below {schema['exclusiveMaximum']}"
    if isinstance(value, str):
        if len(value) < schema.get("minLength", 0):
            return f"{path} is too short"
        if len(value) > schema.get("maxLength", len(value)):
            return f"{path} is too long"
        pattern = schema.get("pattern")
        if isinstance(pattern, str):
            try:
                if not re.search(pattern, value):
                    return f"{path} does not match {pattern!r}"
            except re.error:
                return None  # Python cannot compile it: a pattern of another regex dialect
    return None


def _members(value: Any, schema: dict[str, Any], root: Any, path: str) -> str | None:
    if not isinstance(value, dict):
        return None
    for name in schema.get("required", []):
        if name not in value:
            return f"{path}.{name} is missing"
    properties = schema.get("properties", {})
    for name, child in value.items():
        if name in properties:
            found = check_value(child, properties[name], root, f"{path}.{name}")
        elif "additionalProperties" in schema and "patternProperties" not in schema:
            found = check_value(child, schema["additionalProperties"], root, f"{path}.{name}")
        else:
            found = None
        if found:
            return found
    return None


def _items(value: Any, schema: dict[str, Any], root: Any, path: str) -> str | None:
    if not isinstance(value, list):
        return None
    if len(value) < schema.get("minItems", 0):
        return f"{path} has too few items"
    if len(value) > schema.get("maxItems", len(value)):
        return f"{path} has too many items"
    first = len(schema.get("prefixItems", []))
    for number, child in enumerate(value):
        rule = schema["prefixItems"][number] if number < first else schema.get("items", True)
        found = check_value(child, rule, root, f"{path}[{number}]")
        if found:
            return found
    return None


def _combined(value: Any, schema: dict[str, Any], root: Any, path: str) -> str | None:
    for rule in schema.get("allOf", []):
        if found := check_value(value, rule, root, path):
            return found
    if "anyOf" in schema:
        wrong = [check_value(value, rule, root, path) for rule in schema["anyOf"]]
        if all(wrong):
            return _closest(value, schema["anyOf"], wrong, root) or f"{path} fits none of anyOf"
    if "oneOf" in schema:
        fitting = sum(check_value(value, rule, root, path) is None for rule in schema["oneOf"])
        if fitting != 1:
            return f"{path} fits {fitting} of oneOf"
    return None


def _closest(value: Any, rules: list[Any], wrong: list[str | None], root: Any) -> str | None:
    """The violation of the alternative with the same `type` or `method`, which says the most."""
    for rule, found in zip(rules, wrong, strict=True):
        target = _resolve(rule["$ref"], root) if isinstance(rule, dict) and "$ref" in rule else rule
        properties = target.get("properties", {}) if isinstance(target, dict) else {}
        for name in ("type", "method"):
            const = properties.get(name, {}).get("const") if isinstance(properties, dict) else None
            if const is not None and isinstance(value, dict) and value.get(name) == const:
                return found
    return None


def _resolve(ref: str, root: Any) -> Any:
    if not ref.startswith("#"):
        return None
    node = root
    for part in ref[1:].split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(node, dict) or name not in node:
            return None
        node = node[name]
    return node


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is(value: Any, name: Any) -> bool:
    if name == "number":
        return _is_number(value)
    if name == "integer":
        return _is_number(value) and float(value).is_integer()
    kind = TYPES.get(name)
    return kind is not None and isinstance(value, kind)

"""Input schemas that every client accepts: a lint over every tool of every dialect.

Clients forward our schemas to a model's API, which rejects the whole tool list for one bad schema.
The rules below are the documented ones of OpenAI's function calling, VS Code's validation of MCP
tools, and Gemini's subset of JSON Schema.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import pytest
from jsonschema import Draft7Validator, Draft202012Validator

from daemon.dialect_names import DIALECTS
from daemon.dialects.registry import build
from protocol.revisions import ALL
from tests.support.toolkit import any_toolkit

LATEST: Final = ALL[-1]
TOOLS: Final[list[dict[str, Any]]] = json.loads(build(DIALECTS, any_toolkit()).listing(LATEST))[
    "tools"
]
#: The longest prefix that a client we know puts before a tool's name, with our usual server name.
PREFIX: Final = "mcp__recalld__"
#: OpenAI allows no other characters in a function's name, and no more of them.
OPENAI_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
#: OpenAI rejects these at the top of a function's parameters.
OPENAI_NOT_AT_TOP: Final = {"oneOf", "anyOf", "allOf", "enum", "not", "const", "$ref"}
#: The keywords that Gemini's documentation lists for JSON Schema, and `default`, which it ignores.
GEMINI_KEYWORDS: Final = {
    "$defs", "$ref", "additionalProperties", "anyOf", "default", "description", "enum", "format",
    "items", "maxItems", "maxLength", "maximum", "minItems", "minLength", "minimum", "oneOf",
    "prefixItems", "properties", "required", "title", "type",
}  # fmt: skip
TYPES: Final = {"array", "boolean", "integer", "null", "number", "object", "string"}


def problems(schema: dict[str, Any]) -> list[str]:
    """The rules that an input schema breaks, each with the place."""
    found = []
    if schema.get("type") != "object":
        found.append("the top level must be an object")
    found += [f"the top level has {key}" for key in sorted(OPENAI_NOT_AT_TOP & schema.keys())]
    for place, node in nodes(schema):
        found += [f"{place}: {problem}" for problem in node_problems(node)]
    return found


def node_problems(node: dict[str, Any]) -> Iterator[str]:
    kinds = node.get("type")
    named = {kinds} if isinstance(kinds, str) else set(kinds or ())
    if not named and not node.keys() & {"anyOf", "oneOf", "$ref"}:
        yield "no type"
    if named - TYPES:
        yield f"unknown type {sorted(named - TYPES)}"
    if "array" in named and not isinstance(node.get("items"), dict):
        yield "an array without items"
    if "enum" in node and not all(isinstance(choice, str) for choice in node["enum"]):
        yield "an enum with other values than strings"
    if not node.keys() <= GEMINI_KEYWORDS:
        yield f"keywords that Gemini does not know: {sorted(node.keys() - GEMINI_KEYWORDS)}"
    missing = set(node.get("required", ())) - set(node.get("properties", {}))
    if missing:
        yield f"required properties that do not exist: {sorted(missing)}"


def nodes(schema: dict[str, Any], place: str = "$") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema inside a schema, with its place."""
    yield place, schema
    for name, inner in schema.get("properties", {}).items():
        yield from nodes(inner, f"{place}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from nodes(schema[key], f"{place}.{key}")
    for key in ("anyOf", "oneOf", "prefixItems"):
        for position, inner in enumerate(schema.get(key, ())):
            yield from nodes(inner, f"{place}.{key}[{position}]")


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: str(tool["name"]))
def test_every_client_accepts_the_input_schema(tool: dict[str, Any]) -> None:
    schema = tool["inputSchema"]
    assert problems(schema) == []
    Draft202012Validator.check_schema(schema)
    Draft7Validator.check_schema(schema)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: str(tool["name"]))
def test_the_name_fits_with_a_clients_prefix(tool: dict[str, Any]) -> None:
    assert OPENAI_NAME.fullmatch(PREFIX + tool["name"])
    assert tool["description"]


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"type": "string"}, "the top level must be an object"),
        ({"type": "object", "anyOf": []}, "the top level has anyOf"),
        ({"type": "object", "properties": {"a": {}}}, "$.a: no type"),
        ({"type": "object", "properties": {"a": {"type": "array"}}}, "an array without items"),
        ({"type": "object", "properties": {"a": {"type": ["array", "null"]}}}, "without items"),
        ({"type": "object", "properties": {"a": {"type": "any"}}}, "unknown type"),
        ({"type": "object", "properties": {"a": {"type": "integer", "enum": [1]}}}, "an enum"),
        ({"type": "object", "propertyNames": {}}, "keywords that Gemini does not know"),
        ({"type": "object", "required": ["a"]}, "required properties that do not exist"),
    ],
)
def test_the_lint_finds_a_bad_schema(schema: dict[str, Any], problem: str) -> None:
    assert any(problem in each for each in problems(schema)), problems(schema)

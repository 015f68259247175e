"""The OpenAPI document, as linters and generators read it; `scripts/openapi/check.py` runs them."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from scripts.openapi.document import openapi

DOCUMENT: dict[str, Any] = json.loads(openapi())
OPERATIONS: list[tuple[str, str, dict[str, Any]]] = [
    (path, verb, operation)
    for path, verbs in DOCUMENT["paths"].items()
    for verb, operation in verbs.items()
]


def walk(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for member in value.values():
            yield from walk(member)
    elif isinstance(value, list):
        for member in value:
            yield from walk(member)


def test_operation_ids_are_unique_and_every_operation_has_a_known_tag_and_a_summary() -> None:
    ids = [operation["operationId"] for _, _, operation in OPERATIONS]
    tags = {tag["name"] for tag in DOCUMENT["tags"]}

    assert len(ids) == len(set(ids))
    assert DOCUMENT["servers"]
    for _, _, operation in OPERATIONS:
        assert len(operation["tags"]) == 1
        assert operation["tags"][0] in tags
        assert operation["summary"]


def test_every_reference_leads_to_a_schema_and_every_schema_is_used() -> None:
    references = {each["$ref"] for each in walk(DOCUMENT) if "$ref" in each}
    schemas = {f"#/components/schemas/{name}" for name in DOCUMENT["components"]["schemas"]}

    assert references == schemas


@pytest.mark.parametrize(
    ("path", "verb", "operation"),
    [each for each in OPERATIONS if each[0].startswith("/api/v1") and "requestBody" in each[2]],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bodies_have_named_schemas_and_examples_that_fit(
    path: str, verb: str, operation: dict[str, Any]
) -> None:
    content = operation["requestBody"]["content"]["application/json"]
    name = content["schema"]["$ref"].removeprefix("#/components/schemas/")
    schema = DOCUMENT["components"]["schemas"][name]

    if schema["properties"]:
        assert "example" in content, f"{verb} {path}"
        assert set(schema.get("required", ())) <= set(content["example"])
        assert set(content["example"]) <= set(schema["properties"])


def test_no_schema_uses_words_that_generators_do_not_know() -> None:
    for each in walk(DOCUMENT["components"]):
        assert "prefixItems" not in each
        assert not isinstance(each.get("items"), bool)

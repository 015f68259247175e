"""JSON Schemas of Structs, without references."""

from typing import Annotated

import msgspec
import pytest
from msgspec import Meta, Struct

from protocol.schema import schema_of


class Inner(Struct):
    title: str
    size: int = 3


class Outer(Struct):
    inner: Inner
    choice: Annotated[str, Meta(description="Which One")] = "a"
    many: list[Inner] = []


class Endless(Struct):
    next: "Endless | None" = None


def test_schemas_are_inlined_and_contain_no_class_names() -> None:
    schema = schema_of(Outer)
    assert schema["type"] == "object"
    assert "$ref" not in msgspec.json.encode(schema).decode()
    assert "Outer" not in msgspec.json.encode(schema).decode()
    assert schema["properties"]["inner"]["properties"]["title"] == {"type": "string"}
    assert schema["properties"]["choice"]["default"] == "a"
    assert schema["properties"]["many"]["items"]["required"] == ["title"]


def test_a_recursive_type_cannot_be_inlined() -> None:
    with pytest.raises(ValueError, match="refers to itself"):
        schema_of(Endless)

"""Dialects as values, their schemas, and the examples of the README."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET, Struct

from daemon import dialects
from daemon.dialect_names import DIALECTS
from daemon.dialects.registry import build, load
from protocol.schema import result_schema_of, schema_of
from store.model import EngineHealth
from tests.support.toolkit import any_toolkit
from tests.support.wire import running_services


@pytest.mark.parametrize("name", DIALECTS)
def test_a_dialect_is_a_value_with_its_name_and_its_tools(name: str) -> None:
    dialect = load(name)
    assert dialect.name == name
    specs = dialect.tools(any_toolkit())
    assert specs
    assert [spec.name for spec in specs] == [
        spec.name for spec in build([name], any_toolkit()).specs()
    ]


class Inner(Struct):
    """A programmer's note."""

    required: str
    default: int | None = None


class Outer(Struct):
    inner: Inner
    several: list[Inner]


def test_schemas_omit_docstrings_and_write_null_as_a_type() -> None:
    schema = schema_of(Outer)
    inner = {
        "type": "object",
        "properties": {
            "required": {"type": "string"},
            "default": {"type": ["integer", "null"], "default": None},
        },
        "required": ["required"],
    }
    assert schema["properties"] == {"inner": inner, "several": {"type": "array", "items": inner}}


def test_result_schemas_keep_fields_named_like_schema_keywords() -> None:
    inner = result_schema_of(Outer)["properties"]["inner"]
    assert inner == {
        "type": "object",
        "properties": {
            "required": {"type": "string"},
            "default": {"type": ["integer", "null"]},
        },
    }


@pytest.mark.parametrize(
    ("engine", "status", "database", "degraded"),
    [
        (EngineHealth(is_ready=True), "healthy", "connected", UNSET),
        (
            EngineHealth(is_ready=True, degraded=("vectors-rebuilding",)),
            "degraded",
            "connected",
            ["vectors-rebuilding"],
        ),
        (EngineHealth(is_ready=False), "degraded", "error", UNSET),
    ],
)
async def test_health_lists_the_degraded_parts_of_the_engine(
    tmp_path: Path, engine: EngineHealth, status: str, database: str, degraded: Any
) -> None:
    async with running_services(tmp_path, engine=engine) as services:
        health = await services.health.report(services.surfaces())

    assert (health.status, health.database, health.degraded) == (status, database, degraded)


def test_the_examples_in_the_readme_are_json_and_name_existing_tools() -> None:
    text = (Path(dialects.__file__).parent / "README.md").read_text()
    examples = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", text, re.DOTALL)]
    names = {spec.name for spec in build(DIALECTS, any_toolkit()).specs()}

    assert len(examples) >= 9
    assert {example["name"] for example in examples if "name" in example} <= names
    for name in DIALECTS:
        assert re.search(rf"^## {name}$", text, re.MULTILINE), name

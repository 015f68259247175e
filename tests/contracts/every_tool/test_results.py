"""A valid call gives the documented result."""

import json

import jsonschema
import pytest

from tests.contracts.client import STRUCTURED, Client
from tests.contracts.tables.dialects import NAMES, TOOLS
from tests.contracts.tables.model import Dialect, Tool, check_fields


@pytest.mark.parametrize(("dialect", "tool"), TOOLS, ids=NAMES)
def test_a_result_has_the_documented_fields(client: Client, dialect: Dialect, tool: Tool) -> None:
    more = tool.prepare(client) if tool.prepare else None
    answer = client.call_with(tool.name, {**tool.arguments, **(more or {})})

    assert not answer.is_error, answer
    assert answer.result is not None
    if isinstance(tool.result, str):
        assert answer.text == tool.result
        assert "structuredContent" not in answer.result
        return
    wrong, undocumented = check_fields(answer.json, tool)
    assert not wrong
    assert not undocumented
    if client.revision in STRUCTURED:
        assert answer.result["structuredContent"] == json.loads(answer.text)
        schema = client.tools()[tool.name].get("outputSchema", {"type": "object"})
        jsonschema.validate(answer.result["structuredContent"], schema)
    else:
        assert "structuredContent" not in answer.result


@pytest.mark.parametrize(("dialect", "tool"), TOOLS, ids=NAMES)
def test_the_example_arguments_match_the_input_schema(
    client: Client, dialect: Dialect, tool: Tool
) -> None:
    more = tool.prepare(client) if tool.prepare else None
    arguments = {**tool.arguments, **(more or {})}

    jsonschema.validate(arguments, client.tools()[tool.name]["inputSchema"])


def test_an_unknown_tool_is_named_in_the_error(client: Client) -> None:
    answer = client.call("no_such_tool")

    assert answer.error is not None
    assert answer.error["code"] == (-32602 if client.revision == "2026-07-28" else -32000)
    assert "no_such_tool" in answer.error["data"]["details"]

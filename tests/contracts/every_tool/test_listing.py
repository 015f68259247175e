"""`tools/list` agrees with the documents."""

import json
import re
from typing import Any

import pytest

from tests.contracts.client import STRUCTURED, Client
from tests.contracts.tables import recall
from tests.contracts.tables.dialects import DIALECTS, NAMES, TOOLS
from tests.contracts.tables.model import NONE, Dialect, Tool

#: For the four dialects of other systems together, and for the native one.
TOKEN_BUDGETS = {"default": 4_000, "native": 600}


@pytest.mark.parametrize(("dialect", "tool"), TOOLS, ids=NAMES)
def test_a_tool_has_the_documented_parameters(client: Client, dialect: Dialect, tool: Tool) -> None:
    schema = client.tools()[tool.name]["inputSchema"]

    assert schema["type"] == "object"
    assert set(schema["properties"]) == {parameter.name for parameter in tool.parameters}
    assert set(schema.get("required", [])) == {p.name for p in tool.parameters if p.required}
    for parameter in tool.parameters:
        shown = schema["properties"][parameter.name]
        if parameter.typed:
            assert shown["type"] == parameter.type, parameter
        if parameter.default is not NONE:
            assert shown["default"] == parameter.default, parameter
        if parameter.enum:
            assert tuple(shown["enum"]) == parameter.enum, parameter


def test_exactly_the_documented_tools_are_listed(client: Client) -> None:
    assert sorted(client.tools()) == sorted(NAMES)


def test_the_order_of_tools_is_stable(client: Client) -> None:
    assert list(client.tools()) == list(client.tools())


@pytest.mark.parametrize(("dialect", "tool"), TOOLS, ids=NAMES)
def test_read_only_tools_are_annotated(client: Client, dialect: Dialect, tool: Tool) -> None:
    shown = client.tools()[tool.name]
    if client.revision == "2024-11-05":
        assert "annotations" not in shown
    else:
        assert shown["annotations"]["readOnlyHint"] is tool.read_only
    assert ("outputSchema" in shown) == (
        client.revision in STRUCTURED
        and not isinstance(tool.result, str)
        and dialect.has_output_schemas
    )


@pytest.mark.parametrize("name", recall.SCHEMAS)
def test_recall_input_schemas_equal_the_documented_schemas(client: Client, name: str) -> None:
    assert client.tools()[recall.PREFIX + name]["inputSchema"] == recall.SCHEMAS[name]


def test_the_default_list_and_the_native_list_keep_their_token_budgets(client: Client) -> None:
    listing = client.request("tools/list")["result"]["tools"]
    native = {tool.name for dialect, tool in TOOLS if dialect.name == "native"}
    costs = {
        "default": estimated_tokens([tool for tool in listing if tool["name"] not in native]),
        "native": estimated_tokens([tool for tool in listing if tool["name"] in native]),
    }
    print(costs)

    assert {name: cost for name, cost in costs.items() if cost > TOKEN_BUDGETS[name]} == {}


def test_schemas_contain_no_references_and_no_class_names(client: Client) -> None:
    text = json.dumps(client.request("tools/list")["result"])
    assert "$ref" not in text and "$defs" not in text
    assert "Struct" not in text


_PIECE = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[^\sA-Za-z0-9]+")


def estimated_tokens(listing: Any) -> int:
    """Estimate the number of model tokens in compact JSON schemas.

    A word of up to nine letters counts as one token and a longer one as two; two digits count as
    one, and so do three punctuation characters. On such JSON the estimate is 1.14 times the count
    of Claude 2's published tokenizer and 1.09 times the count of GPT-3's, so it errs upwards.
    """
    count = 0
    for piece in _PIECE.findall(json.dumps(listing, separators=(",", ":"), ensure_ascii=False)):
        if piece[0].isalpha():
            count += 1 + (len(piece) > 9)
        elif piece[0].isdigit():
            count += (len(piece) + 1) // 2
        else:
            count += (len(piece) + 2) // 3
    return count


def test_the_tables_name_every_dialect() -> None:
    from daemon.dialect_names import DIALECTS as SERVED

    assert [dialect.name for dialect in DIALECTS] == list(SERVED)

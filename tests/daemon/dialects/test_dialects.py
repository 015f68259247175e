"""The seam between dialects and the daemon: choosing them, their names, their refusals."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET, Struct

from daemon import dialects
from daemon.dialect_names import DIALECTS, chosen
from daemon.dialects.registry import build, load
from daemon.rpc.failures import FAULTS, error_for, refusal, status_of
from daemon.tools.bound_tool import BoundTool
from daemon.tools.dialect import Dialect
from daemon.tools.errors import ArgumentsRefused, ToolFailure
from daemon.tools.registry import Registry
from daemon.tools.specification import ToolSpec
from daemon.tools.toolkit import iso
from protocol.errors import Fault, ProtocolError
from protocol.mcp import error_result
from protocol.revisions import ALL, R2025_06_18, R2025_11_25
from protocol.schema import result_schema_of, schema_of
from store import errors
from store.errors import BankNotFound, InvalidInput, StorageFull, StoreError, TextTooLong
from store.model import EngineHealth
from tests.support.toolkit import any_toolkit
from tests.support.wire import running_hub


def test_no_name_chooses_all_dialects() -> None:
    assert chosen("") == list(DIALECTS) == chosen(" , ")


def test_names_choose_in_the_order_of_the_list() -> None:
    assert chosen("recall,hindsight") == ["hindsight", "recall"] == chosen(" recall , hindsight ")


def test_a_minus_leaves_one_out() -> None:
    assert "hindsight" not in chosen("-hindsight")
    assert set(chosen("-hindsight")) | {"hindsight"} == set(DIALECTS)


@pytest.mark.parametrize("names", ["telepathy", "-telepathy", "recall,telepathy", "-recall,recall"])
def test_a_choice_that_cannot_be_made_says_why(names: str) -> None:
    with pytest.raises(LookupError, match="dialects: "):
        chosen(names)


@pytest.mark.parametrize("name", DIALECTS)
def test_a_dialect_is_a_value_with_its_name_and_its_tools(name: str) -> None:
    dialect = load(name)
    assert dialect.name == name
    specs = dialect.tools(any_toolkit())
    assert specs
    assert [spec.name for spec in specs] == [
        spec.name for spec in build([name], any_toolkit()).specs()
    ]


# --- names -----------------------------------------------------------------------------------


def tool(name: str, *aliases: str, **more: Any) -> ToolSpec:
    return ToolSpec(name=name, description="", run=lambda _a, _c: name, aliases=aliases, **more)


def test_a_listed_name_wins_over_an_alias_whatever_the_order() -> None:
    for specs in ([tool("long", "short"), tool("short")], [tool("short"), tool("long", "short")]):
        found = Registry(specs).find("short")
        assert found is not None and found.spec.name == "short"


def test_an_alias_is_answered_when_nobody_lists_it() -> None:
    registry = Registry([tool("long", "short")])
    assert registry.find("short") is registry.find("long")
    assert len(registry) == 1


def test_removing_a_tool_removes_its_aliases_and_no_others() -> None:
    registry = Registry([tool("long", "short"), tool("short")])
    registry.remove("long")
    assert registry.find("long") is None
    assert registry.find("short") is not None


def test_two_tools_of_one_name_are_a_mistake() -> None:
    for specs in ([tool("a"), tool("a")], [tool("a", "x"), tool("b", "x")]):
        with pytest.raises(ValueError, match="two tools"):
            Registry(specs)


def test_what_may_be_asked_again_is_judged_by_the_tool_that_answers() -> None:
    registry = Registry([tool("long", "short", read_only=True), tool("short")])
    assert registry.retry_safe() == ["long"]


# --- saying no -------------------------------------------------------------------------------


def kinds(base: type[StoreError] = StoreError) -> Iterator[type[StoreError]]:
    for kind in base.__subclasses__():
        if kind.__module__ == errors.__name__:
            yield kind
        yield from kinds(kind)


@pytest.mark.parametrize("kind", list(kinds()), ids=lambda kind: str(kind.__name__))
def test_every_failure_of_the_store_has_its_row(kind: type[StoreError]) -> None:
    """Its own, or for kinds of wrong input the one of all wrong input."""
    rows = [row for row, _, _ in FAULTS]
    assert kind in rows or issubclass(kind, InvalidInput)
    first = next(row for row in rows if issubclass(kind, row))
    assert first is kind or issubclass(kind, InvalidInput)


def test_failures_have_the_statuses_people_expect() -> None:
    assert status_of(BankNotFound("x")) == 404
    assert status_of(TextTooLong("text", 2, 1)) == 413
    assert status_of(InvalidInput("limit", "must be positive")) == 400
    assert status_of(StorageFull("no space left")) == 507
    assert status_of(KeyError("a crash")) == 500


def test_a_database_failure_is_the_documented_code_in_the_old_revisions() -> None:
    for revision in ALL:
        error = error_for(StorageFull("no space left"), revision)
        assert error.code == (-32603 if revision.modern else -32002)
        assert isinstance(error.data, dict)
        assert error.data["details"] == "no space left"
        assert error.data["kind"] == "database_error"


REFUSING = Dialect(
    name="refusing", refuse=lambda reason: error_result(f"no: {reason}"), fields={"bank": "bank_id"}
)
TOOL = BoundTool(tool("t", fields={"text": "content"}), REFUSING)


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (ArgumentsRefused("limit: must be whole"), "limit: must be whole"),
        (InvalidInput("text", "must not be empty"), "content: must not be empty"),
        (InvalidInput("text", "is odd").within("steps[3]"), "steps[3].text: is odd"),
        (InvalidInput("metadata.a", "is odd"), "metadata.a: is odd"),
        (InvalidInput("bank", "is odd"), "bank_id: is odd"),
    ],
)
def test_wrong_arguments_are_said_in_the_callers_words(failure: Exception, told: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        refusal(TOOL, failure, R2025_06_18)
    assert (caught.value.fault, caught.value.details) == (Fault.INVALID_PARAMS, told)

    assert refusal(TOOL, failure, R2025_11_25) == error_result(f"no: {told}")


def test_what_a_dialect_has_no_words_for_is_left_to_the_protocol() -> None:
    with pytest.raises(StorageFull):
        refusal(TOOL, StorageFull("no space left"), R2025_11_25)
    failing = Dialect(name="failing", fail=lambda failure: error_result(f"alas, {failure}"))
    assert refusal(BoundTool(tool("t"), failing), StorageFull("full"), R2025_11_25) == error_result(
        "alas, full"
    )


def test_a_finished_no_is_passed_on_as_it_is() -> None:
    for revision in ALL:
        assert refusal(TOOL, ToolFailure("{}"), revision) == error_result("{}")


# --- small things ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("milliseconds", "shown"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_736_937_000_000, "2025-01-15T10:30:00.000Z"),
        (1_736_937_000_001, "2025-01-15T10:30:00.001Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
    ],
)
def test_times_are_shown_in_utc_to_the_millisecond(milliseconds: int, shown: str) -> None:
    assert iso(milliseconds) == shown


class Inner(Struct):
    """A programmer's note."""

    required: str
    default: int | None = None


class Outer(Struct):
    inner: Inner
    several: list[Inner]


def test_schemas_leave_out_docstrings_and_say_null_in_one_word() -> None:
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


def test_result_schemas_keep_fields_that_are_called_like_keywords() -> None:
    inner = result_schema_of(Outer)["properties"]["inner"]
    assert inner == {
        "type": "object",
        "properties": {
            "required": {"type": "string"},
            "default": {"type": ["integer", "null"]},
        },
    }


# --- health ----------------------------------------------------------------------------------


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
async def test_health_says_what_of_the_engine_works_less_well(
    tmp_path: Path, engine: EngineHealth, status: str, database: str, degraded: Any
) -> None:
    async with running_hub(tmp_path, engine=engine) as hub:
        health = await hub.health(hub.surface_for(""))

    assert (health.status, health.database, health.degraded) == (status, database, degraded)


# --- documents -------------------------------------------------------------------------------


def test_the_examples_in_the_readme_are_json_and_name_tools_there_are() -> None:
    text = (Path(dialects.__file__).parent / "README.md").read_text()
    examples = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", text, re.DOTALL)]
    names = {spec.name for spec in build(DIALECTS, any_toolkit()).specs()}

    assert len(examples) >= 9
    assert {example["name"] for example in examples if "name" in example} <= names
    for name in DIALECTS:
        assert re.search(rf"^## {name}$", text, re.MULTILINE), name

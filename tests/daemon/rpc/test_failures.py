"""Failures as results, errors and statuses."""

from collections.abc import Iterator

import pytest

from daemon.rpc.failures import FAULTS, error_for, refusal, status_of
from daemon.tools.bound_tool import BoundTool
from daemon.tools.dialect import Dialect
from daemon.tools.errors import ArgumentsRefused, ToolFailure
from protocol.errors import Fault, ProtocolError
from protocol.mcp import error_result
from protocol.revisions import ALL, R2025_06_18, R2025_11_25
from store import errors
from store.errors import BankNotFound, InvalidInput, StorageFull, StoreError, TextTooLong
from tests.daemon.tools.test_registry import tool


def kinds(base: type[StoreError] = StoreError) -> Iterator[type[StoreError]]:
    for kind in base.__subclasses__():
        if kind.__module__ == errors.__name__:
            yield kind
        yield from kinds(kind)


@pytest.mark.parametrize("kind", list(kinds()), ids=lambda kind: str(kind.__name__))
def test_every_store_failure_has_a_row_in_the_table(kind: type[StoreError]) -> None:
    """Its own, or for kinds of wrong input the one of all wrong input."""
    rows = [row for row, _, _ in FAULTS]
    assert kind in rows or issubclass(kind, InvalidInput)
    first = next(row for row in rows if issubclass(kind, row))
    assert first is kind or issubclass(kind, InvalidInput)


def test_failures_have_the_usual_http_statuses() -> None:
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
def test_a_refusal_names_the_argument_of_the_caller(failure: Exception, told: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        refusal(TOOL, failure, R2025_06_18)
    assert (caught.value.fault, caught.value.details) == (Fault.INVALID_PARAMS, told)

    assert refusal(TOOL, failure, R2025_11_25) == error_result(f"no: {told}")


def test_a_dialect_without_a_failure_form_leaves_failures_to_json_rpc() -> None:
    with pytest.raises(StorageFull):
        refusal(TOOL, StorageFull("no space left"), R2025_11_25)
    failing = Dialect(name="failing", fail=lambda failure: error_result(f"alas, {failure}"))
    assert refusal(BoundTool(tool("t"), failing), StorageFull("full"), R2025_11_25) == error_result(
        "alas, full"
    )


def test_the_text_of_a_tool_failure_is_not_changed() -> None:
    for revision in ALL:
        assert refusal(TOOL, ToolFailure("{}"), revision) == error_result("{}")

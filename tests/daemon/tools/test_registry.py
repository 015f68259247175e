"""Tools by name and alias."""

from typing import Any

import pytest

from daemon.tools.registry import Registry
from daemon.tools.specification import ToolSpec


def tool(name: str, *aliases: str, **more: Any) -> ToolSpec:
    return ToolSpec(name=name, description="", run=lambda _a, _c: name, aliases=aliases, **more)


def test_a_listed_name_takes_precedence_over_an_alias_in_any_order() -> None:
    for specs in ([tool("long", "short"), tool("short")], [tool("short"), tool("long", "short")]):
        found = Registry(specs).find("short")
        assert found is not None and found.spec.name == "short"


def test_an_alias_is_answered_if_no_tool_lists_it() -> None:
    registry = Registry([tool("long", "short")])
    assert registry.find("short") is registry.find("long")
    assert len(registry) == 1


def test_removing_a_tool_removes_its_aliases_and_no_others() -> None:
    registry = Registry([tool("long", "short"), tool("short")])
    registry.remove("long")
    assert registry.find("long") is None
    assert registry.find("short") is not None


def test_two_tools_with_one_name_are_refused() -> None:
    for specs in ([tool("a"), tool("a")], [tool("a", "x"), tool("b", "x")]):
        with pytest.raises(ValueError, match="two tools"):
            Registry(specs)


def test_retry_safety_is_that_of_the_tool_that_answers() -> None:
    registry = Registry([tool("long", "short", read_only=True), tool("short")])
    assert registry.retry_safe() == ["long"]

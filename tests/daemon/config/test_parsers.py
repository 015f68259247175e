"""Errors about bad setting values."""

import pytest

from daemon.config import load
from daemon.exit_codes import CONFIG, Exit


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("RECALLD_RATE_LIMIT", "many", "whole number"),
        ("RECALLD_RATE_LIMIT", "-1", "from 0"),
        ("RECALLD_RATE_LIMIT", "1.5", "whole number"),
        ("RECALLD_IDLE_SECONDS", "soon", "number"),
        ("RECALLD_IDLE_SECONDS", "nan", "number"),
        ("RECALLD_LOG_LEVEL", "loud", "debug, info"),
        ("RECALLD_FIXTURES", "maybe", "true nor false"),
        ("RECALLD_SOCKET", "a\0b", "not text"),
    ],
)
def test_the_error_for_a_bad_value_names_the_variable_and_the_rule(
    variable: str, value: str, words: str
) -> None:
    with pytest.raises(Exit) as raised:
        load({}, {variable: value})
    assert raised.value.code == CONFIG
    assert variable in raised.value.message
    assert words in raised.value.message


def test_the_error_for_an_unknown_dialect_names_its_source() -> None:
    for flags, variables, where in (
        ({"server.dialects": "recall,foo"}, {}, "--dialects"),
        ({}, {"RECALLD_DIALECTS": "recall,foo"}, "RECALLD_DIALECTS"),
    ):
        with pytest.raises(Exit, match=f"{where}: 'foo' is not one of hindsight") as raised:
            load(flags, variables)
        assert raised.value.code == CONFIG

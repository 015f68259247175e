"""The server's instructions: short, and about tools that are listed."""

import itertools
import re

import pytest

from daemon.dialect_names import DIALECTS
from daemon.dialects.registry import build, instructions
from daemon.tools.token_estimate import estimate
from tests.support.toolkit import any_toolkit

SELECTIONS = [
    list(names)
    for size in range(1, len(DIALECTS) + 1)
    for names in itertools.combinations(DIALECTS, size)
]


@pytest.mark.parametrize("names", SELECTIONS, ids=lambda names: "+".join(names))
def test_instructions_are_short_and_name_only_listed_tools(names: list[str]) -> None:
    text = instructions(names)
    listed = {spec.name for spec in build(names, any_toolkit()).specs()}
    known = {spec.name for spec in build(DIALECTS, any_toolkit()).specs()}

    assert estimate(text) < 200
    named = {word for word in re.findall(r"[a-zA-Z_-]+", text) if "_" in word and word in known}
    assert named <= listed
    assert named or names == ["harness"] or {"remember", "recall"} <= listed


def test_every_dialect_says_how_to_use_its_tools() -> None:
    for name in DIALECTS:
        assert "Search" in instructions([name])

"""requirements.toml, the checks and the defects tell one story."""

from __future__ import annotations

import re

import pytest

from conformance import revisions
from conformance.broken import defects
from conformance.broken.defects.registry import DEFECTS
from conformance.check import CASES, SCANS, group_titles, load_suites, requirements

load_suites()
defects.load()


def test_every_requirement_has_exactly_one_check_and_every_check_a_requirement() -> None:
    assert set(requirements()) == set(CASES) | set(SCANS)
    assert not set(CASES) & set(SCANS)


def test_every_case_is_proven_by_a_defect() -> None:
    proven = {case for defect in DEFECTS.values() for case in defect.cases}

    assert proven == set(requirements())


def test_there_are_more_cases_on_each_transport_than_we_promise() -> None:
    for transport, promised in (("stdio", 180), ("unix", 180), ("http", 260)):
        count = sum(transport in row.transports for row in requirements().values())
        assert count >= promised


@pytest.mark.parametrize("name", requirements())
def test_a_requirement_says_what_it_asks_where_it_is_said_and_where_it_applies(name: str) -> None:
    row = requirements()[name]

    assert re.fullmatch(r"[A-Z]\d\d[a-z]?", name)
    assert row.group in group_titles()
    assert row.text.endswith(".") and row.source
    assert row.level in ("MUST", "SHOULD", "ours")
    assert row.revisions and set(row.revisions) <= set(revisions.ALL)
    assert row.transports and set(row.transports) <= {"stdio", "unix", "http"}


def test_requirements_are_sorted_by_group_and_number() -> None:
    groups = list(group_titles())
    order = [(groups.index(name[0]), int(name[1:3]), name[3:]) for name in requirements()]

    assert order == sorted(order)

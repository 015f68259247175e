"""requirements.toml, the checks and the defects agree with each other."""

from __future__ import annotations

import re

import pytest

from conformance import revisions
from conformance.broken import defects
from conformance.broken.defects.registry import DEFECTS
from conformance.check import CASES, SCANS, load_suites
from conformance.requirements import group_titles, requirements

load_suites()
defects.load()


def test_every_requirement_has_exactly_one_check_and_every_check_a_requirement() -> None:
    assert set(requirements()) == set(CASES) | set(SCANS)
    assert not set(CASES) & set(SCANS)


def test_every_case_is_proven_by_a_defect() -> None:
    proven = {case for defect in DEFECTS.values() for case in defect.cases}

    assert proven == set(requirements())


def test_each_transport_has_at_least_the_promised_number_of_cases() -> None:
    for transport, promised in (("stdio", 180), ("unix", 180), ("http", 260)):
        count = sum(transport in row.transports for row in requirements().values())
        assert count >= promised


@pytest.mark.parametrize("name", requirements())
def test_a_requirement_has_a_text_a_source_a_level_and_a_scope(name: str) -> None:
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

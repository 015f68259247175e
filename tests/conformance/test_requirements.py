"""requirements.toml, the checks and the defects agree with each other."""

from __future__ import annotations

import re

import pytest

from conformance import revisions
from conformance.broken import defects
from conformance.broken.defects.registry import DEFECTS
from conformance.check import CASES, SCANS, load_suites
from conformance.requirements import clauses, group_titles, requirements

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


@pytest.mark.parametrize("name", requirements())
def test_a_level_of_the_specification_rests_on_a_clause_with_that_keyword(name: str) -> None:
    """Rule 1 of conformance/README.md: no keyword about the server, no MUST."""
    row = requirements()[name]
    for revision in row.revisions:
        level = row.level_in(revision)
        if level == "ours":
            continue
        quotes = row.clauses(revision)
        assert quotes, f"{name} has no clause in {revision}"
        words = " ".join(clause.quote for clause in quotes)
        binding = re.search(r"\b(MUST|REQUIRED|SHALL)\b", words) is not None
        # The schema binds without a keyword, as do the definitions of JSON-RPC and JSON.
        binding = binding or any(clause.id.startswith("s-") for clause in quotes)
        assert binding if level == "MUST" else binding or "SHOULD" in words, (name, revision)


def test_every_clause_is_short_and_has_a_link() -> None:
    for rows in clauses().values():
        for clause in rows:
            assert 5 < len(clause.quote) <= 260, clause
            assert clause.link(clause.revisions[0]).startswith("https://")


def test_every_clause_of_a_requirement_exists() -> None:
    for row in requirements().values():
        assert set(row.clause_ids) <= set(clauses()), row.id

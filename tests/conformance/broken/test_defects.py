"""Every check fails on a server with its defect and passes on the correct server."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from conformance.broken.defects.registry import NO_DEFECT
from conformance.broken.http_server import HttpReferenceServer
from conformance.broken.local import FIXTURES, MODERN_ONLY
from conformance.context import Settings
from conformance.requirements import requirements
from conformance.runner import run
from tests.conformance.reference import (
    DEFECTS,
    PATIENT,
    SocketReferenceServer,
    child,
    outcomes,
    prove,
)

Proofs = dict[str, Future[dict[str, str]]]


@pytest.fixture(scope="module")
def proofs(request: pytest.FixtureRequest) -> Iterator[Proofs]:
    """Run the selected proofs in parallel, because they mostly wait."""
    wanted = {
        str(item.callspec.params["name"])
        for item in request.session.items
        if isinstance(item, pytest.Function) and "proofs" in item.fixturenames
    }
    with tempfile.TemporaryDirectory() as root, ThreadPoolExecutor(6) as pool:
        futures: Proofs = {}
        for number, name in enumerate(sorted(wanted)):
            directory = Path(root) / str(number)  # short, because socket paths are limited
            directory.mkdir()
            futures[name] = pool.submit(prove, DEFECTS[name], directory)
        yield futures


@pytest.mark.parametrize("name", DEFECTS)
def test_a_defect_fails_its_cases(name: str, proofs: Proofs) -> None:
    outcome = proofs[name].result(timeout=120)

    assert set(outcome) == set(DEFECTS[name].cases)
    for case, result in outcome.items():
        assert " failed " in result, f"{case} misses: {DEFECTS[name].about} ({result})"


def test_the_reference_server_passes_every_case_on_a_socket(tmp_path: Path) -> None:
    report = run(
        SocketReferenceServer(tmp_path / "s"),
        list(requirements().values()),
        settings=PATIENT,
        jobs=5,
    )

    assert [t for t in outcomes(report).items() if " failed " in t[1]] == []
    for case, row in requirements().items():
        if "unix" in row.transports and case not in MODERN_ONLY:
            assert report.status(case) in ("passed", "flaky"), report.of(case)


def test_the_reference_server_passes_the_cases_of_a_child(tmp_path: Path) -> None:
    """All cases for stdio only, and group B to exercise the transport."""
    rows = [row for row in requirements().values() if row.transports == ("stdio",)]
    rows += [row for row in requirements().values() if row.group == "B"]

    report = run(child("none", tmp_path / "lock", spares=1), rows, settings=PATIENT, jobs=2)

    assert [t for t in outcomes(report).items() if " failed " in t[1]] == []
    # A case that failed under load and passed alone is flaky, which proves it as well.
    left = [row.id for row in rows if report.status(row.id) not in ("passed", "flaky")]
    assert set(left) <= MODERN_ONLY


def test_the_reference_server_passes_every_case_over_http() -> None:
    rows = [row for row in requirements().values() if "http" in row.transports]

    report = run(HttpReferenceServer(NO_DEFECT), rows, settings=PATIENT, jobs=3)

    assert [t for t in outcomes(report).items() if " failed " in t[1]] == []
    # A case that failed under load and passed alone is flaky, which proves it as well.
    left = [row.id for row in rows if report.status(row.id) not in ("passed", "flaky")]
    assert set(left) <= MODERN_ONLY


def test_the_reference_server_passes_the_cases_for_servers_of_one_era() -> None:
    rows = [requirements()[name] for name in sorted(MODERN_ONLY)]

    report = run(
        HttpReferenceServer(NO_DEFECT),
        rows,
        wanted=["2026-07-28"],
        settings=Settings(vouched=FIXTURES),
    )

    assert all(report.status(row.id) == "passed" for row in rows), outcomes(report)

"""`mcp-conform client`: the reference client passes, and each broken client fails its duty."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from conformance.__main__ import main
from conformance.broken.client import DEFECTS, HttpClient, SessionLost
from conformance.clients.command import judge, status_of
from conformance.clients.script import SCRIPTS, Script
from conformance.clients.servers import ScriptedHttpServer
from conformance.clients.verdicts import VERDICTS
from conformance.requirements import client_requirements

CLIENT = [sys.executable, "-m", "conformance.broken.client"]
#: A broken client may fail these duties too, because one message breaks several rules.
ALSO: dict[str, set[str]] = {
    "one-id": {"Y45"},
    "same-id": {"Y03"},
    "posts-responses": {"Y41"},
    "no-envelope": {"Y41"},
}


def failures(defect: str) -> set[str]:
    """The duties that a client with this defect fails, over HTTP in this process."""
    results = []
    for name in SCRIPTS:
        server = ScriptedHttpServer(Script(name, "http"))
        try:
            HttpClient(server.url, defect, modern=name == "modern").run()
        except (KeyError, ValueError, OSError, SessionLost):
            pass  # the server refused the broken client
        finally:
            transcript = server.stop()
        results += judge(transcript)
    return {id for id in client_requirements() if status_of(results, id) == "failed"}


def test_every_requirement_on_clients_has_a_verdict_and_a_defect() -> None:
    assert set(VERDICTS) == set(client_requirements()) == set(DEFECTS.values())


def test_a_must_quotes_a_clause_with_must_in_every_revision() -> None:
    for row in client_requirements().values():
        for revision in row.revisions:
            quotes = [clause.quote for clause in row.clauses(revision)]
            assert any(row.level in quote for quote in quotes), (row.id, revision)


def test_the_reference_client_fails_no_duty() -> None:
    assert failures("none") == set()


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_broken_client_fails_its_duty_and_no_other(defect: str) -> None:
    failed = failures(defect)

    assert DEFECTS[defect] in failed
    assert failed - {DEFECTS[defect]} <= ALSO.get(defect, set())


def test_a_client_over_stdio_is_tested(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    words = ["client", "--json", str(report), "--script", "legacy,modern", "--"]

    assert main([*words, *CLIENT, "--server", "{server}"]) == 0
    cases = {row["id"]: row for row in json.loads(report.read_text())["cases"]}
    assert cases["Y20"]["status"] == cases["Y42"]["status"] == "passed"
    assert cases["Y30"]["status"] == "not applicable"

    assert main(["client", "--script", "legacy", "--", *CLIENT, "--defect", "no-pong"]) == 1
    told = capsys.readouterr().out
    assert "Y20" in told
    assert "respond promptly" in told


def test_a_client_that_does_not_start_or_connect_is_no_failure(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["client", "--", "/no/such/client"]) == 2
    assert "cannot start" in capsys.readouterr().err
    assert main(["client", "--script", "legacy", "--", "sh", "-c", "echo lost >&2"]) == 2
    assert "lost" in capsys.readouterr().err
    assert main(["client", "--script", "nothing", "--", "true"]) == 2
    assert main(["client"]) == 2

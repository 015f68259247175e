"""Servers that are not like recalld: locks, slow starts, rate limits, banners, dangerous tools.

`independent` is a correct server that shares no code with the suite. No habit of a real server
may turn its correct answers into failures.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from conformance.__main__ import main
from conformance.client.stdio import descendants

ROOT = Path(__file__).parent.parent.parent
#: The suite may start it in another directory, so it gets the path of this checkout.
RUN = f"""
import runpy, sys
sys.path.insert(0, {str(ROOT)!r})
runpy.run_module("tests.conformance.independent", run_name="__main__")
"""
SERVER = [sys.executable, "-c", RUN]
ROUND = "J02,J03,J18,J21,J22,L01,L02,T08,T10,R03,P01,B01,B02,Q02"
SOME = ("--revision", "2025-03-26,2025-11-25,2026-07-28", "--timeout", "3")


def conform(tmp_path: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    """Run the suite and return its exit status and its JSON report."""
    path = tmp_path / "report.json"
    status = main(["--json", str(path), *arguments])
    return status, json.loads(path.read_text())


@contextmanager
def over_http(*options: str) -> Iterator[str]:
    command = [*SERVER, "--http", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        try:
            assert server.stdout is not None
            yield server.stdout.readline().decode().strip()
        finally:
            server.terminate()


def summary(report: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = report["summary"]
    return found


def assert_no_fault(report: dict[str, Any]) -> None:
    assert summary(report)["failedMust"] == []
    assert summary(report)["failedShould"] == []
    assert summary(report)["errors"] == 0


def test_a_correct_independent_server_has_no_failures_over_stdio(tmp_path: Path) -> None:
    status, report = conform(tmp_path, "--level", "MUST,SHOULD", "--stdio", "--", *SERVER)

    assert_no_fault(report)
    assert status == 0
    assert summary(report)["passed"] > 140


@pytest.mark.parametrize("options", [(), ("--stateless",)], ids=["sessions", "stateless"])
def test_a_correct_independent_server_has_no_failures_over_http(
    options: tuple[str, ...], tmp_path: Path
) -> None:
    with over_http(*options) as url:
        status, report = conform(tmp_path, "--level", "MUST,SHOULD", "--http", url)

    assert_no_fault(report)
    assert status == 0
    assert summary(report)["passed"] > 140


def test_a_server_that_locks_its_data_is_tested_one_instance_at_a_time(tmp_path: Path) -> None:
    lock = str(tmp_path / "lock")
    options = (*SOME, "--only", ROUND)
    status, report = conform(tmp_path, *options, "--stdio", "--", *SERVER, "--lock", lock)

    assert status == 0
    assert_no_fault(report)
    assert any("one instance at a time" in note for note in report["notes"])


def test_one_job_means_one_process(tmp_path: Path) -> None:
    lock = str(tmp_path / "lock")
    options = ("--jobs", "1", "--only", "J02,L01,T08")
    status, report = conform(tmp_path, *options, "--stdio", "--", *SERVER, "--lock", lock)

    assert status == 0
    assert_no_fault(report)
    assert report["notes"] == []


def test_a_placeholder_in_the_command_gives_each_child_its_own_directory(tmp_path: Path) -> None:
    server = (*SERVER, "--lock", "{tmpdir}/lock")
    status, report = conform(tmp_path, "--only", "J02,L", "--stdio", "--", *server)

    assert status == 0
    assert report["notes"] == []


def test_a_slow_start_is_awaited_and_no_revision_is_dropped(tmp_path: Path) -> None:
    server = (*SERVER, "--start-seconds", "5.5")
    options = ("--timeout", "1", "--revision", "2025-11-25,2026-07-28", "--only", "L01a,V01a")
    status, report = conform(tmp_path, *options, "--stdio", "--", *server)

    assert status == 0
    assert all(found["spoken"] for found in report["revisions"].values())
    assert summary(report)["passed"] == 2
    assert any("to start" in note for note in report["notes"])


@pytest.mark.slow
def test_a_start_of_twenty_seconds_is_awaited(tmp_path: Path) -> None:
    server = (*SERVER, "--start-seconds", "20")
    status, report = conform(tmp_path, "--only", "J02a,L01a", "--stdio", "--", *server)

    assert status == 0
    assert all(found["spoken"] for found in report["revisions"].values())


def test_a_server_that_never_starts_is_an_error_with_its_stderr(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = [sys.executable, "-c", "import sys; sys.exit('no database here')"]

    assert main(["--stdio", "--", *broken]) == 2

    assert "no database here" in capsys.readouterr().err


def test_a_rate_limit_slows_the_run_down_and_fails_nothing(tmp_path: Path) -> None:
    with over_http("--rate", "30") as url:
        options = ("--revision", "2025-11-25", "--only", "J02,J18,T08,R03,L01")
        status, report = conform(tmp_path, *options, "--http", url)

    assert status == 0
    assert_no_fault(report)
    assert summary(report)["passed"] > 12


def test_a_banner_fails_the_case_about_stdout_and_no_other(tmp_path: Path) -> None:
    options = (*SOME, "--only", f"F03a,{ROUND}")
    _, report = conform(tmp_path, *options, "--stdio", "--", *SERVER, "--banner")

    assert summary(report)["failedMust"] == ["F03a"]
    assert summary(report)["failedShould"] == []


def test_no_tool_is_called_that_nobody_vouched_for(tmp_path: Path) -> None:
    record = tmp_path / "calls"
    quick = ("--timeout", "1", "--no-repeat", "--revision", "2025-11-25")
    options = (*quick, "--only", "T,P,X,N,G,O,I,Z10,Z11,F21,F28")
    conform(tmp_path, *options, "--stdio", "--", *SERVER, "--dangerous", str(record))

    assert not record.exists()


def test_a_tool_named_on_the_command_line_is_called(tmp_path: Path) -> None:
    record = tmp_path / "calls"
    options = ("--only", "T16,Z10c", "--revision", "2025-11-25", "--tool", "tally={}")
    conform(tmp_path, *options, "--stdio", "--", *SERVER, "--dangerous", str(record))

    assert set(record.read_text().split()) == {"tally"}


def test_list_calls_prints_the_tools_that_would_be_called(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--list-calls", "--stdio", "--", *SERVER]) == 0

    told = capsys.readouterr().out
    assert "echo: may be called (read-only); roles: echo" in told
    assert "count: may be called (read-only)" in told


def test_helpers_in_their_own_session_are_ended_with_the_run(tmp_path: Path) -> None:
    conform(tmp_path, "--only", "L01a", "--stdio", "--", *SERVER, "--daemon")

    until = time.monotonic() + 5
    while descendants() and time.monotonic() < until:
        time.sleep(0.05)
    assert descendants() == []


def test_a_failure_that_passes_when_repeated_is_flaky(tmp_path: Path) -> None:
    text = (
        "import json, os, sys\n"
        "for line in sys.stdin:\n"
        "    message = json.loads(line)\n"
        "    if 'id' not in message: continue\n"
        "    result = {}\n"
        "    if message['method'] == 'initialize':\n"
        "        result = {'protocolVersion': message['params']['protocolVersion'],\n"
        "                  'capabilities': {}, 'serverInfo': {'name': 'x', 'version': '1'}}\n"
        f"    mark = {str(tmp_path / 'mark')!r}\n"
        "    if message['id'] == 0 and not os.path.exists(mark):\n"
        "        open(mark, 'w').close()\n"
        "        continue\n"
        "    answer = {'jsonrpc': '2.0', 'id': message['id'], 'result': result}\n"
        "    print(json.dumps(answer), flush=True)\n"
    )
    server = tmp_path / "server.py"
    server.write_text(text)
    options = ("--timeout", "0.5", "--revision", "2025-11-25", "--only", "J02a")
    status, report = conform(tmp_path, *options, "--stdio", "--", sys.executable, str(server))

    assert status == 0
    assert report["cases"][0]["status"] == "flaky"


def test_an_interrupted_run_writes_its_reports(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    command = [sys.executable, "-m", "conformance", "--verbose", "--json", str(path)]
    with subprocess.Popen(
        [*command, "--stdio", "--", *SERVER], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as run:
        assert run.stdout is not None
        run.stdout.readline()
        os.kill(run.pid, 15)
        run.communicate(timeout=30)

    assert run.returncode == 2
    report = json.loads(path.read_text())
    assert report["interrupted"] is True
    assert report["cases"]

"""recalld passes mcp-conform; `scripts/conform` also runs it with --embedded."""

import subprocess
import sys
from pathlib import Path

import pytest

from scripts.kit.recalld import fresh_home
from tests.support.processes import RECALLD, daemon, environment, spawned_daemon

# A run of the suite loads the whole machine, and its cases have timeouts.
pytestmark = pytest.mark.serial

ROOT = Path(__file__).parent.parent.parent
SUITE = [
    sys.executable,
    "-m",
    "conformance",
    "--strict",
    "--fixtures",
    "--known-failures",
    "conformance/known_failures.toml",
]


@pytest.fixture(autouse=True)
def _no_refusals_for_overload(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cases call slow tools many times at once; a refusal would slow the whole run down."""
    monkeypatch.setenv("RECALLD_WAIT_SECONDS", "3600")


def conform(home: Path, *target: str) -> str:
    ended = subprocess.run(
        [*SUITE, *target],
        cwd=ROOT,
        env=environment(home),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout[-6000:] + ended.stderr[-2000:]
    return ended.stdout


def test_recalld_passes_over_the_unix_socket(tmp_path: Path) -> None:
    with daemon(tmp_path):
        report = conform(tmp_path, "--unix", str(tmp_path / "run/recalld.sock"))
    assert " cases, " in report.splitlines()[-1]


def test_recalld_passes_over_the_stdio_bridge(tmp_path: Path) -> None:
    with spawned_daemon(tmp_path):
        conform(tmp_path, "--stdio", "--", *RECALLD, "stdio", "--fixtures")


def test_recalld_passes_over_http(tmp_path: Path) -> None:
    with fresh_home() as home:
        conform(tmp_path, "--http", f"{home.serve(bind='127.0.0.1:0')['http']}/mcp")


def test_an_idle_http_session_expires_after_the_configured_time(tmp_path: Path) -> None:
    with fresh_home() as home:
        home.env["RECALLD_SESSION_IDLE_DAYS"] = str(2 / 86_400)
        url = f"{home.serve(bind='127.0.0.1:0')['http']}/mcp"
        report = conform(tmp_path, "--http", url, "--only", "S05", "--idle-seconds", "2")
    assert "1 passed" in report, report

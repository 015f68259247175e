"""An error of our own: one line, exit code 70, and a place to look that quotes nothing."""

import json
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from daemon import exit_codes
from daemon.exit_codes import Exit
from daemon.operations import crash_report
from tests.support.processes import environment

SECRET = "what somebody stored"


def run(home: Path, broken: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """`recalld`, with one of its functions replaced by `broken`."""
    code = f"{broken}\nfrom daemon.__main__ import main\nmain()"
    return subprocess.run(
        [sys.executable, "-P", "-c", code, *arguments],
        env=environment(home),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        stdin=subprocess.DEVNULL,
    )


RAISING = f"def broken(*_, **__): raise KeyError({SECRET!r})"


@pytest.mark.parametrize(
    ("broken", "arguments"),
    [
        ("import daemon.commands.probe as p; p.health = broken", ("health",)),
        ("import daemon.bridge.process as b; b.Bridge.run = broken", ("stdio",)),
        ("import daemon.app as a; a._make_hub = broken", ("serve", "--no-http")),
    ],
)
def test_a_crash_is_one_line_and_exit_code_70(
    tmp_path: Path, broken: str, arguments: tuple[str, ...]
) -> None:
    done = run(tmp_path, f"{RAISING}\n{broken}", *arguments)
    assert done.returncode == exit_codes.INTERNAL == 70
    said = [line for line in done.stderr.splitlines() if line.startswith("recalld: ")]
    assert len(said) == 1, done.stderr
    log = tmp_path / "state" / "crash.log"
    assert "internal error: KeyError at " in said[0]
    assert str(log) in said[0]
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    entry = json.loads(log.read_text())
    assert entry["command"] == arguments[0]
    assert entry["errors"][0]["frames"][-1].endswith(" broken")
    assert SECRET not in done.stderr + done.stdout + log.read_text()
    assert "Traceback" not in done.stderr


def test_a_refusal_inside_a_task_group_keeps_its_own_code(tmp_path: Path) -> None:
    broken = (
        "from daemon.exit_codes import Exit\nimport daemon.app as a\n"
        "def broken(*_): raise Exit(73, 'no room')\na._make_hub = broken"
    )
    done = run(tmp_path, broken, "serve", "--no-http")
    assert (done.returncode, "recalld: no room\n" in done.stderr) == (73, True)
    assert not (tmp_path / "state" / "crash.log").exists()


def test_a_crash_that_cannot_be_written_down_is_still_said(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("in the way")
    said = crash_report.write(KeyError(SECRET), "health", {"RECALLD_HOME": str(tmp_path)})
    assert said.startswith("internal error: KeyError (and ")


def test_the_file_does_not_grow_for_ever(tmp_path: Path) -> None:
    home = {"RECALLD_HOME": str(tmp_path)}
    group = ExceptionGroup("tasks", [ValueError("one"), ExceptionGroup("more", [Exit(1, "two")])])
    crash_report.write(group, "serve", home)
    log = tmp_path / "state" / "crash.log"
    assert [e["error"] for e in json.loads(log.read_text())["errors"]] == ["ValueError", "Exit"]
    log.write_bytes(b"x" * (crash_report.MAX_FILE_BYTES + 1))
    crash_report.write(group, "serve", home)
    assert log.stat().st_size < 1000

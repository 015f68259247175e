"""First use of a checkout: `scripts/recalld` creates its environment, or says why it cannot.

Python and pip are replaced by a shell script, so that the tests need no network.
"""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SECONDS = 30.0

FAKE_PYTHON = """#!/bin/bash
case "$1 $2" in
"-c "*version_info*) exit 0 ;;
"-c "*ensurepip*) exit "${VENV_MISSING:-0}" ;;
"-m venv")
    mkdir -p "$3/bin" && cp "$0" "$3/bin/python" && cp "$0" "$3/bin/pip" ;;
"-m pip")
    case "$*" in *--require-hashes*) echo run >> "$LOG" ;; esac
    if [ -n "${PIP_FAILS:-}" ]; then echo "no route to host"; echo "a second line" >&2; exit 1; fi
    if [ -n "${PIP_HANGS:-}" ]; then touch "$(dirname "$0")/half"; exec sleep 60; fi
    sleep "${PIP_SECONDS:-0}"
    printf '#!/bin/sh\\necho started "$@"\\n' > "$(dirname "$0")/recalld"
    chmod +x "$(dirname "$0")/recalld" ;;
esac
"""


class Checkout:
    """A copy of the start script with a fake Python."""

    def __init__(self, root: Path) -> None:
        self.path = root / "checkout"
        (self.path / "scripts").mkdir(parents=True)
        for name in ("recalld", "environment"):
            shutil.copy(ROOT / "scripts" / name, self.path / "scripts" / name)
        (self.path / "pyproject.toml").write_text("[project]\n")
        (self.path / "scripts" / "requirements").mkdir()
        (self.path / "scripts" / "requirements" / "recalld.txt").write_text("anyio==4.0.0\n")
        self.log = root / "log"
        self.tools = root / "tools"
        self.tools.mkdir()
        self.write_tool("python", FAKE_PYTHON)
        self.write_tool("apt-get", "#!/bin/sh\necho apt-get >> $LOG; exit 100\n")
        self.environment = self.path / ".venv-run"

    def write_tool(self, name: str, text: str) -> None:
        (self.tools / name).write_text(text)
        (self.tools / name).chmod(0o755)

    def variables(self, **more: str) -> dict[str, str]:
        return {
            "PATH": f"{self.tools}:{os.environ['PATH']}",
            "PYTHON": str(self.tools / "python"),
            "LOG": str(self.log),
            **more,
        }

    def start(self, **more: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [str(self.path / "scripts" / "recalld"), "health"],
            env=self.variables(**more),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, **more: str) -> tuple[int, str, list[str]]:
        """The exit code, stdout and the lines on stderr."""
        process = self.start(**more)
        out, errors = process.communicate(timeout=SECONDS)
        return process.returncode, out, errors.splitlines()

    def runs(self) -> int:
        return self.log.read_text().count("run\n") if self.log.exists() else 0


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_the_first_use_installs_and_later_ones_do_not(checkout: Checkout) -> None:
    code, out, errors = checkout.run()
    assert (code, out) == (0, "started health\n")
    assert errors[-1] == "recalld: ready"
    assert checkout.run() == (0, "started health\n", [])
    assert checkout.runs() == 1


def test_an_interrupted_installation_is_redone_from_the_start(checkout: Checkout) -> None:
    first = checkout.start(PIP_HANGS="1")
    half = checkout.environment / "bin" / "half"
    deadline = time.monotonic() + SECONDS
    while not half.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate(timeout=SECONDS)
    code, out, _ = checkout.run()
    assert (code, out) == (0, "started health\n")
    assert not half.exists()


def test_clients_that_start_at_once_install_once(checkout: Checkout) -> None:
    started = [checkout.start(PIP_SECONDS="1") for _ in range(3)]
    outputs = [process.communicate(timeout=SECONDS)[0] for process in started]
    assert outputs == ["started health\n"] * 3
    assert checkout.runs() == 1


def test_without_a_network_the_error_is_one_line_and_exit_code_69(checkout: Checkout) -> None:
    code, out, (_note, error) = checkout.run(PIP_FAILS="1")
    assert (code, out) == (69, "")
    assert "packages cannot be installed; check the network connection" in error
    assert "no route to host" in (checkout.environment / "install.log").read_text()
    assert checkout.run()[0] == 0


def test_a_missing_venv_module_is_one_line_and_exit_code_69(checkout: Checkout) -> None:
    code, out, errors = checkout.run(VENV_MISSING="1")
    assert (code, out) == (69, "")
    assert errors[-1].endswith("venv module of Python is missing; install the package python3-venv")
    is_root = os.geteuid() == 0
    assert (checkout.log.exists() and "apt-get" in checkout.log.read_text()) == is_root


def test_an_old_python_is_one_line_and_exit_code_69(checkout: Checkout) -> None:
    checkout.write_tool("python", "#!/bin/sh\nexit 1\n")
    code, out, errors = checkout.run()
    assert (code, out) == (69, "")
    assert "Python 3.11 or newer is needed" in errors[-1]


def test_a_read_only_checkout_is_one_line_and_exit_code_73(checkout: Checkout) -> None:
    path = checkout.path
    script = (
        f"mount --bind {path} {path} && mount -o remount,ro,bind {path} &&"
        f" exec {path}/scripts/recalld health"
    )
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script],
        env=checkout.variables(),
        capture_output=True,
        text=True,
        check=False,
    )
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert (done.returncode, done.stdout) == (73, "")
    assert done.stderr.count("\n") == 1
    assert f"{path}: cannot be written" in done.stderr

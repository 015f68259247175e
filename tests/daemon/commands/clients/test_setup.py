"""`recalld setup` as a person or a script runs it, in a home directory of its own."""

import json
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import PATIENCE, RECALLD, recalld, spawned_daemon

COMMAND = str(Path(sys.executable).parent / "recalld")


class Machine:
    """A home directory, a project and the command line."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.project = root / "project"
        self.data = root / "data"
        for folder in (self.home, self.project):
            folder.mkdir()

    @property
    def variables(self) -> dict[str, str]:
        return {
            "HOME": str(self.home),
            "PATH": "/usr/bin:/bin",
            "RECALLD_HOME": str(self.data),
            "RECALLD_RATE_LIMIT": "0",
            "RECALLD_BIND": "127.0.0.1:9",  # the discard port: no HTTP server
        }

    def setup(self, *arguments: str, command: str = "setup") -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*RECALLD, command, *arguments],
            env=self.variables,
            cwd=self.project,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE * 3,
            check=False,
        )

    def on_a_terminal(self, *arguments: str, answer: str) -> tuple[int, str]:
        """Run setup on a terminal and answer its question; the exit code and the output."""
        main, terminal = pty.openpty()
        process = subprocess.Popen(
            [*RECALLD, "setup", *arguments],
            env=self.variables,
            cwd=self.project,
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            start_new_session=True,
        )
        os.close(terminal)
        output, has_answered = "", False
        deadline = time.monotonic() + PATIENCE * 3
        try:
            while time.monotonic() < deadline:
                if not select.select([main], [], [], 0.2)[0]:
                    continue
                try:
                    output += os.read(main, 65_536).decode()
                except OSError:
                    break
                if "[y/N]" in output and not has_answered:
                    os.write(main, answer.encode() + b"\n")
                    has_answered = True
            return process.wait(PATIENCE), output
        finally:
            os.close(main)
            if process.poll() is None:
                process.kill()
                process.wait()

    def results(self, *arguments: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.setup(*arguments, "--json").stdout)["results"]
        return found

    def files(self) -> dict[str, bytes]:
        return {
            str(path.relative_to(self.home)): path.read_bytes()
            for path in sorted(self.home.rglob("*"))
            if path.is_file()
        }


@pytest.fixture
def machine(tmp_path: Path) -> Any:
    made = Machine(tmp_path)
    with spawned_daemon(made.data):
        yield made


def test_setup_writes_an_entry_that_answers_and_remove_takes_it_back(machine: Machine) -> None:
    done = machine.setup("cursor", "--user")
    assert (done.returncode, done.stderr) == (0, "")
    assert "added; answers in" in done.stdout
    assert "tools" in done.stdout
    written = json.loads((machine.home / ".cursor" / "mcp.json").read_text())
    [(name, entry)] = written["mcpServers"].items()
    assert (name, entry["command"]) == ("recalld", COMMAND)
    assert entry["env"] == {"RECALLD_HOME": str(machine.data)}

    again = machine.results("cursor")
    assert [(each["status"], each["works"]) for each in again] == [("current", True)]
    assert again[0]["tools"] > 0

    assert "removed" in machine.setup("cursor", "--remove").stdout
    assert machine.files() == {}


def test_a_removal_without_names_reaches_every_project(machine: Machine) -> None:
    theirs = machine.project / ".mcp.json"
    theirs.write_text('{"mcpServers": {}}\n')
    done = machine.setup("claude-code", "--project", "--rules", "--hooks")
    assert done.returncode == 0, done.stdout
    assert "recalld" in theirs.read_text()
    elsewhere = machine.project.parent / "elsewhere"
    elsewhere.mkdir()
    written, machine.project = machine.project, elsewhere

    shown = machine.setup("--remove")
    assert ".mcp.json" in shown.stdout
    assert "Nothing was changed" in shown.stdout
    assert "recalld" in theirs.read_text()

    assert machine.setup("--remove", "--force").returncode == 0
    left = {path.name: path.read_text() for path in written.rglob("*") if path.is_file()}
    assert left.pop(".mcp.json") == '{"mcpServers": {}}\n'
    assert all(".bak" in name for name in left)
    assert machine.setup("--remove", "--force").returncode == 1  # nothing is left to remove


def test_check_starts_the_present_entries_and_reports_broken_ones(machine: Machine) -> None:
    folder = machine.home / ".cursor"
    folder.mkdir()
    entry = {"command": "/nowhere/recalld", "args": ["stdio"]}
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"recalld": entry}}))
    done = machine.setup("cursor", "--check")
    assert done.returncode == 1
    assert "does not work: /nowhere/recalld cannot be started" in done.stdout


def test_the_bank_and_the_dialects_reach_the_entry(machine: Machine) -> None:
    machine.setup("codex", "--bank", "work", "--dialects", "recall")
    text = (machine.home / ".codex" / "config.toml").read_text()
    assert 'args = ["stdio", "--bank", "work", "--dialects", "recall"]' in text


def test_a_user_of_a_seed_system_keeps_its_tools(machine: Machine) -> None:
    other = {"command": "npx", "args": ["claude-recall", "mcp", "start"]}
    path = machine.home / ".claude.json"
    path.write_text(json.dumps({"mcpServers": {"claude-recall": other}}))
    machine.setup("claude-code")
    args = json.loads(path.read_text())["mcpServers"]["recalld"]["args"]
    assert args == ["stdio", "--dialects", "recall"]


def test_the_clients_of_a_project_share_its_bank(machine: Machine) -> None:
    assert machine.setup("claude-code", "vscode", "--project").returncode == 0
    claude = json.loads((machine.project / ".mcp.json").read_text())["mcpServers"]["recalld"]
    code = json.loads((machine.project / ".vscode/mcp.json").read_text())["servers"]["recalld"]
    assert claude["args"][:2] == ["stdio", "--bank"]
    assert claude["args"][2].startswith("project@")
    assert code["args"] == claude["args"]
    assert machine.files() == {}


def test_dry_run_writes_nothing(machine: Machine) -> None:
    done = machine.setup("claude-code", "codex", "--dry-run")
    assert done.returncode == 0
    assert done.stdout.count("would add") == 2
    assert machine.files() == {}


def test_a_broken_file_is_named_with_line_and_column_and_the_others_are_set_up(
    machine: Machine,
) -> None:
    path = machine.home / ".claude.json"
    path.write_text('{\n  "a": 1\n  "b": 2\n}')
    done = machine.setup("claude-code", "gemini-cli")
    assert done.returncode == 1
    assert "refused: line 3, column 3: expected ',' or '}'" in done.stdout
    assert "gemini-cli" in done.stdout
    assert path.read_text() == '{\n  "a": 1\n  "b": 2\n}'
    assert (machine.home / ".gemini" / "settings.json").exists()


def test_without_a_terminal_and_without_names_the_changes_are_only_shown(
    machine: Machine,
) -> None:
    (machine.home / ".cursor").mkdir()
    done = machine.setup()
    assert done.returncode == 0
    assert "would add" in done.stdout
    assert "Nothing was changed" in done.stdout
    assert machine.files() == {}


def test_on_a_terminal_it_asks_once(machine: Machine) -> None:
    (machine.home / ".cursor").mkdir()
    code, shown = machine.on_a_terminal(answer="n")
    assert (code, shown.count("[y/N]")) == (0, 1)
    assert machine.files() == {}
    code, shown = machine.on_a_terminal(answer="y")
    assert (code, shown.count("[y/N]")) == (0, 1)
    assert "added; answers in" in shown
    assert list(machine.files()) == [".cursor/mcp.json"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["claude-cod"], "claude-cod: is not a client that setup knows; did you mean claude-code?"),
        (["goose", "--project"], "goose: has no file in a project; use --user"),
        (["zed", "--dialects", "x"], "--dialects: 'x' is not one of"),
        (["zed", "--project", "--user"], "not allowed with argument"),
    ],
)
def test_wrong_arguments_are_one_line_and_exit_code_64(
    machine: Machine, arguments: list[str], message: str
) -> None:
    done = machine.setup(*arguments)
    assert done.returncode == 64
    assert len(done.stderr.splitlines()) == 1
    assert message in done.stderr
    assert machine.files() == {}


def test_no_client_at_all_is_exit_code_1(machine: Machine) -> None:
    done = machine.setup()
    assert done.returncode == 1
    assert done.stderr == "recalld: no client was found; name one: recalld setup CLIENT\n"


def test_http_entries_are_tested_over_http(machine: Machine) -> None:
    done = machine.setup("cursor", "--http")
    assert done.returncode == 1
    assert "start `recalld serve`" in done.stdout
    entry = json.loads((machine.home / ".cursor/mcp.json").read_text())["mcpServers"]["recalld"]
    assert entry == {"url": "http://127.0.0.1:9/mcp"}
    assert recalld(machine.data, "health").returncode == 2


def test_rules_are_written_with_the_entry_and_removed_with_it(machine: Machine) -> None:
    path = machine.home / ".claude" / "CLAUDE.md"
    path.parent.mkdir()
    path.write_text("# Mine\n")
    done = machine.results("claude-code", "--rules")
    assert [(each["part"], each["status"]) for each in done] == [
        ("entry", "add"),
        ("rules", "add"),
    ]
    text = path.read_text()
    assert text.startswith("# Mine\n\n<!-- RECALLD_RULES_START -->\n# Memory\n")
    assert "recall" in text
    assert [each["status"] for each in machine.results("claude-code", "--rules")] == [
        "current",
        "current",
    ]
    machine.setup("claude-code", "--remove")
    assert path.read_text() == "# Mine\n"


def test_the_native_tools_are_the_default(machine: Machine) -> None:
    [result] = machine.results("kiro")
    assert result["tools"] == 5
    entry = json.loads((machine.home / ".kiro/settings/mcp.json").read_text())
    assert entry["mcpServers"]["recalld"]["args"] == ["stdio", "--dialects", "native"]


def test_cursor_rules_exist_in_a_project_only(machine: Machine) -> None:
    assert machine.results("cursor", "--rules")[1]["status"] == "unsupported"
    machine.setup("cursor", "--rules", "--project")
    path = machine.project / ".cursor" / "rules" / "recalld.mdc"
    assert path.read_text().startswith("---\ndescription:")
    machine.setup("cursor", "--remove", "--project")
    assert not path.exists()

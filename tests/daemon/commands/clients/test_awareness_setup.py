"""`recalld awareness-setup` behaves as the setup command of the Awareness document."""

import io
import json
import os
from contextlib import chdir, redirect_stdout
from pathlib import Path

import pytest

from daemon.commandline.parser import parse
from daemon.commands.clients import awareness_setup
from daemon.config import load
from daemon.dialects.awareness import rules
from daemon.exit_codes import Exit
from tests.support.processes import recalld


class Project:
    def __init__(self, root: Path) -> None:
        self.path = root / "project"
        self.path.mkdir()
        self._data = root / "data"

    def run(self, *arguments: str, **variables: str) -> tuple[int, str]:
        """The exit code and the output; in this process, because there are many cases."""
        variables |= {"HOME": str(self.path.parent), "RECALLD_HOME": str(self._data)}
        before = dict(os.environ)
        shown = io.StringIO()
        os.environ.clear()
        os.environ.update(variables)
        try:
            with chdir(self.path), redirect_stdout(shown):
                options = parse(["awareness-setup", *arguments])
                code = awareness_setup.run(options, load({}, os.environ))
        except Exit as exit:
            return exit.code, f"{shown.getvalue()}recalld: {exit.message}\n"
        finally:
            os.environ.clear()
            os.environ.update(before)
        return code, shown.getvalue()

    def files(self) -> dict[str, bytes]:
        return {
            str(path.relative_to(self.path)): path.read_bytes()
            for path in sorted(self.path.rglob("*"))
            if path.is_file() and not path.name.endswith(".bak")
        }


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.mark.parametrize("ide", rules.IDES, ids=lambda ide: ide.name)
def test_each_ide_gets_the_text_of_the_setup_hints(ide: rules.Ide, project: Project) -> None:
    hints = rules.hints_for(ide.name)
    assert hints is not None
    assert project.run("--ide", ide.name) == (0, f"Created {ide.rules_file}\n")
    assert project.files() == {ide.rules_file: hints.ide_rules.rules_content.encode()}
    assert project.run("--ide", ide.name) == (0, f"{ide.rules_file} is already up to date\n")


def test_a_block_is_appended_and_later_replaced_and_the_rest_stays(project: Project) -> None:
    path = project.path / "CLAUDE.md"
    path.write_bytes(b"# Mine\r\n\r\nBe brief.\r\n\r\n\r\n")
    assert project.run() == (0, "Appended CLAUDE.md\n")
    text = path.read_bytes().decode()
    assert text.startswith(f"# Mine\r\n\r\nBe brief.\r\n\r\n{rules.START}\r\n")
    assert text.endswith(f"{rules.END}\r\n")
    assert "\n" not in text.replace("\r\n", "")
    path.write_text(f"above\n{rules.START}\nold\n{rules.END}\nbelow\n")
    assert project.run() == (0, "Replaced CLAUDE.md\n")
    text = path.read_text()
    assert text.startswith(f"above\n{rules.START}\n# Memory")
    assert text.endswith(f"{rules.END}\nbelow\n")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"{rules.START}\n", "expected exactly one start marker and one end marker"),
        (f"{rules.START}{rules.START}{rules.END}", "expected exactly one start marker"),
        (f"{rules.END}\n{rules.START}\n", "Awareness markers are malformed or out of order"),
    ],
)
@pytest.mark.parametrize("options", [[], ["--force"]])
def test_wrong_markers_are_a_conflict_even_with_force(
    text: str, reason: str, options: list[str], project: Project
) -> None:
    (project.path / "AGENTS.md").write_text(text)
    code, shown = project.run(*options)
    assert code == 1
    assert f"Conflict while syncing AGENTS.md: {reason}" in shown
    assert (project.path / "AGENTS.md").read_text() == text


def test_an_unmanaged_cursor_file_is_a_conflict_unless_it_is_forced(project: Project) -> None:
    path = project.path / ".cursor" / "rules" / "awareness.mdc"
    path.parent.mkdir(parents=True)
    path.write_text("mine\n")
    code, shown = project.run()
    assert code == 1
    assert "managed_file already exists without Awareness markers" in shown
    assert path.read_text() == "mine\n"
    assert project.run("--force") == (0, "Replaced .cursor/rules/awareness.mdc\n")


def test_a_clinerules_folder_gets_a_file_of_ours(project: Project) -> None:
    (project.path / ".clinerules").mkdir()
    assert project.run() == (0, "Created .clinerules/recalld.md\n")


@pytest.mark.parametrize(
    ("spelling", "file"),
    [
        ("claude", "CLAUDE.md"),
        ("Claude Code", "CLAUDE.md"),
        ("claude_code", "CLAUDE.md"),
        ("githubcopilot", ".github/copilot-instructions.md"),
        ("vscode-copilot", ".github/copilot-instructions.md"),
        ("opencode", "AGENTS.md"),
    ],
)
def test_other_spellings_are_known(spelling: str, file: str, project: Project) -> None:
    assert project.run("--ide", spelling, "--dry-run") == (0, f"Would create {file}\n")
    assert project.files() == {}


def test_the_ide_is_detected_in_the_order_of_the_document(project: Project) -> None:
    code, shown = project.run()
    assert (code, "Could not auto-detect IDE" in shown) == (1, True)
    for name, expected in [
        ("AGENTS.md", "AGENTS.md"),
        (".github/copilot-instructions.md", ".github/copilot-instructions.md"),
        (".clinerules", ".clinerules"),
        (".windsurfrules", ".windsurfrules"),
        ("CLAUDE.md", "CLAUDE.md"),
        (".cursor/x", ".cursor/rules/awareness.mdc"),
    ]:
        path = project.path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
        assert expected in project.run("--dry-run")[1]
    assert "CLAUDE.md" in project.run("--ide", "claude-code", "--dry-run")[1]
    code, shown = project.run("--ide", "emacs")
    assert (code, shown.startswith("recalld: --ide: 'emacs' is not one of claude-code")) == (
        1,
        True,
    )


ENTRY = {
    "type": "http",
    "url": "https://memory.example/mcp",
    "headers": {
        "Authorization": "Bearer aw_1",
        "X-Awareness-Memory-Id": "mem_1",
        "X-Awareness-Agent-Role": "builder_agent",
    },
}
VALUES = ("--mcp-url", "https://memory.example/mcp", "--api-key", "aw_1", "--memory-id", "mem_1")


def test_the_mcp_file_keeps_other_servers(project: Project) -> None:
    path = project.path / ".vscode" / "mcp.json"
    path.parent.mkdir()
    path.write_text('{\n  // mine\n  "servers": {"other": {"url": "x"}}\n}\n')
    code, shown = project.run("--ide", "copilot", *VALUES)
    assert (code, shown.splitlines()[-1]) == (0, "Updated .vscode/mcp.json")
    text = path.read_text()
    assert "// mine" in text
    servers = json.loads(text.replace("// mine", ""))["servers"]
    assert servers == {"other": {"url": "x"}, "awareness-memory": ENTRY}


def test_a_changed_key_is_written_even_if_the_rules_are_current(project: Project) -> None:
    project.run("--ide", "claude", *VALUES)
    code, shown = project.run("--ide", "claude", *VALUES[:2], "--api-key", "aw_2")
    assert (code, shown) == (0, "CLAUDE.md is already up to date\nUpdated .mcp.json\n")
    servers = json.loads((project.path / ".mcp.json").read_text())["mcpServers"]
    assert servers["awareness-memory"]["headers"]["Authorization"] == "Bearer aw_2"


def test_values_come_from_the_environment_too(project: Project) -> None:
    _, shown = project.run(
        "--ide", "cursor", AWARENESS_API_KEY="k", AWARENESS_MCP_SERVER_NAME="mem"
    )
    assert "Created .cursor/mcp.json" in shown
    servers = json.loads((project.path / ".cursor/mcp.json").read_text())["mcpServers"]
    assert servers["mem"]["url"] == "http://127.0.0.1:7331/mcp/awareness"


def test_an_ide_without_an_mcp_file_is_a_note_and_invalid_json_a_conflict(
    project: Project,
) -> None:
    code, shown = project.run("--ide", "codex", "--configure-mcp")
    assert code == 0
    assert "Note: Codex has no MCP file in a project" in shown
    (project.path / ".mcp.json").write_text("{")
    code, shown = project.run("--ide", "claude", "--configure-mcp")
    assert code == 1
    assert "Conflict while syncing .mcp.json: line 1, column 2" in shown
    assert (project.path / ".mcp.json").read_text() == "{"


def test_the_command_runs_as_a_process(tmp_path: Path) -> None:
    done = recalld(tmp_path / "data", "awareness-setup", "--ide", "claude", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "Created CLAUDE.md\n", "")
    done = recalld(tmp_path / "data", "awareness-setup", "--ide", "emacs", cwd=tmp_path)
    assert done.returncode != 0
    assert done.stderr.startswith("recalld: ")

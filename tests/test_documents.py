"""The documents tell the truth: what exists is documented, what is documented exists."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from daemon import exit_codes
from daemon.config import SETTINGS, Setting, load
from daemon.dialect_names import DIALECTS
from daemon.dialects.registry import build
from daemon.version import VERSION
from protocol.errors import Fault
from protocol.framing import DEFAULT_FRAME_LIMIT
from protocol.revisions import SUPPORTED
from scripts.tables import with_tables
from store.model import DOCUMENT_LIMIT, TEXT_LIMIT
from tests.support.toolkit import any_toolkit

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
TOP_LEVEL = {"daemon", "protocol", "store", "tests", "conformance", "scripts"}


def test_the_readmes_tables_are_what_the_code_says() -> None:
    assert with_tables(README) == README, "run scripts/tables.py --write"


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.key)
def test_every_setting_and_variable_is_documented(setting: Setting) -> None:
    assert f"`{setting.key}`" in README
    for variable in setting.variables:
        assert f"`{variable}`" in README


def test_the_readmes_configurations_are_accepted(tmp_path: Path) -> None:
    examples = re.findall(r"(?s)```toml\n(.*?)```", README)
    configurations = [text for text in examples if not text.startswith(("[[token]]", "[section]"))]
    assert any("token_file" in text for text in configurations)
    for text in configurations:
        (tmp_path / "config.toml").write_text(text)
        load({}, {"RECALLD_HOME": str(tmp_path)})


def test_the_limits_in_the_readme_are_those_of_the_code() -> None:
    mib = 1024 * 1024
    assert (mib, 16 * mib, 4 * mib) == (TEXT_LIMIT, DOCUMENT_LIMIT, DEFAULT_FRAME_LIMIT)
    assert "at most 1 MiB of text and one document 16 MiB" in README
    assert "at most 4 MiB unless `limits.frame_bytes`" in README


def test_every_exit_code_is_documented() -> None:
    codes = {value for name, value in vars(exit_codes).items() if name.isupper()}
    documented = {int(code) for code in re.findall(r"^\| (\d+) \|", README, re.MULTILINE)}
    assert documented == codes


def test_every_fault_is_documented() -> None:
    for fault in Fault:
        assert f"`{fault.kind}`" in README


def test_every_tool_is_documented() -> None:
    for spec in build(DIALECTS, any_toolkit()).specs():
        assert f"`{spec.name}`" in README, spec.name


def commands_of(*prefix: str) -> set[str]:
    shown = subprocess.run(
        [sys.executable, "-P", "-m", "daemon", *prefix, "--help"],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    ).stdout
    return set(re.findall(r"^    (\w+)  ", shown, re.MULTILINE))


def test_every_command_is_documented() -> None:
    commands = commands_of()
    assert {"serve", "stdio", "health", "status", "stop", "bank"} <= commands
    for command in commands:
        assert f"recalld {command}" in README
    for command in ("bank", "token"):
        verbs = commands_of(command)
        assert "list" in verbs
        for verb in verbs:
            assert f"recalld {command} {verb}" in README


def test_the_version_is_said_once() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == VERSION


def test_the_oldest_and_newest_revision_are_named() -> None:
    assert SUPPORTED[0] in README
    assert SUPPORTED[-1] in README


def test_the_top_level_is_the_one_agreed() -> None:
    listed = subprocess.run(
        ["git", "ls-tree", "-d", "--name-only", "HEAD"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    folders = {name for name in listed.stdout.split() if not name.startswith(".")}
    assert folders == TOP_LEVEL


@pytest.mark.parametrize("package", ["daemon", "protocol", "store", "conformance", "scripts"])
def test_every_package_has_a_readme(package: str) -> None:
    assert (ROOT / package / "README.md").stat().st_size > 500


@pytest.mark.parametrize(
    "document", sorted(p.relative_to(ROOT).as_posix() for p in ROOT.glob("*.md"))
)
def test_links_between_documents_lead_somewhere(document: str) -> None:
    text = (ROOT / document).read_text()
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (ROOT / document).parent.joinpath(target).exists(), target


def test_files_named_in_the_map_exist() -> None:
    for document in ("ARCHITECTURE.md", "CONTRIBUTING.md"):
        text = (ROOT / document).read_text()
        for path in re.findall(r"`((?:daemon|protocol|store|conformance|scripts)/[\w./]+)`", text):
            assert (ROOT / path).exists(), f"{document}: {path}"

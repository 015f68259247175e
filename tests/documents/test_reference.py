"""The pages under docs/ agree with the code: everything that exists is documented."""

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
from scripts.tables import TABLES, with_table
from store.model import DOCUMENT_LIMIT, TEXT_LIMIT
from tests.support.toolkit import any_toolkit

ROOT = Path(__file__).parent.parent.parent
TOP_LEVEL = {"daemon", "protocol", "store", "tests", "conformance", "scripts", "docs"}


def page(name: str) -> str:
    return (ROOT / name).read_text()


README = page("README.md")
CLIENTS = page("docs/clients.md")
CONFIGURATION = page("docs/configuration.md")
DIALECTS_PAGE = page("docs/dialects.md")
ERRORS = page("docs/errors.md")
HTTP_API = page("docs/http-api.md")
OPERATIONS = page("docs/operations.md")


@pytest.mark.parametrize("name", sorted(TABLES))
def test_generated_tables_are_up_to_date(name: str) -> None:
    table = TABLES[name]
    assert with_table(page(table.page), table) == page(table.page), "run scripts/tables.py --write"


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.key)
def test_every_setting_and_variable_is_documented(setting: Setting) -> None:
    assert f"`{setting.key}`" in CONFIGURATION
    for variable in setting.variables:
        assert f"`{variable}`" in CONFIGURATION


def test_the_example_configurations_are_accepted(tmp_path: Path) -> None:
    pages = [README, *(path.read_text() for path in sorted((ROOT / "docs").glob("*.md")))]
    examples = [text for each in pages for text in re.findall(r"(?s)```toml\n(.*?)```", each)]
    configurations = [text for text in examples if not text.startswith(("[[token]]", "[section]"))]
    assert any("token_file" in text for text in configurations)
    assert any("[embedding]" in text for text in configurations)
    for text in configurations:
        (tmp_path / "config.toml").write_text(text)
        load({}, {"RECALLD_HOME": str(tmp_path)})


def test_the_documented_limits_are_those_of_the_code() -> None:
    mib = 1024 * 1024
    assert (mib, 16 * mib, 4 * mib) == (TEXT_LIMIT, DOCUMENT_LIMIT, DEFAULT_FRAME_LIMIT)
    assert "| text of one memory | 1 MiB |" in CONFIGURATION
    assert "| text of one document | 16 MiB |" in CONFIGURATION
    assert "| one message, and so one call | 4 MiB; `limits.frame_bytes`" in CONFIGURATION


def test_every_exit_code_is_documented() -> None:
    codes = {value for name, value in vars(exit_codes).items() if name.isupper()}
    table = OPERATIONS.partition("## Exit codes")[2]
    documented = {int(code) for code in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)}
    assert documented == codes


def test_every_documented_reason_for_degraded_health_exists() -> None:
    table = OPERATIONS.partition("| reason | meaning | remedy |")[2].partition("\n\n")[0]
    cells = [line.split("|")[1] for line in table.splitlines()[2:]]
    reasons = {name for cell in cells for name in re.findall(r"`([a-z-]+)`", cell)}
    assert "storage-full" in reasons
    code = "".join(path.read_text() for path in (ROOT / "store").rglob("*.py"))
    for reason in reasons:
        assert f'"{reason}"' in code, reason


def test_every_fault_is_documented() -> None:
    for fault in Fault:
        assert f"`{fault.kind}`" in ERRORS


def test_every_tool_is_documented() -> None:
    for spec in build(DIALECTS, any_toolkit()).specs():
        assert f"`{spec.name}`" in DIALECTS_PAGE, spec.name


def help_of(*prefix: str) -> str:
    return subprocess.run(
        [sys.executable, "-P", "-m", "daemon", *prefix, "--help"],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    ).stdout


def commands_of(*prefix: str) -> set[str]:
    return set(re.findall(r"^    (\w+)  ", help_of(*prefix), re.MULTILINE))


def test_every_command_is_documented() -> None:
    commands = commands_of()
    assert {"serve", "stdio", "health", "status", "stop", "bank"} <= commands
    for command in commands:
        assert f"recalld {command}" in README
        assert f"recalld {command}" in page("docs/commands.md")
    for command, shown in (
        ("bank", OPERATIONS),
        ("token", HTTP_API),
        ("tool", page("docs/lua.md")),
        ("ctx", page("docs/context-harness.md")),
    ):
        verbs = commands_of(command)
        assert "list" in verbs or command == "ctx"
        for verb in verbs:
            assert f"recalld {command} {verb}" in shown


@pytest.mark.parametrize("command", ["serve", "stdio"])
def test_every_option_of_the_server_is_documented(command: str) -> None:
    for option in set(re.findall(r"--[a-z-]+", help_of(command))) - {"--help"}:
        assert option in CLIENTS, f"recalld {command} {option}"


def test_the_version_is_the_same_in_code_and_packaging() -> None:
    project = tomllib.loads(page("pyproject.toml"))["project"]
    assert project["version"] == VERSION


def test_the_readme_names_the_oldest_and_the_newest_revision() -> None:
    assert SUPPORTED[0] in README
    assert SUPPORTED[-1] in README


def test_every_revision_is_named_on_the_conformance_page() -> None:
    text = page("docs/conformance.md")
    for revision in SUPPORTED:
        assert revision in text


def test_the_readme_is_short_and_links_every_page() -> None:
    assert len(README.splitlines()) <= 120
    for path in (ROOT / "docs").glob("*.md"):
        assert f"(docs/{path.name})" in README


def test_the_top_level_has_the_agreed_folders() -> None:
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
def test_every_top_level_package_has_a_readme(package: str) -> None:
    assert (ROOT / package / "README.md").stat().st_size > 500

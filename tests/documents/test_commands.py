"""Every command in the documentation is executed, page by page.

A page gets a home directory of its own with two banks. The lines of its `sh` and `console` blocks
run in their order and must succeed. `EXCEPTIONS` lists the commands of other programs that cannot
run in a test, with a reason. There is no exception for a command of recalld.
"""

import re
from pathlib import Path
from typing import Final

import pytest

from tests.documents.reader import Reader

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
#: Regular expressions for whole commands, with the reason why they are not executed here.
EXCEPTIONS: Final = {
    r"claude": "needs an account; tests/clients/coding_clients.py lets Claude Code connect",
    r"mcp-conform .*": "takes minutes; tests/conformance/test_recalld.py runs the suite",
    r"scripts/conform.*": "takes minutes; tests/conformance/test_recalld.py runs the suite",
    r"scripts/bench\.py .*": "takes minutes and needs a quiet machine; scripts/README.md",
}


def commands(path: Path) -> list[str]:
    """The commands of a page, without prompts, comments and output."""
    found: list[str] = []
    for kind, block in re.findall(r"(?ms)^```(sh|console)\n(.*?)^```", path.read_text()):
        for line in block.splitlines():
            if kind == "console" and not line.startswith("$ "):
                continue
            command = re.split(r"\s+#", line.removeprefix("$ "), maxsplit=1)[0].strip()
            if command:
                found.append(re.sub(r"^scripts/recalld\b", "recalld", command))
    return found


def exception(command: str) -> str | None:
    found = [why for form, why in EXCEPTIONS.items() if re.fullmatch(form, command)]
    return found[0] if found else None


def groups() -> dict[str, list[str]]:
    """The commands to execute, by page. The pages of the clients share a home directory."""
    found: dict[str, list[str]] = {}
    for path in PAGES:
        name = "docs/clients" if path.parent.name == "clients" else str(path.relative_to(ROOT))
        run = [command for command in commands(path) if exception(command) is None]
        if run:
            found.setdefault(name, []).extend(run)
    return found


GROUPS: Final = groups()


@pytest.mark.parametrize("page", GROUPS)
def test_the_commands_of_a_page_work(page: str, tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    try:
        for command in ("setup cursor", "bank create default", "bank create work"):
            assert reader.run(f"recalld {command}").returncode == 0
        assert [mistake for each in GROUPS[page] if (mistake := reader.follow(each))] == []
    finally:
        reader.close()


def test_only_commands_of_other_programs_are_exceptions() -> None:
    shown = [command for page in PAGES for command in commands(page)]
    assert len(shown) > 60
    for form, why in EXCEPTIONS.items():
        excepted = [command for command in shown if re.fullmatch(form, command)]
        assert excepted, form
        assert not any(command.startswith("recalld") for command in excepted)
        for name in re.findall(r"[\w/]+\.(?:py|md)", why):
            assert (ROOT / name).is_file(), why


def test_the_pages_of_the_clients_are_generated_from_the_table() -> None:
    from daemon.setup.clients import CLIENTS
    from scripts import client_pages

    for client in CLIENTS:
        path = client_pages.PAGES / f"{client.name}.md"
        assert path.read_text() == client_pages.page(client), "run scripts/client_pages.py --write"


def test_the_export_page_lists_every_field() -> None:
    from store.exporting import export_format as form

    page = (ROOT / "docs" / "export-format.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", page, re.MULTILINE))
    for record in (form.ItemRecord, form.DocumentRecord, form.OriginRecord):
        kind = str(record.__struct_config__.tag)
        assert re.findall(r"`(\w+)`", rows[kind]) == list(record.__struct_fields__)

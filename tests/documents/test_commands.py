"""Every recalld command in the documentation is executed, page by page.

A page gets a home directory of its own with a stored memory. The lines of its `sh` and `console`
blocks that call recalld run in their order and must exit with 0. `EXCEPTIONS` lists the lines that
are not executed, with a reason. Lines of other programs are not executed.
"""

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.support.processes import PATIENCE, recalld

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
#: Names in capitals stand for values of the reader.
VALUES: Final = {
    "BANK": "default",
    "FILE": "memories.jsonl",
    "BYTES": "1000000000",
    "SIZE": "5GB",
    "CLIENT": "cursor",
    "EVENT": "session-end",
    "NAME": "laptop",
}
#: Folders and files that the commands of some pages expect.
FOLDERS: Final = (
    ".cursor",
    ".local/share/bash-completion/completions",
    ".local/share/man/man1",
    ".zfunc",
    ".config/fish/completions",
)
FILES: Final = {
    "notes.jsonl": '{"text": "We release on Fridays"}\n',
    "notes.csv": "text,tags\nWe release on Fridays,release\n",
}
#: Regular expressions for whole commands, with the reason why they are not executed here.
EXCEPTIONS: Final = {
    r"recalld serve.*": "runs until it is stopped; test_readme.py starts it",
    r"recalld stdio.*": "serves a client on stdin; tests/daemon/bridge starts it",
    r"recalld service install": "changes the services of the machine; test_service.py",
    r"recalld health --socket .*": "the path is an example",
    r"recalld bank (create|rename|delete) .*": "tests/daemon/commands has their life cycle",
    r"recalld bank (restore|forget|undo|erase) .*": "needs an id; tests/daemon/commands",
    r"recalld bank move .*": "needs a server; tests/daemon/commands/test_bank_move.py",
    r"recalld bank recover.*": "needs a damaged catalogue; tests/daemon/commands",
    r"recalld import": "names no file here; docs/importing.md has whole commands",
    r"recalld import --from .*": "needs the data of another program; tests/daemon/importing",
    r"recalld ctx .*": "needs a configuration of Context Harness; tests/daemon/commands/ctx",
    r"recalld source .*": "tests/documents and tests/daemon/sources run them with a real folder",
    r"recalld tool .*": "tests/daemon/lua runs them with a real script",
    r"recalld token .*": "tests/daemon/commands/test_token.py",
    r"recalld (stop|setup --remove.*)": "ends the page's daemon; test_setup.py, test_probe.py",
}


def commands(path: Path) -> list[str]:
    """The lines of a page that call recalld, without prompts and comments."""
    found: list[str] = []
    for block in re.findall(r"(?ms)^```(?:sh|console)\n(.*?)^```", path.read_text()):
        for line in block.splitlines():
            command = re.split(r"\s+#", line.removeprefix("$ "), maxsplit=1)[0].strip()
            if re.match(r"(scripts/)?recalld\b", command):
                found.append(command.removeprefix("scripts/"))
    return found


def exception(command: str) -> str | None:
    found = [why for form, why in EXCEPTIONS.items() if re.fullmatch(form, command)]
    return found[0] if found else None


def filled(command: str) -> str:
    return re.sub(r"\b[A-Z]{4,}\b", lambda word: VALUES.get(word[0], word[0]), command)


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
    home, data = tmp_path / "home", tmp_path / "data"
    for folder in FOLDERS:
        (home / folder).mkdir(parents=True)
    for name, text in FILES.items():
        (home / name).write_text(text)
    variables = {
        "HOME": str(home),
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "RECALLD_HOME": str(data),
        "RECALLD_EMBEDDING_HASHED": "true",
    }

    def run(command: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            ["bash", "-c", command],
            env=variables,
            cwd=home,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE * 6,
            check=False,
        )

    try:
        assert run("recalld setup cursor").returncode == 0
        for bank in ("default", "work"):
            assert run(f"recalld bank create {bank}").returncode == 0
        failed = []
        for command in GROUPS[page]:
            done = run(filled(command))
            if done.returncode:
                failed.append(f"{command}: {done.returncode} {done.stdout}{done.stderr}")
        assert failed == []
    finally:
        recalld(data, "stop")


def test_every_exception_is_used() -> None:
    shown = [command for page in PAGES for command in commands(page)]
    assert len(shown) > 40
    for form in EXCEPTIONS:
        assert any(re.fullmatch(form, command) for command in shown), form


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

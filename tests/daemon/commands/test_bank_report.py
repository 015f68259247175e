"""Output of `recalld bank` on a terminal: confirmation and progress."""

import os
import pty
import re
import subprocess

import anyio

from daemon.commands import bank_report
from store.model import NewMemory
from store.sqlite.engine import open_engine
from tests.daemon.commands.bank_home import BankHome
from tests.support.plain_ranking import PlainRanking
from tests.support.processes import PATIENCE, RECALLD, environment


def at_a_terminal(bank_home: BankHome, typed: bytes, *arguments: str) -> tuple[int, str, str]:
    """Run with a terminal as stdin and stderr; returns the exit code, stdout and its text."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*RECALLD, "bank", *arguments],
        env=environment(bank_home.home),
        cwd=bank_home.cwd,
        stdin=theirs,
        stderr=theirs,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        os.close(theirs)
        os.write(ours, typed)
        out, _ = process.communicate(timeout=PATIENCE)
    seen = b""
    while True:
        try:
            chunk = os.read(ours, 65_536)
        except OSError:
            break
        if not chunk:
            break
        seen += chunk
    os.close(ours)
    return process.returncode, out, seen.decode()


def test_on_a_terminal_erase_explains_itself_and_asks_for_confirmation(
    stopped_home: BankHome,
) -> None:
    code, out, seen = at_a_terminal(stopped_home, b"no\n", "erase", "work", stopped_home.ids[0])
    assert (code, out) == (1, "")
    assert "backups that hold them are deleted whole" in seen
    assert "Erase 1 thing in bank 'work' for good? [y/N]" in seen
    assert "nothing was changed" in seen
    assert stopped_home.items("work") == 4
    code, out, _ = at_a_terminal(stopped_home, b"y\n", "erase", "work", stopped_home.ids[0])
    assert code == 0
    assert "no copy is left" in out
    assert stopped_home.items("work") == 3


def test_a_terminal_shows_the_progress_of_export_and_import(stopped_home: BankHome) -> None:
    async def fill() -> None:
        async with open_engine(stopped_home.home / "data", ranking=PlainRanking) as engine:
            await engine.put_many("big", [NewMemory(text=f"fact {n}") for n in range(600)])

    anyio.run(fill)
    code, _, seen = at_a_terminal(stopped_home, b"", "export", "big", "big.jsonl")
    assert code == 0
    assert "export: [........................] 0 %  1 of 600" in seen
    code, out, seen = at_a_terminal(stopped_home, b"", "import", "copy", "big.jsonl")
    assert code == 0
    assert out == "copy: 600 records taken, 0 were there already\n"
    assert re.search(r"import: \[[#.]{24}\] \d+ %  \d+ of 600", seen)
    assert "import" not in stopped_home.run("import", "copy", "big.jsonl").stderr


def test_pending_vectors_are_announced_with_the_command_that_shows_their_progress() -> None:
    note = bank_report.pending_note({"bank": "work", "pendingVectors": 1200})
    assert note.startswith("recalld: 1,200 vectors are computed in the background")
    assert "`recalld bank index work`" in note
    assert note.endswith("\n")
    assert bank_report.pending_note({"bank": "work", "pendingVectors": 0}) == ""
    assert bank_report.pending_note({"bank": "work"}) == ""

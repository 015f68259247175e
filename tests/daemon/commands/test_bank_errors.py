"""Errors of `recalld bank`: one line, a documented exit code, and nothing changed."""

import os
import shlex
import subprocess
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.daemon.commands.bank_home import BankHome, bank_database, placed
from tests.support.processes import RECALLD, environment


@pytest.fixture(scope="module", params=["daemon", "alone"])
def shared_home(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Generator[BankHome]:
    """A shared data directory for tests that must not change it."""
    root = tmp_path_factory.mktemp("standing")
    with placed(root, is_served=request.param == "daemon") as made:
        (made.cwd / "taken").write_text("precious")
        (made.cwd / "cut").write_text('{"format": "recalld-bank", "version": 1, "bank": "x"}\n')
        yield made


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("backup", "nobody"), 64, "no memory bank named 'nobody'; `recalld bank list`"),
        (("backups", "nobody"), 64, "no memory bank named"),
        (("export", "nobody", "out.jsonl"), 64, "no memory bank named"),
        (("erase", "nobody", "mem_1", "--yes"), 64, "no memory bank named"),
        (("delete", "nobody", "--yes"), 64, "no memory bank named"),
        (("delete", "work"), 64, "--yes"),
        (("create", "work"), 64, "exists already"),
        (("rename", "work", "work\n"), 64, "control characters"),
        (("quota", "work", "lots"), 64, "'lots' is not a size"),
        (("quota", "work", "0"), 64, "5GB, 2GiB or none"),
        (("restore", "work", "../../etc"), 64, "`recalld bank backups work`"),
        (("undo", "work", "undo_1"), 64, "undo window"),
        (("export", "work", "taken"), 64, "taken: exists already; --force replaces it"),
        (("export", "work", "."), 64, "is a directory"),
        (("export", "work", "no/such/place"), 73, "there is no directory"),
        (("export", "work", "/proc/out.jsonl"), 73, "/proc/out.jsonl"),
        (("import", "work", "absent"), 64, "there is no such file"),
        (("import", "work", "taken"), 64, "nothing was imported"),
        (("import", "fresh", "cut"), 64, "is cut"),
        (("polish", "work"), 64, "polish"),
        ((), 64, "VERB"),
    ],
)
def test_an_error_is_one_line_and_nothing_is_changed(
    shared_home: BankHome, arguments: tuple[str, ...], code: int, words: str
) -> None:
    got, why = shared_home.refused(*arguments)
    assert (got, words in why) == (code, True), why
    assert (shared_home.cwd / "taken").read_text() == "precious"
    assert sorted(path.name for path in shared_home.cwd.iterdir()) == ["cut", "taken"]


def test_the_banks_are_unchanged_after_all_errors(shared_home: BankHome) -> None:
    assert [(b["bank"], b["items"]) for b in shared_home.json("list")["banks"]] == [("work", 4)]
    assert shared_home.json("check", "work")["problems"] == []


def test_force_replaces_a_file_but_never_one_of_recalld(bank_home: BankHome) -> None:
    (bank_home.cwd / "old").write_text("x")
    bank_home.ok("export", "work", "old", "--force")
    assert (bank_home.cwd / "old").read_text().startswith('{"format":"recalld-bank"')
    catalogue = bank_home.home / "data" / "catalogue.db"
    code, why = bank_home.refused("export", "work", str(catalogue), "--force")
    assert code == 64
    assert "recalld's own files" in why
    assert catalogue.read_bytes().startswith(b"SQLite")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_the_error_names_a_directory_that_is_not_writable(stopped_home: BankHome) -> None:
    closed = stopped_home.home / "closed"
    closed.mkdir(mode=0o500)
    code, why = stopped_home.refused("export", "work", str(closed / "out"))
    assert code == 73
    assert "may not be written" in why


def test_a_closed_output_is_no_error_and_a_full_output_is_one(tmp_path: Path) -> None:
    for to, code in (("| true", 0), ("> /dev/full", 73)):
        line = f"set -o pipefail; {shlex.join(RECALLD)} bank list {to}"
        ended = subprocess.run(
            ["bash", "-c", line],
            env=environment(tmp_path),
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == code, ended.stderr
        assert ended.stderr.count("\n") == (code != 0), "one line or none"


def test_a_bank_that_cannot_be_opened_is_listed_with_its_problem(
    stopped_home: BankHome,
) -> None:
    bank_database(stopped_home).write_bytes(b"not a database at all" * 1000)
    stopped_home.ok("create", "play")
    play, work = stopped_home.json("list")["banks"]
    assert (play["items"], play["bank"]) == (0, "play")
    assert (work["items"], work["bank"]) == (None, "work")
    assert work["trouble"] in stopped_home.ok("list")
    code, why = stopped_home.refused("check", "work")
    assert code == 73
    assert work["trouble"] in why


def test_an_import_that_exceeds_the_quota_is_rejected(stopped_home: BankHome) -> None:
    stopped_home.ok("export", "work", "out.jsonl")
    stopped_home.ok("create", "small", "--quota", "1")
    code, why = stopped_home.refused("import", "small", "out.jsonl")
    assert code == 73
    assert "its quota is 1" in why

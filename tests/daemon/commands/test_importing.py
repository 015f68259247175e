"""`recalld import` and `recalld export`, with a daemon and without one."""

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.daemon.commands.bank_home import BankHome, Ran
from tests.daemon.importing.foreign_data import SAMPLES, server_memory
from tests.support.processes import recalld

KEY = "AKIA" + "ABCDEFGHIJKLMNOP"


def run(home: BankHome, *arguments: str, text: str | None = None) -> Ran:
    path = home.cwd / "stdin"
    path.write_text(text or "")
    with path.open() as file:
        return recalld(home.home, *arguments, cwd=home.cwd, stdin=file)


def report(home: BankHome, *arguments: str, text: str | None = None) -> Any:
    done = run(home, "import", *arguments, "--json", text=text)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def counts(made: Any) -> tuple[int, int, int]:
    return made["imported"], made["known"], made["rejected"]


def test_an_import_is_counted_and_a_repetition_adds_nothing(bank_home: BankHome) -> None:
    path = str(server_memory(bank_home.cwd))
    dry = report(bank_home, path, "--bank", "new", "--dry-run")
    assert counts(dry) == (6, 0, 0)
    assert bank_home.items("new") is None
    assert counts(report(bank_home, path, "--bank", "new")) == (6, 0, 0)
    assert bank_home.items("new") == 6
    again = report(bank_home, "--from", "server-memory", path, "--bank", "new")
    assert counts(again) == (0, 6, 0)
    assert counts(report(bank_home, path, "--bank", "new", "--dry-run")) == (0, 6, 0)
    assert bank_home.items("new") == 6


def test_a_wrong_file_is_described_and_changes_nothing(bank_home: BankHome) -> None:
    path = bank_home.cwd / "a.jsonl"
    path.write_text('{"text": "Ana prefers tabs"}\n')
    done = run(bank_home, "import", "--from", "claude-mem", str(path), "--bank", "new")
    assert done.returncode == 64
    assert done.stdout == ""
    assert done.stderr == (
        f"recalld: {path}: is not data of claude-mem: it is not a SQLite database; it looks like"
        " JSON lines: try --from jsonl; nothing was imported\n"
    )
    assert bank_home.items("new") is None


def test_entries_with_secrets_are_skipped_redacted_or_kept(stopped_home: BankHome) -> None:
    path = stopped_home.cwd / "a.jsonl"
    path.write_text(json.dumps({"id": 1, "text": f"the key is {KEY}"}) + "\n")
    skipped = report(stopped_home, str(path), "--bank", "s")
    assert counts(skipped) == (0, 0, 1)
    assert skipped["secrets"] == {
        "policy": "skip",
        "entries": 1,
        "found": [{"reason": "AWS access key", "count": 1, "examples": ["1"]}],
    }
    assert KEY not in json.dumps(skipped)
    assert not stopped_home.holds(KEY)
    assert counts(report(stopped_home, str(path), "--bank", "r", "--secrets", "redact")) == (
        1,
        0,
        0,
    )
    assert not stopped_home.holds(KEY)
    assert counts(report(stopped_home, str(path), "--bank", "k", "--secrets", "keep")) == (1, 0, 0)
    assert stopped_home.holds(KEY)


def test_an_import_reads_standard_input_and_detects_its_kind(stopped_home: BankHome) -> None:
    made = report(stopped_home, "-", "--bank", "n", text='{"text": "Ana prefers tabs"}\n')
    assert (made["kind"], made["detected"], made["path"]) == ("jsonl", True, "-")
    assert counts(made) == (1, 0, 0)


def test_the_usual_place_of_a_program_is_used_without_a_path(stopped_home: BankHome) -> None:
    done = run(stopped_home, "import", "--from", "server-memory")
    assert done.returncode == 64
    assert "name the file or folder to import" in done.stderr
    done = run(stopped_home, "import")
    assert done.returncode == 64


def test_wrong_arguments_are_refused(stopped_home: BankHome) -> None:
    os.mkfifo(stopped_home.cwd / "pipe")
    wrong = [
        (("--from", "nonsense", "x"), "--from nonsense: is not one of"),
        (("nowhere.jsonl",), "there is no such file or folder"),
        (("--secrets", "shout", "x"), "--secrets shout: is not one of skip, redact, keep"),
        (("pipe",), "is neither a file nor a folder"),
        (("stdin",), "is of no known kind; it looks like an empty file; name the kind with --from"),
    ]
    for arguments, message in wrong:
        done = run(stopped_home, "import", *arguments)
        assert done.returncode == 64
        assert message in done.stderr


def test_a_database_with_a_log_is_read_and_left_alone(stopped_home: BankHome) -> None:
    folder = stopped_home.cwd / "foreign"
    path = SAMPLES["mcp-memory-service"](folder)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("UPDATE memories SET content = 'from the log' WHERE id = 1")
        connection.commit()
        before = {each.name for each in folder.iterdir()}
        log = path.with_name(f"{path.name}-wal").read_bytes()
        assert counts(report(stopped_home, str(path), "--bank", "n")) == (1, 0, 0)
        assert {each.name for each in folder.iterdir()} == before
        assert path.with_name(f"{path.name}-wal").read_bytes() == log
    done = run(stopped_home, "export", "--bank", "n")
    assert "from the log" in done.stdout


# --- export ----------------------------------------------------------------------------------


def files(folder: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in folder.iterdir()}


def test_a_round_trip_through_json_lines_gives_the_same_bytes(
    bank_home: BankHome, tmp_path: Path
) -> None:
    done = run(bank_home, "export", "--bank", "work", "a.jsonl")
    assert done.returncode == 0, done.stderr
    other = BankHome(tmp_path / "other", bank_home.cwd, [])
    other.home.mkdir()
    assert report(other, "a.jsonl", "--bank", "work")["imported"] == 4
    assert run(other, "export", "--bank", "work", "b.jsonl").returncode == 0
    assert (bank_home.cwd / "a.jsonl").read_bytes() == (bank_home.cwd / "b.jsonl").read_bytes()


@pytest.mark.parametrize("unit", ["memory", "day"])
def test_a_round_trip_through_markdown_gives_the_same_files(
    unit: str, stopped_home: BankHome
) -> None:
    cwd = stopped_home.cwd
    done = run(stopped_home, "export", "--bank", "work", "--by", unit, "--format", "markdown", "a")
    assert done.stdout.startswith("work: 3 items in "), done.stderr
    assert report(stopped_home, "a", "--bank", "copy")["imported"] == 3
    assert run(stopped_home, "export", "--bank", "copy", "--by", unit, "b/").returncode == 0
    assert files(cwd / "a") == files(cwd / "b")
    assert len(files(cwd / "a")) == (3 if unit == "memory" else 1)


def test_a_round_trip_through_csv_gives_the_same_file(bank_home: BankHome) -> None:
    assert run(bank_home, "export", "--bank", "work", "a.csv").returncode == 0
    assert report(bank_home, "a.csv", "--bank", "copy")["imported"] == 3
    done = run(bank_home, "export", "--bank", "copy", "--format", "csv", "-")
    assert done.stdout == (bank_home.cwd / "a.csv").read_text()


def test_an_edited_line_is_accepted_with_a_warning(stopped_home: BankHome) -> None:
    run(stopped_home, "export", "--bank", "work", "a.jsonl")
    path = stopped_home.cwd / "a.jsonl"
    path.write_text(path.read_text().replace("Ana prefers tabs", "Ana prefers spaces"))
    made = report(stopped_home, "a.jsonl", "--bank", "copy")
    assert made["imported"] == 4
    assert made["warnings"] == [
        "its lines do not fit its digest: it was edited, or damaged in transport"
    ]
    assert "Ana prefers spaces" in run(stopped_home, "export", "--bank", "copy").stdout


def test_only_a_regular_file_is_replaced_and_only_by_force(stopped_home: BankHome) -> None:
    cwd = stopped_home.cwd
    (cwd / "a.csv").write_text("mine")
    done = run(stopped_home, "export", "--bank", "work", "a.csv")
    assert (done.returncode, (cwd / "a.csv").read_text()) == (64, "mine")
    assert run(stopped_home, "export", "--bank", "work", "a.csv", "--force").returncode == 0
    assert (cwd / "a.csv").read_text() != "mine"
    os.mkfifo(cwd / "pipe.csv")
    (cwd / "link.csv").symlink_to("a.csv")
    for name in ("pipe.csv", "link.csv"):
        done = run(stopped_home, "export", "--bank", "work", name, "--force")
        assert (done.returncode, "is not a regular file" in done.stderr) == (64, True)
    (cwd / "folder").mkdir()
    (cwd / "folder" / "mine.md").write_text("mine")
    done = run(stopped_home, "export", "--bank", "work", "folder")
    assert (done.returncode, "is not empty" in done.stderr) == (64, True)
    assert not [each for each in cwd.iterdir() if each.name.startswith(".folder")]


def test_an_export_of_a_bank_that_does_not_exist_is_refused(bank_home: BankHome) -> None:
    done = run(bank_home, "export", "--bank", "nowhere", "a.jsonl")
    assert done.returncode == 64
    assert not (bank_home.cwd / "a.jsonl").exists()

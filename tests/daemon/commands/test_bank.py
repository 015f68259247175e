"""`recalld bank`: every command, with a daemon and without one."""

import json
import sqlite3
from contextlib import closing

from tests.daemon.commands.bank_home import SECRET, BankHome, bank_database


def test_banks_are_created_listed_limited_renamed_and_deleted(bank_home: BankHome) -> None:
    assert bank_home.ok("create", "play") == "play: created\n"
    assert bank_home.ok("quota", "play", "2097152") == "play: quota 2.0 MiB\n"
    assert bank_home.ok("rename", "play", "fun") == "play: is called fun now\n"
    head, fun, work = bank_home.ok("list").splitlines()
    assert head.split() == ["BANK", "ITEMS", "SIZE", "QUOTA", "CREATED"]
    assert fun.split()[:2] == ["fun", "0"]
    assert "2.0 MiB" in fun
    assert work.split()[:2] == ["work", "4"]
    assert bank_home.json("quota", "fun", "none")["quotaBytes"] is None
    assert bank_home.ok("delete", "fun", "--yes") == "fun: deleted, with its backups\n"
    (only,) = bank_home.json("list")["banks"]
    assert (only["bank"], only["items"], only["quotaBytes"]) == ("work", 4, None)
    assert only["bytes"] > 0
    assert only["created"].endswith("Z")


def test_an_imported_bank_exports_the_same_bytes(bank_home: BankHome) -> None:
    assert bank_home.ok("export", "work", "out.jsonl") == (
        f"work: 5 records in {bank_home.cwd}/out.jsonl\n"
    )
    written = bank_home.cwd / "out.jsonl"
    assert written.stat().st_mode & 0o777 == 0o600
    assert bank_home.json("import", "other", "out.jsonl")["created"] == 5
    assert bank_home.json("import", "other", "out.jsonl")["known"] == 5
    assert bank_home.items("other") == bank_home.items("work") == 4
    bank_home.ok("export", "other", "again.jsonl")
    lines, again = (
        (bank_home.cwd / name).read_bytes().splitlines()[1:-1]
        for name in ("out.jsonl", "again.jsonl")
    )
    assert lines == again


def test_restoring_a_backup_undoes_later_changes_and_can_be_undone(bank_home: BankHome) -> None:
    made = bank_home.json("backup", "work")
    assert made["items"] == 4
    forgotten = bank_home.json("forget", "work", bank_home.ids[1])
    assert (forgotten["items"], bank_home.items("work")) == (1, 3)
    restored = bank_home.json("restore", "work", made["backup"])
    assert bank_home.items("work") == 4
    listed = bank_home.ok("backups", "work").splitlines()
    assert [line.split()[0] for line in listed] == ["BACKUP", restored["replaced"], made["backup"]]
    bank_home.ok("restore", "work", restored["replaced"])
    assert bank_home.items("work") == 3


def test_recover_lists_the_banks_of_a_lost_catalogue_again(stopped_home: BankHome) -> None:
    assert stopped_home.ok("recover") == "every bank on disk is listed already\n"
    for file in (stopped_home.home / "data").glob("catalogue.db*"):
        file.unlink()
    assert stopped_home.items("work") is None
    assert stopped_home.ok("recover") == "work: recovered\n"
    assert stopped_home.items("work") == 4

    foreign = stopped_home.home / "data" / "banks" / ("f" * 32)
    foreign.mkdir()
    (foreign / "bank.db").write_bytes(b"SQLite format 3\0" + bytes(100))
    done = stopped_home.run("recover")
    assert done.returncode == 1
    assert done.stdout == f"banks/{'f' * 32}: the file belongs to another program\n"


def test_forgotten_items_can_be_restored(bank_home: BankHome) -> None:
    output = bank_home.ok("forget", "work", *bank_home.ids[:2])
    assert output.startswith("work: 2 items forgotten; until ")
    command = output.partition("`")[2].partition("`")[0]
    assert bank_home.items("work") == 2
    assert bank_home.ok(*command.split()[2:]) == "work: 2 items brought back\n"
    assert bank_home.items("work") == 4
    code, why = bank_home.refused(*command.split()[2:])
    assert code == 64
    assert "undo window" in why


def test_erasing_leaves_no_copy_in_any_file(bank_home: BankHome) -> None:
    bank_home.ok("backup", "work")
    assert bank_home.holds(SECRET)
    code, why = bank_home.refused("erase", "work", bank_home.ids[0])
    assert code == 64
    assert "--yes" in why
    assert bank_home.holds(SECRET)
    done = bank_home.json("erase", "work", bank_home.ids[0], "--yes")
    assert (done["items"], done["documents"]) == (1, 0)
    assert done["copiesRemoved"] >= 1
    assert not bank_home.holds(SECRET)
    assert not bank_home.json("backups", "work")["backups"]
    assert bank_home.items("work") == 3
    code, why = bank_home.refused("erase", "work", bank_home.ids[0], bank_home.ids[1], "--yes")
    assert code == 64
    assert bank_home.ids[0] in why
    assert bank_home.items("work") == 3


def test_a_whole_document_is_erased_by_its_id(bank_home: BankHome) -> None:
    bank_home.ok("export", "work", "out.jsonl")
    records = [json.loads(line) for line in (bank_home.cwd / "out.jsonl").read_text().splitlines()]
    (document,) = [each["public_id"] for each in records if each.get("type") == "document"]
    assert bank_home.holds("A long tale")
    output = bank_home.ok("erase", "work", document, "--yes")
    assert output.startswith("work: 1 item and 1 document erased, no copy is left")
    assert not bank_home.holds("A long tale")


def test_an_undamaged_bank_passes_the_check_and_can_be_rebuilt(bank_home: BankHome) -> None:
    assert bank_home.ok("check", "work") == "work: sound (4 items, 1 document)\n"
    assert bank_home.json("check", "work", "--repair")["problems"] == []
    assert bank_home.json("rebuild", "work")["items"] == 4


def test_a_damaged_row_is_reported_with_code_1_and_quarantined_by_repair(
    stopped_home: BankHome,
) -> None:
    with closing(sqlite3.connect(bank_database(stopped_home))) as raw, raw:
        raw.execute("UPDATE items SET text = 'forged' WHERE public_id = ?", (stopped_home.ids[1],))
    done = stopped_home.run("check", "work")
    assert (done.returncode, done.stderr) == (1, "")
    first, heads, *rows = done.stdout.splitlines()
    assert first.startswith("work: ")
    assert heads.split() == ["PROBLEM", "PART", "COUNT", "REMEDY"]
    assert any(row.endswith("repair") for row in rows), done.stdout
    assert stopped_home.json("check", "work", "--repair")["problems"] == []
    assert stopped_home.items("work") == 3

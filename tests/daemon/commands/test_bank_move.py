"""`recalld bank move` copies a bank to a server and back, and refuses another bank of that name."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.daemon.commands.bank_home import seeded
from tests.store.postgres.cluster import Cluster, cluster
from tests.support.processes import recalld


@pytest.fixture(scope="module")
def server() -> Iterator[Cluster]:
    with cluster() as running:
        yield running


def bank(home: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return recalld(home, "bank", *arguments, cwd=home, stdin=subprocess.DEVNULL)


def test_a_bank_is_copied_to_a_server_and_back_without_a_difference(
    server: Cluster, tmp_path: Path
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    for home in (here, there):
        home.mkdir()
    seeded(here)
    url = server.new_database()
    settings = f'[embedding]\nhashed = true\n[storage]\nurl = "{url}"\n'
    (there / "config.toml").write_text(settings)

    moved = bank(here, "move", "work", "--to", url)
    assert moved.returncode == 0, moved.stderr
    assert "5 records are equal" in moved.stdout
    again = bank(here, "move", "--all", "--to", url)
    assert "0 were new there" in again.stdout, again.stderr
    back = bank(there, "move", "work", "--to", str(tmp_path / "third"))
    assert "5 were new there" in back.stdout, back.stderr

    bank(there, "create", "other")
    bank(here, "create", "other")
    added = recalld(there, "add", "--bank", "other", "something else")
    assert added.returncode == 0, added.stderr
    refused = bank(here, "move", "other", "--to", url)
    assert refused.returncode == 64
    recalld(there, "stop")


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("mysql://db/recalld", 78),
        ("postgresql://u:secret@/recalld?host=/nowhere", 69),
    ],
)
def test_an_address_that_cannot_be_used_ends_the_start_with_one_line(
    tmp_path: Path, url: str, code: int
) -> None:
    (tmp_path / "config.toml").write_text(f'[storage]\nurl = "{url}"\n')
    done = bank(tmp_path, "list")
    assert done.returncode == code
    assert done.stderr.count("\n") == 1
    assert "secret" not in done.stdout + done.stderr

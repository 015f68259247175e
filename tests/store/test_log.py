"""The engine's log: stable event names, fields, and never any content."""

import errno
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from store import log
from store.errors import StorageFailed
from store.model import NewMemory, Query
from store.sqlite.connection import Connection
from store.sqlite.database import Database
from store.sqlite.engine import open_engine
from tests.support.real_ranking import real_ranking, small_graphs

pytestmark = pytest.mark.anyio

SECRET = "xylophone"


def named(events: list[Any], name: str) -> list[Any]:
    return [event for event in events if event["event"] == name]


async def test_the_life_of_an_index_is_logged_without_content(tmp_path: Path) -> None:
    with small_graphs(), capture_logs() as events:
        for _ in range(2):
            async with open_engine(tmp_path / "data", ranking=real_ranking) as engine:
                new = [NewMemory(text=f"{SECRET} number {n}") for n in range(40)]
                puts = await engine.put_many("a bank", new)
                await engine.settle("a bank")
                await engine.search(Query(bank="a bank", text=f"{SECRET} number 7"))
                await engine.back_up("a bank")
                bank = (await engine.bank("a bank")).id
        async with open_engine(tmp_path / "data", ranking=real_ranking) as engine:
            await engine.erase("a bank", [puts[0].id])
            await engine.repair("a bank")

    for name in ("index.built", "snapshot.written", "snapshot.loaded", "model.adopted"):
        assert named(events, name)[0]["bank"] == bank, name
    assert named(events, "index.built")[0]["vectors"] == 40
    assert named(events, "backup.made")[0]["items"] == 40
    assert named(events, "erase.finished")[0]["copies_removed"] >= 2
    assert named(events, "bank.repaired")[0]["problems_left"] == 0
    assert SECRET not in str(events) and "a bank" not in str(events)


async def test_a_broken_snapshot_is_logged_with_its_reason(tmp_path: Path) -> None:
    with small_graphs(), capture_logs() as events:
        async with open_engine(tmp_path / "data", ranking=real_ranking) as engine:
            await engine.put_many("w", [NewMemory(text=f"memory {n}") for n in range(40)])
            await engine.settle("w")
        (snapshot,) = (tmp_path / "data" / "banks").glob("*/vectors.snapshot")
        snapshot.write_bytes(b"no snapshot at all" * 100)
        async with open_engine(tmp_path / "data", ranking=real_ranking) as engine:
            await engine.search(Query(bank="w", text="memory 7"))

    (event,) = named(events, "snapshot.quarantined")
    assert (event["log_level"], event["reason"]) == ("warning", "not a snapshot")


async def test_a_series_of_equal_failures_is_logged_once_and_its_end_too(tmp_path: Path) -> None:
    database = await Database.open(tmp_path / "bank.db")

    def fail(connection: Connection) -> None:
        connection.execute("SELECT * FROM nothing")

    def write(connection: Connection) -> None:
        connection.execute("CREATE TABLE notes (text TEXT)")
        connection.execute("INSERT INTO notes VALUES ('x')")

    with capture_logs() as events:
        for _ in range(3):
            with pytest.raises(StorageFailed):
                await database.write(fail)
        await database.write(write)
    await database.close()

    assert [event["event"] for event in events] == ["storage.failed", "storage.recovered"]
    assert (events[0]["error"], events[0]["file"]) == ("StorageFailed", "bank.db")


async def test_a_slow_read_is_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("store.sqlite.database.SLOW_SECONDS", -1.0)
    database = await Database.open(tmp_path / "bank.db")
    with capture_logs() as events:
        await database.read(lambda connection: None)
    await database.close()

    (event,) = named(events, "storage.read.slow")
    assert event["ms"] >= 0


async def test_a_snapshot_that_cannot_be_written_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("store.vectors.cache.write_snapshot", refuse)
    with small_graphs(), capture_logs() as events:
        async with open_engine(tmp_path / "data", ranking=real_ranking) as engine:
            await engine.put_many("w", [NewMemory(text=f"memory {n}") for n in range(40)])
            await engine.settle("w")

    assert named(events, "snapshot.failed")[0]["error"] == "ENOSPC"


def test_nothing_is_printed_before_structlog_is_configured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("structlog.is_configured", lambda: False)
    log.info("index.built")
    log.warning("storage.failed")

    assert capsys.readouterr().out == ""

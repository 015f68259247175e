"""The writer, the readers and the shared commit."""

import asyncio
import os
import sqlite3
import stat
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from store.errors import (
    NotFound,
    StorageBusy,
    StorageClosed,
    StorageDamaged,
    StorageFailed,
    StorageForeign,
    StorageFull,
    StorageReadOnly,
    StorageReplaced,
)
from store.sqlite.database import Connection, Database
from store.sqlite.storage_errors import storage_error

pytestmark = pytest.mark.anyio


def create(connection: Connection) -> None:
    connection.execute("CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY, text TEXT)")


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    database = await Database.open(tmp_path / "test.db", prepare=create)
    yield database
    await database.close()


def insert(id: int, text: str = "") -> "Insert":
    return Insert(id, text)


class Insert:
    """A unit of work that counts how often it ran."""

    def __init__(self, id: int, text: str) -> None:
        self.id = id
        self.text = text
        self.runs = 0

    def __call__(self, connection: Connection) -> int:
        self.runs += 1
        connection.execute("INSERT INTO notes VALUES (?, ?)", (self.id, self.text))
        return self.id


def ids(connection: Connection) -> list[int]:
    return [id for (id,) in connection.execute("SELECT id FROM notes ORDER BY id")]


def refuse(connection: Connection) -> None:
    connection.execute("INSERT INTO notes VALUES (999, 'half')")
    raise NotFound("memory", "m1")


async def test_a_committed_write_is_visible_to_another_connection(database: Database) -> None:
    assert await database.write(insert(1, "one")) == 1

    stranger = sqlite3.connect(f"file:{database.path}?mode=ro", uri=True)
    assert stranger.execute("SELECT * FROM notes").fetchall() == [(1, "one")]
    stranger.close()


async def test_failed_work_leaves_nothing_and_raises_its_own_error(database: Database) -> None:
    with pytest.raises(NotFound):
        await database.write(refuse)

    assert await database.read(ids) == []


async def test_in_a_group_only_the_failed_unit_raises(database: Database) -> None:
    outcomes: list[object] = []

    async def write(work: Insert | None) -> None:
        try:
            outcomes.append(await database.write(work or refuse))
        except NotFound as error:
            outcomes.append(error.id)

    async with anyio.create_task_group() as callers:
        for id in range(5):
            callers.start_soon(write, insert(id))
        callers.start_soon(write, None)
        for id in range(5, 10):
            callers.start_soon(write, insert(id))

    assert sorted(map(str, outcomes)) == sorted([*map(str, range(10)), "m1"])
    assert await database.read(ids) == list(range(10))


async def test_callers_that_come_together_or_wait_share_a_commit(database: Database) -> None:
    commits = 0
    may_go_on = threading.Event()

    def count(statement: str) -> None:
        nonlocal commits
        commits += statement == "COMMIT"

    def slow(connection: Connection) -> None:
        assert may_go_on.wait(10)

    await database.maintain(lambda connection: connection.set_trace_callback(count))
    async with anyio.create_task_group() as callers:
        for id in range(100):
            callers.start_soon(database.write, insert(id))
    assert commits == 1, "they came in one turn of the loop"

    async with anyio.create_task_group() as callers:
        callers.start_soon(database.write, slow)
        await anyio.wait_all_tasks_blocked()
        for id in range(100, 200):
            callers.start_soon(database.write, insert(id))
        await anyio.wait_all_tasks_blocked()
        may_go_on.set()
    assert commits == 3, "the slow one's, and one for those that came meanwhile"
    assert await database.read(ids) == list(range(200))


async def test_a_cancelled_caller_leaves_all_or_nothing_and_the_next_is_served(
    database: Database,
) -> None:
    for id in range(20):
        with anyio.move_on_after(0):
            await database.write(insert(id, "whole"))
    await database.write(insert(100))

    assert await database.read(ids) == [*range(20), 100]


async def test_a_task_cancelled_natively_leaves_no_half_transaction(database: Database) -> None:
    started = threading.Event()
    go_on = threading.Event()

    def slow(connection: Connection) -> None:
        connection.execute("INSERT INTO notes VALUES (1, 'first half')")
        started.set()
        go_on.wait()
        connection.execute("INSERT INTO notes VALUES (2, 'second half')")

    task = asyncio.ensure_future(database.write(slow))
    await anyio.to_thread.run_sync(started.wait)
    follower = asyncio.ensure_future(database.write(insert(3)))
    task.cancel()
    await anyio.lowlevel.checkpoint()
    assert not task.done()  # it waits for the outcome, which is a matter of milliseconds
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task  # and does not insist when it is told twice
    go_on.set()

    assert await follower == 3
    assert await database.read(ids) == [1, 2, 3]


async def test_a_reader_sees_one_state_while_others_write(database: Database) -> None:
    await database.write(insert(1))
    looked = threading.Event()
    go_on = threading.Event()

    def look_twice(connection: Connection) -> tuple[list[int], list[int]]:
        first = ids(connection)
        looked.set()
        go_on.wait()
        return first, ids(connection)

    async def write() -> None:
        await anyio.to_thread.run_sync(looked.wait)
        await database.write(insert(2))
        go_on.set()

    async with anyio.create_task_group() as group:
        group.start_soon(write)
        seen = await database.read(look_twice)

    assert seen == ([1], [1])
    assert await database.read(ids) == [1, 2]


async def test_a_reader_cannot_write(database: Database) -> None:
    with pytest.raises(StorageReadOnly):
        await database.read(insert(1))


async def test_a_database_at_rest_holds_fewer_files_and_reads_again(database: Database) -> None:
    await database.write(insert(1))
    await database.read(ids)
    descriptors = Path("/proc/self/fd")
    busy = len(list(descriptors.iterdir()))

    await database.rest()

    assert len(list(descriptors.iterdir())) < busy
    assert await database.read(ids) == [1]


async def test_a_checkpoint_says_when_a_reader_is_in_its_way(database: Database) -> None:
    await database.write(insert(1))
    stranger = sqlite3.connect(f"file:{database.path}?mode=ro", uri=True, isolation_level=None)
    stranger.execute("BEGIN")
    stranger.execute("SELECT count(*) FROM notes").fetchone()
    await database.maintain(lambda connection: connection.execute("PRAGMA busy_timeout = 20"))
    await database.write(insert(2))

    assert not await database.checkpoint()

    stranger.close()
    assert await database.checkpoint()
    assert database.path.with_name("test.db-wal").stat().st_size == 0


async def test_files_are_for_their_owner_only(database: Database) -> None:
    await database.write(insert(1))

    for file in database.path.parent.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file.name


async def test_every_durability_setting_holds(database: Database) -> None:
    def settings(connection: Connection) -> dict[str, object]:
        names = ("journal_mode", "synchronous", "foreign_keys", "trusted_schema", "secure_delete")
        return {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names}

    assert await database.maintain(settings) == {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "trusted_schema": 0,
        "secure_delete": 1,
    }


async def test_a_closed_database_says_so(database: Database) -> None:
    await database.close()

    with pytest.raises(StorageClosed):
        await database.write(insert(1))
    with pytest.raises(StorageClosed):
        await database.read(ids)


async def test_closing_waits_for_accepted_writes(tmp_path: Path) -> None:
    database = await Database.open(tmp_path / "test.db", prepare=create)
    async with anyio.create_task_group() as callers:
        for id in range(50):
            callers.start_soon(database.write, insert(id))
        await anyio.lowlevel.checkpoint()
        await database.close()

    again = await Database.open(tmp_path / "test.db")
    assert await again.read(ids) == list(range(50))
    await again.close()


async def test_a_foreign_database_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "test.db"
    theirs = sqlite3.connect(path)
    theirs.execute("PRAGMA application_id = 12345")
    theirs.execute("CREATE TABLE theirs (a)")
    theirs.close()
    before = path.read_bytes()

    with pytest.raises(StorageForeign):
        await Database.open(path, prepare=create)

    assert path.read_bytes() == before


async def test_a_file_that_is_no_database_is_reported_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "test.db"
    path.write_bytes(b"not a database at all" * 100)

    with pytest.raises(StorageDamaged):
        await Database.open(path, prepare=create)

    assert path.read_bytes() == b"not a database at all" * 100


async def test_writing_stops_when_the_file_was_replaced_under_us(database: Database) -> None:
    await database.write(insert(1))
    database.path.rename(database.path.with_name("moved.db"))

    with pytest.raises(StorageReplaced):
        await database.write(insert(2))


async def test_a_forked_child_is_refused(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getpid", lambda: 1)

    with pytest.raises(StorageClosed):
        await database.write(insert(1))


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (sqlite3.SQLITE_FULL, StorageFull),
        (sqlite3.SQLITE_READONLY_DBMOVED, StorageReadOnly),
        (sqlite3.SQLITE_IOERR_FSYNC, StorageFailed),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, StorageBusy),
        (sqlite3.SQLITE_CORRUPT_VTAB, StorageDamaged),
        (sqlite3.SQLITE_ERROR, StorageFailed),
    ],
)
def test_each_failure_of_the_database_has_our_own_name(code: int, kind: type[Exception]) -> None:
    error = sqlite3.OperationalError("SELECT secret FROM somewhere")
    error.sqlite_errorcode = code

    failure = storage_error(error)

    assert type(failure) is kind
    assert "SELECT" not in str(failure)

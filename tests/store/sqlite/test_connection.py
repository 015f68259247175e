"""Connections: aiosqlite's thread, whole functions in one hop."""

import asyncio
import gc
import inspect
import queue
import sqlite3
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import aiosqlite
import anyio
import pytest

from store.sqlite import connection as connections
from store.sqlite.connection import (
    Connection,
    ThreadConnection,
    copy_database,
    run_on_file,
    writer_connection,
)

pytestmark = pytest.mark.anyio

STORE = Path(connections.__file__).parents[1]


class Text(str):
    """A string that can be referred to weakly."""

    __slots__ = ("__weakref__",)


async def test_the_protected_members_of_aiosqlite_are_as_the_subclass_expects() -> None:
    plain = aiosqlite.Connection(lambda: sqlite3.connect(":memory:"), 64)

    assert isinstance(plain._tx, queue.SimpleQueue)
    assert isinstance(plain._thread, threading.Thread) and plain._thread.ident is None
    assert plain._running is True
    assert plain._connection is None
    assert list(inspect.signature(aiosqlite.Connection.__init__).parameters)[1:3] == [
        "connector",
        "iter_chunk_size",
    ]
    await plain
    # A task is a pair; without a future, the thread reports the outcome to nobody.
    ran = threading.Event()
    plain._tx.put_nowait((None, ran.set))
    assert await anyio.to_thread.run_sync(ran.wait, 10)
    plain._tx.put_nowait((None, lambda: 1 // 0))
    assert plain._connection is not None
    stopped = plain.stop()
    assert isinstance(stopped, asyncio.Future) and plain._running is False
    await stopped
    plain._thread.join(10)
    assert not plain._thread.is_alive()


async def test_functions_run_on_the_thread_of_the_connection_in_order(tmp_path: Path) -> None:
    opened = writer_connection(tmp_path / "one.db")
    seen: list[tuple[int, str]] = []

    def step(number: int) -> None:
        opened.connected().execute("SELECT 1")
        seen.append((number, threading.current_thread().name))

    async with anyio.create_task_group() as group:
        for number in range(5):
            group.start_soon(opened.run, lambda number=number: step(number))
    await opened.close()

    assert seen == [(number, "store-writer") for number in range(5)]


async def test_the_interface_of_aiosqlite_works_on_the_same_connection(tmp_path: Path) -> None:
    opened = writer_connection(tmp_path / "one.db")
    await opened.run(opened.connected)

    assert [tuple(row) for row in await opened.execute_fetchall("SELECT 1")] == [(1,)]

    await opened.close()


async def test_a_closed_connection_refuses_functions_and_its_thread_has_ended(
    tmp_path: Path,
) -> None:
    opened = writer_connection(tmp_path / "one.db")
    await opened.run(opened.connected)
    await opened.close()
    await opened.close()

    with pytest.raises(RuntimeError, match="closed"):
        await opened.run(opened.connected)
    opened._thread.join(10)
    assert not opened._thread.is_alive()


async def test_a_connection_that_was_never_used_closes(tmp_path: Path) -> None:
    opened = writer_connection(tmp_path / "one.db")
    with anyio.fail_after(5):
        await opened.close()
    assert not (tmp_path / "one.db").exists()


async def test_the_thread_ends_even_if_the_file_cannot_be_closed(tmp_path: Path) -> None:
    class Stubborn(Connection):
        def close(self) -> None:
            raise sqlite3.OperationalError("disk I/O error")

    opened = ThreadConnection(
        lambda: sqlite3.connect(tmp_path / "one.db", factory=Stubborn), name="stubborn"
    )
    await opened.run(opened.connected)
    with anyio.fail_after(5):
        await opened.close()

    opened._thread.join(10)
    assert not opened._thread.is_alive()


async def test_an_idle_thread_keeps_neither_the_function_nor_its_result(tmp_path: Path) -> None:
    opened = writer_connection(tmp_path / "one.db")
    text, answer = Text("a memory"), Text("an answer")
    alive = [weakref.ref(text), weakref.ref(answer)]
    results = [answer]

    def function(argument: Text = text) -> Text:
        return results.pop()

    del text, answer
    assert await opened.run(function) == "an answer"
    del function
    await opened.run(lambda: None)
    gc.collect()

    assert [reference() for reference in alive] == [None, None]
    await opened.close()


async def test_a_cancelled_caller_waits_until_the_function_has_ended(tmp_path: Path) -> None:
    opened = writer_connection(tmp_path / "one.db")
    started, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    def function() -> None:
        started.set()
        go_on.wait(10)
        ended.set()

    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(opened.run, function)
            await anyio.to_thread.run_sync(started.wait, 10)
            scope.cancel()
            go_on.set()

    assert ended.is_set()
    await opened.close()


def test_an_event_loop_that_closes_before_the_answer_does_not_disturb_the_thread(
    tmp_path: Path,
) -> None:
    opened = writer_connection(tmp_path / "one.db")
    go_on = threading.Event()

    async def leave() -> None:
        opened.post(lambda: go_on.wait(10), lambda _result, _error: None)

    asyncio.run(leave())
    go_on.set()

    assert opened.run_blocking(lambda: 7) == 7
    opened.close_blocking()


def test_a_connection_that_was_never_closed_does_not_keep_the_process_from_exiting(
    tmp_path: Path,
) -> None:
    program = f"""
import asyncio, pathlib
from store.sqlite.database import Database
async def main():
    database = await Database.open(pathlib.Path({str(tmp_path / "one.db")!r}))
    await database.read(lambda connection: connection.execute("SELECT 1").fetchone())
asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", program], timeout=30, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_copy_holds_the_whole_database_in_one_file(tmp_path: Path) -> None:
    def fill(connection: Connection) -> None:
        connection.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY)")
        connection.execute("INSERT INTO notes VALUES (1), (2)")

    (tmp_path / "one.db").touch()
    run_on_file(tmp_path / "one.db", fill, writable=True)
    run_on_file(tmp_path / "one.db", lambda source: copy_database(source, tmp_path / "two.db"))

    rows = run_on_file(
        tmp_path / "two.db", lambda copy: copy.execute("SELECT id FROM notes").fetchall()
    )
    assert rows == [(1,), (2,)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.db", "two.db"]


def test_only_one_module_of_the_engine_opens_database_files() -> None:
    opening = [
        path.name
        for path in STORE.rglob("*.py")
        if "sqlite3.connect(" in path.read_text() or "aiosqlite.connect(" in path.read_text()
    ]
    assert opening == ["connection.py"]

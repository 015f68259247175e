"""SQLite connections: each belongs to an `aiosqlite.Connection` and lives on that object's thread.

This is the only module that opens a database file. aiosqlite provides the connection, its thread
and its queue. `ThreadConnection` adds one ability: it runs a whole function on the thread in a
single hop. aiosqlite itself hops once per statement, and cancelling such an await does not stop
the statement. A transaction that is spread over awaits can therefore be cut in half by a cancelled
caller, and the half is committed with the next transaction. A function cannot be cut.

The threads are daemon threads. A database file recovers from a killed process, and a connection
that was never closed must not keep the process from exiting.
"""

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final, TypeVar, cast

import aiosqlite
import anyio

from store.errors import StorageDamaged, StorageForeign
from store.files import create_private, sync_directory
from store.hop import Done, Hop, Outcome
from store.sqlite.dialect import DIALECT
from store.sqlite.words import Words

T = TypeVar("T")


class Connection(sqlite3.Connection):
    """Implements `store.database.Connection`."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.words: Final = Words(self)
        self.dialect: Final = DIALECT

    def stored_bytes(self) -> int:
        """The size of the database without its free pages."""
        pages, free, size = (
            int(self.execute(f"PRAGMA {name}").fetchone()[0])
            for name in ("page_count", "freelist_count", "page_size")
        )
        return (pages - free) * size


Work = Callable[[Connection], T]
_Task = tuple[None, Callable[[], None]]

READER_CACHE_KB: Final = 8_000  # a search in 10,000 items touches more than the default of 2 MB
BUSY_MILLISECONDS: Final = 5_000
APPLICATION_ID: Final = 0x7265636C  # "recl", in the file header: the database belongs to recalld

_MAGIC: Final = b"SQLite format 3\x00"
_ROWS_PER_FETCH: Final = 64  # aiosqlite's default; its own cursors are not used here


class ThreadConnection(aiosqlite.Connection):
    """An aiosqlite connection that runs functions on its thread, in order, one hop each.

    The file is opened by the first function that calls `connected`. After an error the same
    object can close the file and open it again (`disconnect`), on the same thread and queue.
    """

    def __init__(self, connector: Callable[[], Connection], *, name: str) -> None:
        super().__init__(connector, _ROWS_PER_FETCH)
        self._thread.daemon = True
        self._thread.name = name
        # aiosqlite does not say of which type its futures are; the tasks here have none.
        self._tasks = cast("SimpleQueue[_Task]", self._tx)  # pyright: ignore[reportUnknownMemberType]

    # --- called on the event loop ---------------------------------------------------------

    def post(self, function: Callable[[], Any], done: Done) -> None:
        """Run `function` on the thread, then call `done` with its outcome on the event loop."""
        self._queue(Hop(asyncio.get_running_loop(), function, done))

    async def run(self, function: Callable[[], T]) -> T:
        """Run `function` on the thread and return its result.

        A cancelled caller still waits until the function has ended, because the thread cannot be
        interrupted and the caller may use the files next.
        """
        outcome = Outcome[T]()
        self.post(function, outcome.finish)
        return await outcome.wait()

    def stop(self) -> "asyncio.Future[Any] | None":
        """Close the file and end the thread, after the functions queued before."""
        if self._thread.ident is None:
            self._running = False
            return None
        # aiosqlite's thread never ends if closing the file fails, so close it beforehand.
        self._tasks.put_nowait((None, self.disconnect))
        stopped = super().stop()  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        return cast("asyncio.Future[Any] | None", stopped)

    async def close(self) -> None:
        """Close the file and wait until the thread has nothing left to do."""
        if self._running:
            stopped = self.stop()
            if stopped is not None:
                with anyio.CancelScope(shield=True):
                    await stopped

    # --- called on the connection's thread ------------------------------------------------

    def connected(self) -> Connection:
        """The SQLite connection, opened if it is not."""
        if self._connection is None:
            self._connection = self._connector()
        return cast("Connection", self._connection)

    @property
    def is_connected(self) -> bool:
        return self._connection is not None

    def disconnect(self) -> None:
        """Close the file; `connected` opens it again.

        Closing folds the write-ahead log into the file. If that fails the log stays, and the next
        process or connection applies it.
        """
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()

    # --- called on another thread, never on the event loop --------------------------------

    def run_blocking(self, function: Callable[[], T]) -> T:
        """Run `function` on the thread and block the calling thread until it has ended."""
        future: Future[T] = Future()

        def run() -> None:
            try:
                future.set_result(function())
            except BaseException as error:  # noqa: BLE001  (raised again by `future.result`)
                future.set_exception(error)

        self._queue(run)
        return future.result()

    def close_blocking(self) -> None:
        """Close the file, blocking the calling thread until it is closed, and end the thread."""

        def close() -> None:
            self.disconnect()
            self.stop()  # on its own thread, where aiosqlite finds no event loop to report to

        self.run_blocking(close)

    def _queue(self, task: Callable[[], None]) -> None:
        if not self._running:
            raise RuntimeError("the connection was closed, so the function would never run")
        if self._thread.ident is None:
            self._thread.start()
        self._tasks.put_nowait((None, task))


# --- opening files ------------------------------------------------------------------------------


def writer_connection(path: Path) -> ThreadConnection:
    """The connection that writes to a database of this installation; creates the file."""
    return ThreadConnection(partial(_open_writer, path), name="store-writer")


def reader_connection(path: Path) -> ThreadConnection:
    """A connection that cannot write."""
    return ThreadConnection(partial(_open_reader, path), name="store-reader")


def _copy_connection(path: Path, mode: str) -> ThreadConnection:
    return ThreadConnection(partial(_connect, path, mode), name="store-copy")


def run_on_file(path: Path, work: Work[T], *, writable: bool = False) -> T:
    """Open a database file that no `Database` has open, run `work` on it, and close it.

    For backups and copies. Blocks the calling thread, so it must not be called on the event loop.
    """
    opened = _copy_connection(path, "rw" if writable else "ro")
    try:
        return opened.run_blocking(lambda: work(opened.connected()))
    finally:
        opened.close_blocking()


def copy_database(
    connection: Connection,
    target: Path,
    *,
    pages: int = 1_024,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Copy the whole database of a connection into a new private file, without a log beside it.

    Called on the thread of `connection`, as `aiosqlite.Connection.backup` does. `progress` gets the
    copied pages and their total.
    """

    def report(_status: int, left: int, total: int) -> None:
        if progress is not None:
            progress(total - left, total)

    target.unlink(missing_ok=True)
    create_private(target)
    copy = _copy_connection(target, "rw")
    try:
        connection.backup(copy.run_blocking(copy.connected), pages=pages, progress=report)
        copy.run_blocking(lambda: copy.connected().execute("PRAGMA journal_mode = DELETE"))
    finally:
        copy.close_blocking()


def checkpoint(connection: Connection) -> bool:
    """Move the write-ahead log into the file and truncate it. False if a reader prevented it."""
    busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return not busy


def roll_back(connection: Connection) -> None:
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def _open_writer(path: Path) -> Connection:
    if create_private(path):
        sync_directory(path.parent)
    _refuse_foreign(path)
    connection = _connect(path, "rw")
    try:
        if connection.execute("PRAGMA application_id").fetchone() == (0,):
            # The file is empty. The id is written before WAL is switched on, so that it is in the
            # file itself from the start.
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("PRAGMA journal_size_limit = 16777216")
    except BaseException:
        with suppress(sqlite3.Error):
            connection.close()
        raise
    return connection


def _open_reader(path: Path) -> Connection:
    connection = _connect(path, "ro")
    connection.execute("PRAGMA query_only = ON")
    connection.execute(f"PRAGMA cache_size = -{READER_CACHE_KB}")
    return connection


def _connect(path: Path, mode: str) -> Connection:
    connection = sqlite3.connect(
        f"{path.resolve().as_uri()}?mode={mode}",
        uri=True,
        isolation_level=None,
        timeout=BUSY_MILLISECONDS / 1000,
        check_same_thread=False,  # a copy is filled from another connection's thread
        factory=Connection,
    )
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    connection.execute("PRAGMA mmap_size = 0")
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.create_function("casefold", 1, str.casefold, deterministic=True)
    return connection


def _refuse_foreign(path: Path) -> None:
    """Raise unless an existing file is empty or its header says that it belongs to recalld.

    A file without any mark is refused as well: every file that recalld writes has one.
    """
    with path.open("rb") as file:
        header = file.read(100)
    if not header:
        return
    if len(header) < 100 or not header.startswith(_MAGIC):
        raise StorageDamaged("the database file does not start like a database")
    if int.from_bytes(header[68:72], "big") != APPLICATION_ID:
        raise StorageForeign("the file in the database's place belongs to another program")

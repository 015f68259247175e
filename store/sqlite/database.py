"""One SQLite file with one writer, a few readers and group commit.

A unit of work is a plain function that takes a connection. It runs from its first statement to
its last on the connection's own thread, in one hop and inside one transaction. There is no await
between BEGIN and COMMIT, so a cancelled caller cannot leave half a transaction for the next caller
to commit (`connection.py`).

Group commit: an fsync costs far more than the statements before it. While one commit is being
written to the disk, new units of work queue up, and the next transaction runs all of them. The
first one waits for the end of the event loop's current iteration, so that callers which were
answered together write together again (with 64 concurrent callers this gives a quarter more puts
per second; a single caller loses nothing). No caller gets its result before the COMMIT that
contains its work has returned. If one unit of a group fails, the group is rolled back and runs
again with a savepoint around each unit, so that only the failed unit raises. **A unit of work may
therefore run twice**: it must have no effect except through its connection and its return value.
"""

import asyncio
import os
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import anyio

from store import log
from store.errors import StorageClosed, StorageDamaged, StorageFull, StorageReplaced, StoreError
from store.files import file_error
from store.hop import Outcome
from store.sqlite.connection import (
    Connection,
    Work,
    checkpoint,
    reader_connection,
    roll_back,
    writer_connection,
)
from store.sqlite.storage_errors import BROKEN, MISREAD, SUSPECT, storage_error

T = TypeVar("T")

GROUP_LIMIT: Final = 256
READERS: Final = 2
READ_SECONDS: Final = 5.0
SLOW_SECONDS: Final = 1.0  # a read or a commit that takes longer is logged

DAMAGED: Final = "the database file is damaged"

_PROGRESS_STEPS: Final = 20_000  # virtual machine steps between two checks of the deadline


class Database:
    """A database file that only this process uses. Created by `Database.open`, ended by `close`."""

    def __init__(self, path: Path, *, readers: int = READERS) -> None:
        self.path = path
        self._pid = os.getpid()
        self._inode: tuple[int, int] | None = None
        self._writer = writer_connection(path)
        self._queued: deque[_UnitOfWork[Any]] = deque()
        self._committing = False
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._readers: list[_Reader] = []
        self._idle: list[_Reader] = []
        self._reading = anyio.Semaphore(readers)
        self._closed = False
        self._failure: str | None = None
        #: True while the last transaction that changed anything failed for lack of space.
        self.is_full = False

    @classmethod
    async def open(
        cls, path: Path, *, prepare: Work[None] | None = None, readers: int = READERS
    ) -> "Database":
        """Open or create the file, and run `prepare` (migrations) before anything else uses it."""
        database = cls(path, readers=readers)
        try:
            await database._writer.run(partial(database._connect, prepare))
        except BaseException:
            with anyio.CancelScope(shield=True):
                await database.close()
            raise
        return database

    async def write(self, work: Work[T], *, then: Callable[[], None] | None = None) -> T:
        """Run `work` in a transaction and return after its COMMIT; all of it is written or nothing.

        A cancelled caller still waits for the outcome (a few milliseconds), because the thread
        finishes in any case. `then` updates state in memory that mirrors the data. It is called
        once, on the event loop, after the COMMIT and before any caller continues, so that no
        cancellation can come between the two.
        """
        self._refuse_if_unusable()
        unit = _UnitOfWork(work, then)
        self._queued.append(unit)
        if not self._committing:
            # At the end of this iteration of the loop, so that other writers can join the group.
            self._committing = True
            self._quiet.clear()
            asyncio.get_running_loop().call_soon(self._commit_next)
        return await unit.outcome.wait()

    async def read(self, work: Work[T], *, seconds: float = READ_SECONDS) -> T:
        """Run `work` on a read-only connection; all its statements see one state of the data.

        The time is bounded, because the write-ahead log cannot be truncated during a read.
        """
        self._refuse_if_unusable()
        async with self._reading:
            self._refuse_if_unusable()
            reader = self._idle.pop() if self._idle else self._new_reader()
            try:
                return await reader.run(work, seconds)
            finally:
                self._idle.append(reader)

    async def rest(self) -> None:
        """Close the idle readers to free their file descriptors; the next read opens one again."""
        with anyio.CancelScope(shield=True):
            while self._idle:
                reader = self._idle.pop()
                self._readers.remove(reader)
                await reader.close()

    async def maintain(self, work: Work[T]) -> T:
        """Run `work` on the writer's connection, outside a transaction and with no other writer.

        For operations that SQLite refuses inside a transaction: checkpoint, VACUUM, backup.
        """
        self._refuse_if_unusable()
        return await self._writer.run(partial(self._run_alone, work))

    async def checkpoint(self) -> bool:
        """Move the log into the file and truncate it. False if a reader prevented it."""
        return await self.maintain(checkpoint)

    async def close(self) -> None:
        """Finish the accepted work, fold the log into the file and end all threads."""
        if self._closed:
            return
        self._closed = True
        with anyio.CancelScope(shield=True):
            await self._quiet.wait()
            for reader in self._readers:
                await reader.close()
            self._readers.clear()
            self._idle.clear()
            await self._writer.close()

    # --- group commit ---------------------------------------------------------------------

    def _commit_next(self) -> None:
        """Send the next group to the writer's thread; called on the event loop."""
        group = [self._queued.popleft() for _ in range(min(len(self._queued), GROUP_LIMIT))]
        self._committing = bool(group)
        if not group:
            self._quiet.set()
            return
        self._writer.post(partial(self._commit, group), partial(self._finish, group))

    def _finish(
        self, group: "list[_UnitOfWork[Any]]", _: None, failure: BaseException | None
    ) -> None:
        for unit in group:
            if unit.then is not None and failure is None and unit.error is None:
                unit.then()
            unit.outcome.finish(unit.result, failure or unit.error)
        self._commit_next()

    def _commit(self, group: "list[_UnitOfWork[Any]]") -> None:
        """Run a group in one transaction; on the writer's thread."""
        began = time.monotonic()
        try:
            connection = self._writable()
            try:
                before = connection.total_changes
                connection.execute("BEGIN IMMEDIATE")
                for unit in group:
                    unit.result = unit.work(connection)
                connection.execute("COMMIT")
                if connection.total_changes != before:  # an empty transaction needs no space
                    self.is_full = False
                    self._note_failure(None)
            except Exception as error:
                roll_back(connection)
                if isinstance(error, BROKEN) and isinstance(storage_error(error), SUSPECT):
                    raise
                if len(group) == 1:
                    raise
                self._commit_each(connection, group)
                self.is_full = any(isinstance(unit.error, StorageFull) for unit in group)
        except BROKEN as error:
            failure = self._failed(error)
            self.is_full = self.is_full or isinstance(failure, StorageFull)
            raise failure from error
        except MISREAD as error:
            if self._writer.is_connected and is_damaged(self._writer.connected()):
                raise self._failed(StorageDamaged(DAMAGED)) from error
            raise
        except StorageFull:  # the full disk cost us the connection, and it cannot be reopened
            self.is_full = True
            raise
        finally:
            self._log_if_slow("storage.write.slow", began, units=len(group))

    def _commit_each(self, connection: Connection, group: "list[_UnitOfWork[Any]]") -> None:
        """Run a group in one transaction, with a savepoint around each unit of work."""
        connection.execute("BEGIN IMMEDIATE")
        try:
            for unit in group:
                connection.execute("SAVEPOINT unit")
                try:
                    unit.result = unit.work(connection)
                except Exception as error:
                    if not connection.in_transaction:
                        raise  # SQLite itself has rolled back the whole transaction
                    connection.execute("ROLLBACK TO unit")
                    unit.error = storage_error(error) if isinstance(error, BROKEN) else error
                connection.execute("RELEASE unit")
            connection.execute("COMMIT")
        except BaseException:
            roll_back(connection)
            raise

    # --- the writer's connection, on its thread -------------------------------------------

    def _run_alone(self, work: Work[T]) -> T:
        try:
            return work(self._writable())
        except BROKEN as error:
            raise self._failed(error) from error
        except MISREAD as error:
            if self._writer.is_connected and is_damaged(self._writer.connected()):
                raise self._failed(StorageDamaged(DAMAGED)) from error
            raise

    def _writable(self) -> Connection:
        """The writer's connection, opened again if an error has closed it."""
        if not self._writer.is_connected:
            self._connect(None)
        if _inode(self.path) != self._inode:
            raise StorageReplaced("the database file was deleted or replaced while in use")
        return self._writer.connected()

    def _connect(self, prepare: Work[None] | None) -> None:
        """Open the file. If it was open before, first verify that it is the same and intact."""
        if self._inode is not None and _inode(self.path) != self._inode:
            raise StorageReplaced("the database file was deleted or replaced while in use")
        is_reopened = self._inode is not None
        try:
            connection = self._writer.connected()
        except BROKEN as error:
            raise self._failed(error) from error
        except OSError as error:
            raise file_error(error) from error
        self._inode = _inode(self.path)
        try:
            if is_reopened and connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
                raise StorageDamaged(DAMAGED)
            if prepare is not None:
                prepare(connection)
        except BROKEN as error:
            self._writer.disconnect()
            raise self._failed(error) from error
        except BaseException:
            self._writer.disconnect()
            raise

    def _failed(self, error: Exception) -> StoreError:
        """The engine's error for an error of SQLite; closes a connection that cannot be trusted."""
        failure = error if isinstance(error, StoreError) else storage_error(error, self.path.parent)
        if isinstance(failure, SUSPECT):
            self._writer.disconnect()
        self._note_failure(failure)
        return failure

    def _note_failure(self, failure: StoreError | None) -> None:
        """Log the first of a series of equal failures, and the first success after them."""
        kind = None if failure is None else type(failure).__name__
        if kind == self._failure:
            return
        self._failure = kind
        if failure is None:
            log.info("storage.recovered", **self._where())
        else:
            log.warning("storage.failed", error=kind, reason=str(failure), **self._where())

    def _log_if_slow(self, event: str, began: float, **fields: object) -> None:
        seconds = time.monotonic() - began
        if seconds > SLOW_SECONDS:
            log.warning(event, ms=round(seconds * 1000), **fields, **self._where())

    def _where(self) -> dict[str, object]:
        """Which file this is: the directory of a bank is its random id."""
        return {"file": self.path.name, "directory": self.path.parent.name}

    # --- both -----------------------------------------------------------------------------

    def _new_reader(self) -> "_Reader":
        reader = _Reader(self.path, partial(self._log_if_slow, "storage.read.slow"))
        self._readers.append(reader)
        return reader

    def _refuse_if_unusable(self) -> None:
        if self._closed:
            raise StorageClosed("the database is closed")
        if os.getpid() != self._pid:
            raise StorageClosed("a database does not survive a fork: open it in the new process")


class _UnitOfWork(Generic[T]):
    """A function that waits for its group commit, and later its outcome."""

    __slots__ = ("error", "outcome", "result", "then", "work")

    def __init__(self, work: Work[T], then: Callable[[], None] | None) -> None:
        self.work = work
        self.then = then
        self.outcome = Outcome[T]()
        self.result: T | None = None
        self.error: Exception | None = None


class _Reader:
    """A read-only connection whose transactions have a deadline."""

    def __init__(self, path: Path, log_if_slow: Callable[[float], None]) -> None:
        self._connection = reader_connection(path)
        self._deadline = 0.0
        self._log_if_slow = log_if_slow

    async def run(self, work: Work[T], seconds: float) -> T:
        return await self._connection.run(partial(self._read, work, seconds))

    async def close(self) -> None:
        await self._connection.close()

    def _read(self, work: Work[T], seconds: float) -> T:
        began = time.monotonic()
        try:
            is_new = not self._connection.is_connected
            connection = self._connection.connected()
            if is_new:
                connection.set_progress_handler(self._is_late, _PROGRESS_STEPS)
            self._deadline = began + seconds
            connection.execute("BEGIN")
            try:
                return work(connection)
            except MISREAD as error:
                if is_damaged(connection):
                    raise StorageDamaged(DAMAGED) from error
                raise
            finally:
                roll_back(connection)
                if seconds == READ_SECONDS:  # exports and backups are slow by nature
                    self._log_if_slow(began)
        except BROKEN as error:
            failure = storage_error(error)
            if isinstance(failure, SUSPECT):
                self._connection.disconnect()
            raise failure from error

    def _is_late(self) -> int:
        return time.monotonic() > self._deadline


def is_damaged(connection: Connection) -> bool:
    """Whether the file is damaged, after code has stumbled over a value it did not expect."""
    try:
        return bool(connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",))
    except BROKEN:
        return True


def _inode(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


__all__ = ["Connection", "Database"]

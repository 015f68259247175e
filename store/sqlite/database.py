"""One SQLite file: one writer, a few readers, and a commit that many callers share.

The unit of work is a plain function that takes a connection. It runs from its first statement to
its last on the connection's own thread, in one hop, inside one transaction. There is no await
between BEGIN and COMMIT, so there is no place where a cancelled caller could leave half a
transaction behind for the next one to commit. (Cancelling the await of a statement that runs in
a thread does not stop the statement; with a transaction spread over awaits that is how half rows
become durable.)

Group commit: an fsync costs far more than the statements before it. While one commit is on its
way to the disk, the functions that arrive wait in line; the next transaction takes them all. The
first in line waits for the end of the event loop's turn, so that callers who were answered together
write together again (a quarter more puts with 64 of them, and nothing lost with one).
Nobody is answered before the COMMIT that holds their work has returned. When one of a group
fails, the group is rolled back and run again with a savepoint around each, so only the one that
failed hears of it. **A unit of work may therefore run twice**: it reads and writes through its
connection and its return value, and nothing else.

Only this module holds connections (DESIGN section 2, rule 6).
"""

import asyncio
import errno
import os
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import anyio

from store.errors import (
    StorageBusy,
    StorageClosed,
    StorageDamaged,
    StorageError,
    StorageFailed,
    StorageForeign,
    StorageFull,
    StorageReadOnly,
    StorageReplaced,
    StoreError,
)
from store.sqlite.files import create_private, sync_directory
from store.sqlite.worker import Errand, Worker

Connection = sqlite3.Connection
T = TypeVar("T")
Work = Callable[[Connection], T]

GROUP_LIMIT: Final = 256
READERS: Final = 2
READER_CACHE_KB: Final = 8_000  # a search in 10,000 items touches more than SQLite's usual 2 MB
READ_SECONDS: Final = 5.0
BUSY_MILLISECONDS: Final = 5_000
NO_SPACE_BYTES: Final = 65_536  # with less than this a disk is full: the log's index needs 32 KiB
APPLICATION_ID: Final = 0x7265636C  # "recl", in the file's header: this database is ours

_MAGIC: Final = b"SQLite format 3\x00"
_PROGRESS_STEPS: Final = 20_000  # virtual machine steps between two looks at the clock

# What SQLite's primary result codes mean to a caller of ours.
_FAILURES: Final[dict[int, tuple[type[StorageError], str]]] = {
    sqlite3.SQLITE_FULL: (StorageFull, "no space left on the disk"),
    sqlite3.SQLITE_READONLY: (StorageReadOnly, "the database may not be written"),
    sqlite3.SQLITE_CANTOPEN: (StorageReadOnly, "the database cannot be opened"),
    sqlite3.SQLITE_PERM: (StorageReadOnly, "the database may not be opened"),
    sqlite3.SQLITE_BUSY: (StorageBusy, "another process holds the database"),
    sqlite3.SQLITE_LOCKED: (StorageBusy, "another process holds the database"),
    sqlite3.SQLITE_INTERRUPT: (StorageBusy, "a read took longer than it may"),
    sqlite3.SQLITE_IOERR: (StorageFailed, "input or output failed on the disk"),
    sqlite3.SQLITE_CORRUPT: (StorageDamaged, "the database file is damaged"),
    sqlite3.SQLITE_NOTADB: (StorageDamaged, "the database file is damaged"),
}
# What the sqlite3 module raises when a file is damaged: it decodes texts, and its own messages
# (which quote a rotten schema), as strict UTF-8.
BROKEN: Final = (sqlite3.Error, UnicodeDecodeError)
# After these the connection's view of the file cannot be trusted: close it and look again.
_SUSPECT: Final = (StorageFailed, StorageDamaged, StorageReadOnly, StorageFull)


def storage_error(error: sqlite3.Error | UnicodeDecodeError) -> StorageError:
    """Our word for what SQLite reported."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    if isinstance(error, UnicodeDecodeError) or "decode to UTF-8" in str(error):
        code = sqlite3.SQLITE_CORRUPT
    known = _FAILURES.get(code & 0xFF)
    if known is None:
        return StorageFailed(f"the database refused the operation (code {code})")
    kind, message = known
    return kind(message)


class _Job(Generic[T]):
    """One unit of work on its way through a group commit."""

    __slots__ = ("errand", "error", "result", "then", "work")

    def __init__(self, work: Work[T], then: Callable[[], None] | None) -> None:
        self.work = work
        self.then = then
        self.errand = Errand[T]()
        self.result: T | None = None
        self.error: Exception | None = None


class Database:
    """A database file that is ours alone. Made by `Database.open`, ended by `close`."""

    def __init__(self, path: Path, *, readers: int = READERS) -> None:
        self.path = path
        self._pid = os.getpid()
        self._inode: tuple[int, int] | None = None
        self._writer: Connection | None = None
        self._thread = Worker("store-writer")
        self._waiting: deque[_Job[Any]] = deque()
        self._committing = False
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._readers: list[_Reader] = []
        self._idle: list[_Reader] = []
        self._reading = anyio.Semaphore(readers)
        self._closed = False
        #: The last write that had something to write found no room for it.
        self.is_full = False

    @classmethod
    async def open(
        cls, path: Path, *, prepare: Work[None] | None = None, readers: int = READERS
    ) -> "Database":
        """Open or create the file, run `prepare` (migrations) before anybody else sees it."""
        database = cls(path, readers=readers)
        try:
            await database._thread.see_through(partial(database._prepare, prepare))
        except BaseException:
            with anyio.CancelScope(shield=True):
                await database.close()
            raise
        return database

    async def write(self, work: Work[T], *, then: Callable[[], None] | None = None) -> T:
        """Run `work` in a transaction and return after its COMMIT; all of it or none of it.

        A cancelled caller still waits for the outcome (a few milliseconds): the thread will
        finish anyway, and knowing is better than guessing. What memory says of the data is
        changed in `then`: called once, on the event loop, after the COMMIT and before any answer,
        so that no cancellation comes between the two.
        """
        self._refuse_if_unusable()
        job = _Job(work, then)
        self._waiting.append(job)
        if not self._committing:
            # At the end of this turn of the loop: whoever else is about to write comes along.
            self._committing = True
            self._quiet.clear()
            asyncio.get_running_loop().call_soon(self._commit_next)
        return await job.errand.outcome()

    async def read(self, work: Work[T], *, seconds: float = READ_SECONDS) -> T:
        """Run `work` on a read-only connection; all its statements see one state of the data.

        Reads are bounded because the log cannot be cut while one of them lasts.
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
        """Let go of the readers nobody is using; the next read opens one again."""
        with anyio.CancelScope(shield=True):
            while self._idle:
                reader = self._idle.pop()
                self._readers.remove(reader)
                await reader.close()

    async def maintain(self, work: Work[T]) -> T:
        """Run `work` on the writer's connection alone and outside a transaction.

        For what SQLite will not do inside one: checkpoint, VACUUM, integrity checks, backup.
        """
        self._refuse_if_unusable()
        return await self._thread.see_through(partial(self._run_alone, work))

    async def checkpoint(self) -> bool:
        """Move the log into the file and cut it to nothing. False when a reader was in the way."""
        return await self.maintain(checkpoint)

    async def close(self) -> None:
        """Finish what was accepted, fold the log into the file, let go of every thread."""
        if self._closed:
            return
        self._closed = True
        with anyio.CancelScope(shield=True):
            await self._quiet.wait()
            for reader in self._readers:
                await reader.close()
            self._readers.clear()
            self._idle.clear()
            await self._thread.call(self._drop_writer)
            self._thread.stop()

    # --- the writer -----------------------------------------------------------------------

    def _commit_next(self) -> None:
        """Send the next group to the writer's thread; called on the event loop."""
        group = [self._waiting.popleft() for _ in range(min(len(self._waiting), GROUP_LIMIT))]
        self._committing = bool(group)
        if not group:
            self._quiet.set()
            return
        self._thread.post(partial(self._commit, group), partial(self._answer, group))

    def _answer(self, group: list[_Job[Any]], _: None, failure: BaseException | None) -> None:
        for job in group:
            if job.then is not None and failure is None and job.error is None:
                job.then()
            job.errand.finish(job.result, failure or job.error)
        self._commit_next()

    def _commit(self, group: list[_Job[Any]]) -> None:
        """On the writer's thread: one transaction for all, or one without those that failed."""
        try:
            connection = self._writable()
            try:
                before = connection.total_changes
                connection.execute("BEGIN IMMEDIATE")
                for job in group:
                    job.result = job.work(connection)
                connection.execute("COMMIT")
                if connection.total_changes != before:  # an empty transaction needs no room
                    self.is_full = False
            except Exception as error:
                _roll_back(connection)
                if isinstance(error, BROKEN) and isinstance(storage_error(error), _SUSPECT):
                    raise
                if len(group) == 1:
                    raise
                self._commit_each(connection, group)
                self.is_full = any(isinstance(job.error, StorageFull) for job in group)
        except BROKEN as error:
            failure = self._failure(error)
            self.is_full = self.is_full or isinstance(failure, StorageFull)
            if isinstance(failure, _SUSPECT):
                self._drop_writer()
            raise failure from error
        except StorageFull:  # the writer was lost to the full disk, and cannot be opened again
            self.is_full = True
            raise

    def _commit_each(self, connection: Connection, group: list[_Job[Any]]) -> None:
        connection.execute("BEGIN IMMEDIATE")
        try:
            for job in group:
                connection.execute("SAVEPOINT job")
                try:
                    job.result = job.work(connection)
                except Exception as error:
                    if not connection.in_transaction:
                        raise  # SQLite itself gave up the whole transaction
                    connection.execute("ROLLBACK TO job")
                    job.error = storage_error(error) if isinstance(error, BROKEN) else error
                connection.execute("RELEASE job")
            connection.execute("COMMIT")
        except BaseException:
            _roll_back(connection)
            raise

    def _run_alone(self, work: Work[T]) -> T:
        try:
            return work(self._writable())
        except BROKEN as error:
            failure = self._failure(error)
            if isinstance(failure, _SUSPECT):
                self._drop_writer()
            raise failure from error

    def _writable(self) -> Connection:
        """The writer's connection, opened again if the last one was lost to an error."""
        if self._writer is None:
            self._prepare(None)
        assert self._writer is not None
        if _inode(self.path) != self._inode:
            raise StorageReplaced("the database file was deleted or replaced while in use")
        return self._writer

    def _prepare(self, prepare: Work[None] | None) -> None:
        if self._inode is not None and _inode(self.path) != self._inode:
            raise StorageReplaced("the database file was deleted or replaced while in use")
        again = self._inode is not None
        try:
            connection = _open_writer(self.path)
        except BROKEN as error:
            raise self._failure(error) from error
        except OSError as error:
            raise file_error(error) from error
        self._writer = connection
        self._inode = _inode(self.path)
        try:
            if again and connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
                raise StorageDamaged("the database file is damaged")
            if prepare is not None:
                prepare(connection)
        except BROKEN as error:
            self._drop_writer()
            raise self._failure(error) from error
        except BaseException:
            self._drop_writer()
            raise

    def _failure(self, error: sqlite3.Error | UnicodeDecodeError) -> StorageError:
        """Our word for an error; SQLite calls some of those on a full disk input/output errors."""
        failure = storage_error(error)
        if isinstance(failure, StorageFailed) and _is_full(self.path.parent):
            return StorageFull("no space left on the disk")
        return failure

    def _drop_writer(self) -> None:
        connection, self._writer = self._writer, None
        if connection is not None:
            _close(connection)

    # --- the rest -------------------------------------------------------------------------

    def _new_reader(self) -> "_Reader":
        reader = _Reader(self.path)
        self._readers.append(reader)
        return reader

    def _refuse_if_unusable(self) -> None:
        if self._closed:
            raise StorageClosed("the database is closed")
        if os.getpid() != self._pid:
            raise StorageClosed("a database does not survive a fork: open it in the new process")


class _Reader:
    """A read-only connection and the thread it lives on."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: Connection | None = None
        self._thread = Worker("store-reader")
        self._deadline = 0.0

    async def run(self, work: Work[T], seconds: float) -> T:
        return await self._thread.see_through(partial(self._read, work, seconds))

    async def close(self) -> None:
        await self._thread.call(self._drop)
        self._thread.stop()

    def _read(self, work: Work[T], seconds: float) -> T:
        try:
            if self._connection is None:
                self._connection = _open_reader(self._path)
                self._connection.set_progress_handler(self._is_late, _PROGRESS_STEPS)
            self._deadline = time.monotonic() + seconds
            self._connection.execute("BEGIN")
            try:
                return work(self._connection)
            finally:
                _roll_back(self._connection)
        except BROKEN as error:
            failure = storage_error(error)
            if isinstance(failure, _SUSPECT):
                self._drop()
            raise failure from error

    def _is_late(self) -> int:
        return time.monotonic() > self._deadline

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            _close(connection)


def file_error(error: OSError) -> StoreError:
    """Our word for what the file system reported, without the path it happened on."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return StorageFull("no space left on the disk")
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return StorageReadOnly("the data directory may not be written")
    return StorageFailed(f"a file operation failed ({errno.errorcode.get(error.errno or 0, '?')})")


@contextmanager
def file_errors() -> Generator[None]:
    """What the file system reports inside the block is raised in our words."""
    try:
        yield
    except OSError as error:
        raise file_error(error) from error


@contextmanager
def opened_copy(path: Path, *, writable: bool = False) -> Generator[Connection]:
    """A database that is nobody's home: a backup or a copy, open for as long as the block lasts."""
    connection = _connect(path, mode="rw" if writable else "ro")
    try:
        yield connection
    finally:
        connection.close()


def copy_database(connection: Connection, target: Path, *, pages: int = 1_024) -> None:
    """Copy everything behind a connection into a new private file, with nothing left in a log."""
    target.unlink(missing_ok=True)
    create_private(target)
    with opened_copy(target, writable=True) as copy:
        connection.backup(copy, pages=pages)
        copy.execute("PRAGMA journal_mode = DELETE")


def _open_writer(path: Path) -> Connection:
    if create_private(path):
        sync_directory(path.parent)
    _refuse_foreign(path)
    connection = _connect(path, mode="rw")
    try:
        if connection.execute("PRAGMA application_id").fetchone() == (0,):
            # Before WAL is switched on, so that it is in the file itself from the first moment.
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("PRAGMA journal_size_limit = 16777216")
    except BaseException:
        _close(connection)
        raise
    return connection


def _open_reader(path: Path) -> Connection:
    connection = _connect(path, mode="ro")
    connection.execute("PRAGMA query_only = ON")
    connection.execute(f"PRAGMA cache_size = -{READER_CACHE_KB}")
    return connection


def _connect(path: Path, *, mode: str) -> Connection:
    connection = sqlite3.connect(
        f"{path.resolve().as_uri()}?mode={mode}",
        uri=True,
        isolation_level=None,
        timeout=BUSY_MILLISECONDS / 1000,
        check_same_thread=False,  # closing may come from another thread, after the last use
    )
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    connection.execute("PRAGMA mmap_size = 0")
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.create_function("casefold", 1, str.casefold, deterministic=True)
    return connection


def _refuse_foreign(path: Path) -> None:
    """An existing file must say in its header that it is ours before SQLite may write to it."""
    with path.open("rb") as file:
        header = file.read(100)
    if not header:
        return
    if len(header) < 100 or not header.startswith(_MAGIC):
        raise StorageDamaged("the database file does not start like a database")
    if int.from_bytes(header[68:72], "big") not in (0, APPLICATION_ID):
        raise StorageForeign("the file in the database's place belongs to another program")


def checkpoint(connection: Connection) -> bool:
    """Fold the log into the file and cut it. False when a reader was in the way."""
    busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return not busy


def _roll_back(connection: Connection) -> None:
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def _close(connection: Connection) -> None:
    try:
        connection.close()
    except sqlite3.Error:
        return  # closing folds the log in; when that fails the log stays and is read next time


def _is_full(directory: Path) -> bool:
    try:
        status = os.statvfs(directory)
    except OSError:
        return False
    return status.f_bavail * status.f_frsize < NO_SPACE_BYTES


def _inode(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino

"""Units of work on the server: transactions, group commit, retries. See `store.database.Database`.

**Writes.** A write locks the bank's row first, so the writes to a bank follow each other, on all
daemons together. Change numbers are taken under this lock and become visible in their order, which
is how searches of other daemons notice new vectors (without the lock 34 of 180 rows were missed for
ever). While one transaction is on its way, new units of work queue up, and the next one runs all of
them; a unit that fails is repeated alone, behind a savepoint.

**Retries.** A transaction that the server has undone (serialisation, deadlock), or whose connection
ended before COMMIT was sent, is run again: units of work may run twice. If the connection ends
during COMMIT, nobody knows whether it took effect. That is `StorageFailed`, and a read tells.

**Reads** run in a read-only transaction that sees one state. With a replica, a read goes there if
the replica has the changes that this daemon has written; otherwise it goes to the primary.
"""

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Generic, LiteralString, NamedTuple, TypeVar

import psycopg

from store import log
from store.database import Work
from store.errors import BankNotFound, StorageClosed, StorageFailed, StorageFull
from store.hop import Outcome
from store.postgres.connection import BankConnection, Server
from store.postgres.pool import Pool
from store.postgres.server_errors import RETRIED, is_lost, storage_error

T = TypeVar("T")

GROUP_LIMIT: Final = 256
READ_SECONDS: Final = 5.0
LOCK_MILLISECONDS: Final = 10_000
ATTEMPTS: Final = 5
PAUSE_SECONDS: Final = 0.05  # before the second attempt; doubled before each further one

#: Settings that end with the transaction. $1 is the bank, "" for none.
_SETTINGS: Final = (
    "SELECT set_config('recalld.bank', $1, true), set_config('statement_timeout', $2, true),"
    " set_config('lock_timeout', $3, true)"
)


class Pools(NamedTuple):
    """Where transactions run. Without a replica `replica` is None."""

    writers: Pool
    readers: Pool
    replica: Pool | None = None


class _Behind(Exception):
    """The replica does not have the changes yet that this daemon knows."""


class ServerDatabase:
    """The tables of one bank, or the tables beside the banks (`number` is None)."""

    def __init__(self, pools: Pools, number: int | None = None, name: str = "") -> None:
        self.number = number
        self.name = name
        #: True while the last write failed for lack of space.
        self.is_full = False
        self._pools = pools
        self._queued: deque[_UnitOfWork[Any]] = deque()
        self._committing = False
        self._is_closed = False
        self._seen = 0  # the newest change number that this daemon has written

    # --- on the event loop ----------------------------------------------------------------

    async def read(self, work: Work[T], *, seconds: float = READ_SECONDS) -> T:
        self._refuse_if_closed()
        replica = self._pools.replica
        if replica is not None and self.number is not None:
            try:
                return await replica.run(partial(self._read, work, seconds, is_replica=True))
            except _Behind:
                pass
        return await self._pools.readers.run(partial(self._read, work, seconds))

    async def write(self, work: Work[T], *, then: Callable[[], None] | None = None) -> T:
        self._refuse_if_closed()
        unit = _UnitOfWork(work, then)
        self._queued.append(unit)
        if not self._committing:
            # At the end of this iteration of the loop, so that other writers can join the group.
            self._committing = True
            asyncio.get_running_loop().call_soon(self._commit_next)
        return await unit.outcome.wait()

    def close(self) -> None:
        """Refuse further work; the work that was accepted is finished."""
        self._is_closed = True

    def _commit_next(self) -> None:
        group = [self._queued.popleft() for _ in range(min(len(self._queued), GROUP_LIMIT))]
        self._committing = bool(group)
        if group:
            self._pools.writers.post(partial(self._commit, group), partial(self._finish, group))

    def _finish(
        self, group: "list[_UnitOfWork[Any]]", _: None, failure: BaseException | None
    ) -> None:
        for unit in group:
            if unit.then is not None and failure is None and unit.error is None:
                unit.then()
            unit.outcome.finish(unit.result, failure or unit.error)
        self._commit_next()

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            raise StorageClosed("the engine is closed")

    # --- on a thread ----------------------------------------------------------------------

    def _read(self, work: Work[T], seconds: float, pool: Pool, *, is_replica: bool = False) -> T:
        begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

        def transaction(server: Server) -> T:
            with server.pipeline() as pipeline:
                self._begin(server, begin, round(seconds * 1000))
                there = self._look(server)
                if is_replica and self._change(there) < self._seen:
                    raise _Behind
                try:
                    result = work(BankConnection(server, self.number, pipeline))
                except (TypeError, LookupError, ValueError) as error:
                    self._require(there, error)  # a bank that is gone has no counters
                    raise
                self._require(there)
                server.execute("COMMIT")
            return result

        return self._attempt(pool, transaction)

    def _commit(self, group: "list[_UnitOfWork[Any]]", pool: Pool) -> None:
        """Run a group of units of work in one transaction."""
        began = time.monotonic()
        try:
            try:
                self._attempt(pool, partial(self._together, group))
            except _SomeFailed:
                self._attempt(pool, partial(self._each, group))
                self.is_full = any(isinstance(unit.error, StorageFull) for unit in group)
        except StorageFull:
            self.is_full = True
            raise
        else:
            self.is_full = False
        finally:
            seconds = time.monotonic() - began
            if seconds > 1.0:
                log.warning("storage.write.slow", ms=round(seconds * 1000), units=len(group))

    def _together(self, group: "list[_UnitOfWork[Any]]", server: Server) -> None:
        try:
            with server.pipeline() as pipeline:
                self._begin(server, "BEGIN", 0)
                there = self._look(server, " FOR UPDATE")
                connection = BankConnection(server, self.number, pipeline)
                self._require(there)
                for unit in group:
                    unit.result = unit.work(connection)
                    unit.error = None
                last = self._look(server)
                pipeline.sync()
                self._note_change(last)
        except (BankNotFound, *RETRIED):
            raise
        except psycopg.Error as error:
            if is_lost(error):
                raise
            raise _SomeFailed from error  # a pipeline does not tell which statement failed
        except Exception as error:
            raise _SomeFailed from error
        self._end(server)

    def _each(self, group: "list[_UnitOfWork[Any]]", server: Server) -> None:
        """The same, statement by statement and with a savepoint around each unit."""
        self._begin(server, "BEGIN", 0)
        self._require(self._look(server, " FOR UPDATE"))
        connection = BankConnection(server, self.number)
        for unit in group:
            server.execute("SAVEPOINT unit")
            unit.error = None
            try:
                unit.result = unit.work(connection)
            except RETRIED:
                raise
            except psycopg.Error as error:
                if is_lost(error):
                    raise
                server.execute("ROLLBACK TO unit")
                unit.error = storage_error(error)
            except Exception as error:  # noqa: BLE001  (raised again where it is awaited)
                server.execute("ROLLBACK TO unit")
                unit.error = error
            server.execute("RELEASE unit")
        self._note_change(self._look(server))
        self._end(server)

    def _end(self, server: Server) -> None:
        """COMMIT, which is never repeated."""
        try:
            server.execute("COMMIT")
        except psycopg.Error as error:
            if not is_lost(error):
                raise
            raise StorageFailed(
                "the connection to the database server ended during COMMIT: read to see whether"
                " the write was stored"
            ) from error

    def _attempt(self, pool: Pool, transaction: Callable[[Server], T]) -> T:
        """Run a transaction on a connection of the pool, again if that is safe and may help."""
        pause = PAUSE_SECONDS
        for attempt in range(1, ATTEMPTS + 1):
            server: Server | None = None
            try:
                server = pool.take()
                return transaction(server)
            except psycopg.Error as error:
                if is_lost(error):
                    pool.drop_idle()
                elif not isinstance(error, RETRIED):
                    raise storage_error(error) from error
                if attempt == ATTEMPTS:
                    raise storage_error(error) from error
            finally:
                if server is not None:
                    _roll_back(server)
                    pool.give_back(server)
            time.sleep(pause * random.uniform(0.5, 1.5))
            pause *= 2
        raise AssertionError

    def _begin(self, server: Server, begin: LiteralString, milliseconds: int) -> None:
        server.execute(begin)
        bank = "" if self.number is None else str(self.number)
        server.execute(_SETTINGS, (bank, str(milliseconds), str(LOCK_MILLISECONDS)))

    def _look(self, server: Server, lock: LiteralString = "") -> "psycopg.Cursor[Any] | None":
        """The bank's change number, so far unread."""
        if self.number is None:
            return None
        return server.execute(f"SELECT change FROM state WHERE bank = $1{lock}", (self.number,))

    def _require(self, there: "psycopg.Cursor[Any] | None", error: Exception | None = None) -> None:
        if there is not None and self._change(there) < 0:
            raise BankNotFound(self.name) from error

    def _change(self, there: "psycopg.Cursor[Any] | None") -> int:
        """The change number that `_look` found; -1 if the bank was deleted."""
        if there is None:
            return 0
        row = there.fetchone()
        if row is None:
            return -1
        there.scroll(0, "absolute")  # it may be looked at again
        return int(row[0])

    def _note_change(self, there: "psycopg.Cursor[Any] | None") -> None:
        if there is not None:
            self._seen = max(self._seen, self._change(there))


class _SomeFailed(Exception):
    """A unit of a group failed, so the group is repeated one by one."""


class _UnitOfWork(Generic[T]):
    """A function that waits for its group, and later its outcome."""

    __slots__ = ("error", "outcome", "result", "then", "work")

    def __init__(self, work: Work[T], then: Callable[[], None] | None) -> None:
        self.work = work
        self.then = then
        self.outcome = Outcome[T]()
        self.result: T | None = None
        self.error: Exception | None = None


def _roll_back(server: Server) -> None:
    """End a transaction that failed, if the connection still works."""
    if server.closed or server.info.transaction_status == psycopg.pq.TransactionStatus.IDLE:
        return
    try:
        server.execute("ROLLBACK")
    except psycopg.Error:
        server.close()

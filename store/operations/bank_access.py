"""Access to banks: opens one, runs a unit of work on it, and notifies the ranking of writes.

All operations of the engine use this class; nothing else opens a bank or uses its database.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final, Protocol, TypeVar, cast

import anyio

from store.bank import Banks, Catalogue, OpenBank
from store.database import Connection
from store.errors import QuotaExceeded, StoreError
from store.model import Found, Query, Stage
from store.rows.transaction import WriteTransaction, counted

T = TypeVar("T")

LARGE_TEXT: Final = 16_384  # longer texts (in characters) are tokenised on a thread
LONG_READ_SECONDS: Final = 3_600.0  # for exports and backups, which read the whole bank
# Space that a put takes later and that counts towards the quota, as measured: the vector (384 half
# floats and its row), the tokens of a turn, and the index entry of each word, which FTS5 writes at
# the COMMIT.
VECTOR_BYTES: Final = 2_000
WORD_BYTES: Final = 6


class Ranking(Protocol):
    """Search by keywords and meaning, for all banks of an engine."""

    async def search(self, bank: OpenBank, query: Query) -> Found: ...

    async def vectors(self, texts: Sequence[str]) -> Any:
        """One row of unit length for each text; None without a model that knows meaning."""
        ...

    async def written(self, bank: OpenBank) -> None:
        """Items were written, so vectors may be missing."""
        ...

    async def reset(self, bank: OpenBank) -> None:
        """Drop everything cached about this bank, and delete its snapshot."""
        ...

    async def settle(self, bank: OpenBank, watch: Callable[[Stage], None] | None = None) -> None:
        """Wait until every vector is computed and every index is up to date."""
        ...

    async def leave(self, bank: OpenBank) -> None:
        """The bank is about to be closed."""
        ...

    async def close(self) -> None:
        """Every bank is closed, and no search will follow."""
        ...

    def degraded(self) -> tuple[str, ...]: ...

    def cached_bytes(self, bank: OpenBank) -> int:
        """The memory that the vectors of a bank take in this process."""
        ...

    @property
    def embedder(self) -> str | None: ...


class BankAccess:
    """The banks, their databases and the ranking: the base of all groups of operations."""

    def __init__(self, catalogue: Catalogue, banks: Banks, ranking: Ranking) -> None:
        self._catalogue = catalogue
        self._banks = banks
        self._ranking = ranking
        self._now = catalogue.now

    async def _read(self, bank: str, work: Callable[[Connection], T]) -> T:
        async with self._banks.use(bank) as opened:
            return await opened.database.read(work)

    async def _write(
        self, bank: str, work: Callable[[WriteTransaction], T], *, grows: bool = False
    ) -> T:
        """Run a unit of work on an existing bank; with `grows` its quota is enforced."""
        async with self._banks.use(bank) as opened:
            if grows and opened.bank.quota_bytes is not None:
                work = within_quota(work, opened.name, opened.bank.quota_bytes)
            result = await opened.database.write(in_changes(work))
            with suppress(StoreError):  # the write succeeded; vectors can be computed later
                await self._ranking.written(opened)
            return result

    async def _put(
        self, bank: str, work: Callable[[WriteTransaction], T], *, at_least: int = 0
    ) -> T:
        """Run a unit of work that adds items; creates the bank if necessary, enforces its quota.

        If `at_least` (in bytes) is more than the whole quota, the work is refused at once.
        """
        known = await self._banks.ensure(bank)
        if known.quota_bytes is not None and at_least > known.quota_bytes:
            raise QuotaExceeded(known.name, at_least, known.quota_bytes)
        return await self._write(bank, work, grows=True)


def within_quota(
    work: Callable[[WriteTransaction], T], bank: str, quota: int
) -> Callable[[WriteTransaction], T]:
    """Wrap a unit of work so that `QuotaExceeded` rolls it back if it makes the bank too large.

    The size is measured afterwards, because a retry or a repetition takes no space and must
    succeed in a full bank as well.
    """

    def run(changes: WriteTransaction) -> T:
        before = changes.connection.stored_bytes()
        result = work(changes)
        follows = changes.items * VECTOR_BYTES + changes.words * WORD_BYTES
        after = changes.connection.stored_bytes() + follows
        if after > quota and after > before:
            raise QuotaExceeded(bank, after, quota)
        return result

    return run


def in_changes(work: Callable[[WriteTransaction], T]) -> Callable[[Connection], T]:
    """Wrap a unit of work that writes items, so that the bank's counters are updated."""

    def run(connection: Connection) -> T:
        with counted(connection) as changes:
            return work(changes)

    return run


async def off_loop_if_large(characters: int, prepare: Callable[[], T]) -> T:
    """Call `prepare`, which validates and tokenises texts; on a thread if the texts are long."""
    if characters > LARGE_TEXT:
        return await anyio.to_thread.run_sync(prepare)
    return prepare()


async def ahead(entries: Iterator[T]) -> AsyncGenerator[T]:
    """The entries, each computed on a thread while the caller works on the one before."""
    end = object()
    pool = ThreadPoolExecutor(max_workers=1)
    try:
        coming = pool.submit(next, entries, end)
        while (entry := await anyio.to_thread.run_sync(coming.result)) is not end:
            coming = pool.submit(next, entries, end)
            yield cast("T", entry)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


async def shielded(work: Awaitable[T]) -> T:
    """Await `work` to its end, even if the caller is cancelled."""
    results: list[T] = []
    with anyio.CancelScope(shield=True):
        results.append(await work)
    return results[0]

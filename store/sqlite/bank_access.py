"""The way to a bank: find it, run a unit of work on it, tell the ranking what was written.

The verbs of the engine stand on this; nothing else opens a bank or touches its database.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, Protocol, TypeVar

import anyio

from store.errors import QuotaExceeded, StoreError
from store.model import Found, Query, Stage
from store.sqlite.banks import Banks, OpenBank
from store.sqlite.catalogue import Catalogue
from store.sqlite.database import Connection
from store.sqlite.rows import stats
from store.sqlite.rows.transaction import WriteTransaction, counted

T = TypeVar("T")

LONG_READ_SECONDS: Final = 3_600.0  # for exports and backups, which read everything
# What follows a put and counts towards a quota, as measured: the vector (384 half floats and its
# row), and each word's place in the index, which FTS5 writes with the COMMIT.
VECTOR_BYTES: Final = 1_000
WORD_BYTES: Final = 6


class Ranking(Protocol):
    """Finding by words and meaning, for all banks of an engine."""

    async def search(self, bank: OpenBank, query: Query) -> Found: ...

    async def written(self, bank: OpenBank) -> None:
        """Items came whose vectors are still to be made; short queues are waited for."""
        ...

    async def reset(self, bank: OpenBank) -> None:
        """Drop everything cached about this bank, and delete its snapshot."""
        ...

    async def settle(self, bank: OpenBank, watch: Callable[[Stage], None] | None = None) -> None:
        """Wait until every vector is made and every index is as it should be."""
        ...

    async def leave(self, bank: OpenBank) -> None:
        """The bank is about to be closed."""
        ...

    async def close(self) -> None:
        """Every bank is closed, and nothing is asked any more."""
        ...

    def degraded(self) -> tuple[str, ...]: ...

    @property
    def embedder(self) -> str | None: ...


class Access:
    """Banks, their databases and the ranking, for the verbs."""

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
        """A unit of work on a bank that is there; what may make it grow keeps to its quota."""
        async with self._banks.use(bank) as opened:
            if grows and opened.bank.quota_bytes is not None:
                work = within_quota(work, opened.name, opened.bank.quota_bytes)
            result = await opened.database.write(in_changes(work))
            with suppress(StoreError):  # it is stored, and says so; its vector can be made later
                await self._ranking.written(opened)
            return result

    async def _put(
        self, bank: str, work: Callable[[WriteTransaction], T], *, at_least: int = 0
    ) -> T:
        """A unit of work that adds something: the bank is made if need be, its quota holds.

        What takes `at_least` so many bytes, more than the whole quota, is not even tried.
        """
        known = await self._banks.ensure(bank)
        if known.quota_bytes is not None and at_least > known.quota_bytes:
            raise QuotaExceeded(known.name, at_least, known.quota_bytes)
        return await self._write(bank, work, grows=True)


def within_quota(
    work: Callable[[WriteTransaction], T], bank: str, quota: int
) -> Callable[[WriteTransaction], T]:
    """The same unit of work, undone by `QuotaExceeded` if the bank grows past its quota by it.

    It is done first and measured then, because nobody knows before what is new: a retry or a
    repetition takes no space, and is answered in a full bank as well.
    """

    def run(changes: WriteTransaction) -> T:
        before = stats.database_bytes(changes.connection)
        result = work(changes)
        follows = changes.items * VECTOR_BYTES + changes.words * WORD_BYTES
        after = stats.database_bytes(changes.connection) + follows
        if after > quota and after > before:
            raise QuotaExceeded(bank, after, quota)
        return result

    return run


def in_changes(work: Callable[[WriteTransaction], T]) -> Callable[[Connection], T]:
    """A unit of work that writes items, with the bank's counters kept."""

    def run(connection: Connection) -> T:
        with counted(connection) as changes:
            return work(changes)

    return run


async def shielded(work: Awaitable[T]) -> T:
    """Do it to its end, cancelled or not; for what must not be left half done."""
    results: list[T] = []
    with anyio.CancelScope(shield=True):
        results.append(await work)
    return results[0]

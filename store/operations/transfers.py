"""Statistics of a bank, export and import."""

import errno
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import aclosing, suppress
from functools import partial
from pathlib import Path
from typing import Final

import anyio

from store.arguments import bank_argument, callback, page_arguments, path_argument
from store.database import Connection
from store.engine import Progress
from store.errors import (
    InvalidInput,
    StorageFull,
    StoreError,
)
from store.exporting import portability
from store.files import errno_name, file_error
from store.model import (
    Exported,
    Filters,
    Imported,
    Kind,
    SessionActivity,
    Stats,
)
from store.operations.bank_access import LONG_READ_SECONDS, BankAccess, ahead
from store.rows import stats
from store.rows.listing import choice

#: Records in one transaction of an import. Writers of the bank wait for at most one batch.
IMPORT_BATCH: Final = 2_500


class Transfers(BankAccess):
    """See `store.engine.Engine`."""

    async def stats(self, bank: str) -> Stats:
        bank = bank_argument(bank)
        async with self._banks.use(bank) as opened:
            size = opened.disk_bytes
            return await opened.database.read(
                lambda connection: stats.stats(
                    connection, opened.name, size() or connection.stored_bytes()
                )
            )

    async def sessions_in(self, bank: str, *, limit: int = 50) -> list[SessionActivity]:
        bank = bank_argument(bank)
        limit, _ = page_arguments(limit)
        return await self._read(bank, lambda connection: stats.sessions(connection, limit=limit))

    async def pending_vectors(self) -> Mapping[str, int]:
        found: dict[str, int] = {}
        for opened in self._banks.open_banks():
            with suppress(StoreError):  # closed in the meantime, or damaged: other reports say so
                count = await self._read(opened.name, stats.pending_vectors)
                if count:
                    found[opened.name] = count
        return found

    async def export(
        self,
        bank: str,
        path: Path,
        *,
        progress: Progress | None = None,
        ids: Sequence[str] = (),
        kinds: Sequence[Kind] = (),
        filters: Filters | None = None,
    ) -> Exported:
        bank, path = bank_argument(bank), path_argument("path", path)
        progress = callback("progress", progress)
        choose = choice(ids, kinds, filters) if ids or filters is not None else None
        async with self._banks.use(bank) as opened:

            def work(connection: Connection) -> Exported:
                rowids = None if choose is None else choose(connection)
                try:
                    return portability.export(connection, opened.name, path, progress, rowids)
                except OSError as error:
                    raise _not_exported(error, path) from error

            return await opened.database.read(work, seconds=LONG_READ_SECONDS)

    async def import_file(
        self,
        bank: str,
        path: Path,
        *,
        progress: Progress | None = None,
        dry_run: bool = False,
    ) -> Imported:
        bank, path = bank_argument(bank), path_argument("path", path)
        progress = callback("progress", progress)
        try:
            total, is_edited = await anyio.to_thread.run_sync(portability.verify, path)
        except OSError as error:
            raise InvalidInput("path", f"cannot be read ({errno_name(error)})") from error

        if not dry_run:
            await self._banks.ensure(bank)
        is_there = any(each.name == bank for each in await self._banks.listed())
        created: Counter[str] = Counter()
        known: Counter[str] = Counter()
        done = 0
        batches = portability.batches(path, IMPORT_BATCH, is_edited=is_edited)
        async with aclosing(ahead(batches)) as prepared:
            async for batch in prepared:
                if not dry_run:
                    tally = await self._put(bank, partial(portability.take, batch=batch))
                elif is_there:
                    records = batch.records
                    tally = await self._read(bank, partial(portability.compare, records=records))
                else:
                    tally = portability.tally_all_new(batch.records)
                created += tally.created
                known += tally.known
                done += len(batch.records)
                if progress is not None:
                    progress(done, total)
        return Imported(
            bank=bank,
            created=created.total(),
            known=known.total(),
            created_by_type=dict(created),
            known_by_type=dict(known),
            is_edited=is_edited,
        )


def _not_exported(error: OSError, path: Path) -> StoreError:
    """The error for a failed export. It names the path, which the caller gave."""
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return InvalidInput("path", f"there is no directory {str(path.parent)!r}")
    if error.errno == errno.EISDIR:
        return InvalidInput("path", "is a directory")
    failure = file_error(error)
    if isinstance(failure, StorageFull):
        return failure
    return InvalidInput("path", f"cannot be written ({errno_name(error)})")

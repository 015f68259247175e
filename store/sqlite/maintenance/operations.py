"""Maintenance operations: statistics, health, check, repair, erase, export, backup, restore."""

import errno
import secrets
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from functools import partial
from pathlib import Path
from typing import Final

import anyio
from msgspec.structs import replace

from store import log
from store.arguments import bank_argument, callback, page_arguments, path_argument, texts
from store.engine import Progress
from store.errors import (
    InvalidInput,
    StorageDamaged,
    StorageFailed,
    StorageForeign,
    StorageFull,
    StoreError,
)
from store.model import (
    BackedUp,
    Bank,
    Checked,
    EngineHealth,
    Erased,
    Exported,
    Filters,
    Imported,
    Kind,
    Recovered,
    SessionActivity,
    Stats,
)
from store.sqlite.bank_access import LONG_READ_SECONDS, BankAccess, ahead, in_changes, shielded
from store.sqlite.banks import DATABASE
from store.sqlite.connection import Connection
from store.sqlite.database import Database
from store.sqlite.files import directory_fault
from store.sqlite.maintenance import (
    backup,
    checking,
    erase,
    integrity,
    portability,
    word_index,
)
from store.sqlite.maintenance.portion import WHOLE, ignore, portion
from store.sqlite.migrate import migrate
from store.sqlite.open_bank import SNAPSHOT, OpenBank, claim
from store.sqlite.rows import listing, stats
from store.sqlite.rows.listing import choice
from store.sqlite.rows.transaction import WriteTransaction
from store.sqlite.storage_errors import errno_name, file_error, file_errors
from store.validate import check_labels, storable_text

#: Records in one transaction of an import. Writers of the bank wait for at most one batch.
IMPORT_BATCH: Final = 2_500
BACKUPS_KEPT: Final = backup.KEEP


class Maintenance(BankAccess):
    """See `store.engine.Engine`."""

    erase_wait_seconds = erase.WAIT_SECONDS

    async def stats(self, bank: str) -> Stats:
        bank = bank_argument(bank)
        async with self._banks.use(bank) as opened:
            return await opened.database.read(
                lambda connection: stats.stats(connection, opened.name, opened.directory)
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

    def health(self) -> EngineHealth:
        degraded = set(self._ranking.degraded())
        for opened in self._banks.open_banks():
            degraded |= opened.degraded
            if opened.database.is_full:
                degraded.add("storage-full")
        if self._catalogue.database.is_full:
            degraded.add("storage-full")
        if self._banks.unfinished:
            degraded.add("erase-incomplete")
        if self._banks.orphans:
            degraded.add("banks-orphaned")
        if self._catalogue.is_replaced:
            degraded.add("catalogue-replaced")
        if self._banks.being_deleted:
            degraded.add("deletion-incomplete")
        lost = directory_fault(self._catalogue.directory, self._catalogue.database.path)
        if lost is not None:
            degraded.add(lost)
        return EngineHealth(
            is_ready=lost is None,
            degraded=tuple(sorted(degraded)),
            banks=len(self._banks.all()),
            open_banks=len(self._banks.open_banks()),
            sqlite=sqlite3.sqlite_version,
            embedder=self._ranking.embedder,
        )

    async def recover_banks(self) -> Recovered:
        recovered = await self._banks.recover()
        log.info("banks.recovered", banks=len(recovered.banks), refused=len(recovered.refused))
        return recovered

    async def check(self, bank: str, *, progress: Progress | None = None) -> Checked:
        bank = bank_argument(bank)
        progress = _reporter(progress)
        async with self._banks.use(bank) as opened:
            return await self._check(opened, progress)

    async def repair(self, bank: str, *, progress: Progress | None = None) -> Checked:
        bank = bank_argument(bank)
        report = _reporter(progress)
        async with self._banks.use(bank) as opened:

            def repair(connection: Connection) -> int:
                with file_errors():
                    return integrity.repair(connection, opened.directory, portion(report, 0, 500))

            began = time.monotonic()
            removed = await opened.database.maintain(repair)
            await self._ranking.reset(opened)
            await self._ranking.written(opened)
            checked = await self._check(opened, portion(report, 500, WHOLE))
            problems = len(checked.problems)
            _log("bank.repaired", opened, began, rows_removed=removed, problems_left=problems)
            return checked

    async def rebuild(self, bank: str, *, progress: Progress | None = None) -> Checked:
        bank = bank_argument(bank)
        progress = _reporter(progress)
        async with self._banks.use(bank) as opened:
            began = time.monotonic()
            renew = partial(word_index.renew, progress=portion(progress, 0, 500))
            items = await opened.database.maintain(renew)
            await opened.database.write(integrity.forget_vectors)
            await self._ranking.reset(opened)
            await self._ranking.written(opened)
            _log("bank.rebuilt", opened, began, items=items)
            return await self._check(opened, portion(progress, 500, WHOLE))

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
        is_there = any(each.name == bank for each in self._banks.all())
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

    async def back_up(self, bank: str, *, progress: Progress | None = None) -> BackedUp:
        bank = bank_argument(bank)
        progress = _reporter(progress)
        async with self._banks.use(bank) as opened, opened.copying:
            began = time.monotonic()
            made = await self._back_up(opened.bank, opened.database, progress)
            _log("backup.made", opened, began, items=made.items, bytes=made.bytes)
            return made

    async def backups(self, bank: str) -> list[BackedUp]:
        bank = bank_argument(bank)
        directory = self._banks.backups(self._banks.get(bank))

        def listing() -> list[BackedUp]:
            with file_errors():
                return backup.listing(directory, bank)

        return await anyio.to_thread.run_sync(listing)

    async def restore(self, bank: str, name: str, *, progress: Progress | None = None) -> BackedUp:
        bank, name = bank_argument(bank), storable_text("name", name)
        report = _reporter(progress)
        known = self._banks.get(bank)
        backups = self._banks.backups(known)
        began = time.monotonic()
        items = await anyio.to_thread.run_sync(
            lambda: backup.verify(backup.find(backups, name), portion(report, 0, 300))
        )
        async with self._banks.exclusively(bank) as directory:
            # From here on nothing else writes, so the backup made now holds every acknowledged put.
            is_sound = await self._back_up_before_restore(known, name, portion(report, 300, 700))
            database = directory / DATABASE

            def claimed(connection: Connection) -> None:
                migrate(connection, "bank", path=database)
                claim(connection, known)

            def exchange() -> None:
                (directory / SNAPSHOT).unlink(missing_ok=True)
                source = backup.find(backups, name)
                backup.put_in_place(
                    source,
                    database,
                    claimed=claimed,
                    keep_log=is_sound,
                    progress=portion(report, 700, WHOLE),
                )

            try:
                await anyio.to_thread.run_sync(exchange)
            except OSError as error:
                raise file_error(error) from error
        ms = round((time.monotonic() - began) * 1000)
        log.info("backup.restored", bank=known.id, items=items, ms=ms)
        return BackedUp(bank=bank, name=name, bytes=0, items=items, made_at=self._now())

    async def erase(
        self,
        bank: str,
        ids: Sequence[str] = (),
        *,
        documents: Sequence[str] = (),
        reason: str = "asked for",
    ) -> Erased:
        bank, ids = bank_argument(bank), texts("ids", ids)
        documents, reason = texts("documents", documents), storable_text("reason", reason)
        check_labels(reason=reason)
        now = self._now()

        def work(changes: WriteTransaction) -> Erased:
            return erase.remove(changes, ids, documents=documents, reason=reason, now=now)

        return await self._erase(bank, work)

    async def erase_forgotten(self, bank: str, *, reason: str = "asked for") -> Erased:
        bank, reason = bank_argument(bank), storable_text("reason", reason)
        check_labels(reason=reason)
        now = self._now()

        def work(changes: WriteTransaction) -> Erased:
            ids = listing.forgotten_ids(changes.connection)
            return erase.remove(changes, ids, reason=reason, now=now)

        return await self._erase(bank, work)

    async def _erase(self, bank: str, work: Callable[[WriteTransaction], Erased]) -> Erased:
        """All steps of `erase.py`. The catalogue records the erase until the last step is done."""

        async def erase_all(opened: OpenBank) -> Erased:
            def begin() -> None:
                self._banks.unfinished.add(opened.bank.id)

            began = time.monotonic()
            await self._banks.note_erasing(opened.bank)
            erased = await opened.database.write(in_changes(work), then=begin)
            log.info("erase.begun", bank=opened.bank.id, items=erased.items)
            copies = await self._finish_erase(opened)
            _log("erase.finished", opened, began, items=erased.items, copies_removed=copies)
            return replace(erased, copies_removed=copies)

        async with self._banks.use(bank) as opened, opened.copying:
            return await shielded(erase_all(opened))  # cancelling does not stop it half-way

    async def _finish_erase(self, opened: OpenBank) -> int:
        await self._ranking.reset(opened)

        def finish(connection: Connection) -> int:
            with opened.files:
                return erase.finish(
                    connection,
                    opened.directory,
                    self._banks.backups(opened.bank),
                    self._now(),
                    wait_seconds=self.erase_wait_seconds,
                )

        copies = await opened.database.maintain(finish)
        await self._banks.note_erased(opened.bank)
        return copies

    async def _back_up(
        self, bank: Bank, database: Database, progress: Progress, *, spare: str = ""
    ) -> BackedUp:
        now = self._now()
        directory = self._banks.backups(bank)
        name = f"{now:015d}-{secrets.token_hex(4)}"

        def work(connection: Connection) -> BackedUp:
            with file_errors():
                made = backup.make(
                    connection, directory, bank=bank.name, name=name, now=now, progress=progress
                )
                backup.prune(directory, BACKUPS_KEPT, spare=(name, spare))
            return made

        return await database.read(work, seconds=LONG_READ_SECONDS)

    async def _back_up_before_restore(self, bank: Bank, name: str, progress: Progress) -> bool:
        """Back up a closed bank that is about to be replaced by the backup `name`.

        False if the bank is damaged and cannot be backed up, which is a usual reason to restore.
        If an intact bank cannot be backed up (the disk is full), the error is raised and the bank
        is not replaced.
        """
        try:
            database = await self._banks.open_database(bank)
            try:
                await self._back_up(bank, database, progress, spare=name)
            finally:
                await database.close()
        except (StorageDamaged, StorageFailed, StorageForeign):
            return False
        return True

    async def _check(self, opened: OpenBank, progress: Progress) -> Checked:
        """Check a copy of the bank, so that neither reads nor writes wait.

        The lock excludes an erase, which would have to wait for the copy to be deleted.
        """
        async with opened.copying:
            checked = await checking.check_copy(opened, progress)
        opened.degraded -= {"damaged"}
        if checked.problems:
            opened.degraded.add("damaged")
            names = sorted({problem.name for problem in checked.problems})
            log.warning("bank.damaged", bank=opened.bank.id, problems=names)
        return checked


def _log(event: str, opened: OpenBank, began: float, **fields: object) -> None:
    ms = round((time.monotonic() - began) * 1000)
    log.info(event, bank=opened.bank.id, ms=ms, **fields)


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


def _reporter(progress: Progress | None) -> Progress:
    given = callback("progress", progress)
    return ignore if given is None else given

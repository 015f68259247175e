"""Maintenance operations: statistics, health, check, repair, erase, export, backup, restore."""

import secrets
import sqlite3
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import anyio
from msgspec.structs import replace

from store import log
from store.arguments import bank_argument, callback
from store.engine import Progress
from store.errors import (
    StorageDamaged,
    StorageFailed,
    StorageForeign,
)
from store.files import directory_fault, file_error, file_errors
from store.model import (
    BackedUp,
    Bank,
    Checked,
    EngineHealth,
    Erased,
    Recovered,
)
from store.operations.bank_access import LONG_READ_SECONDS, Ranking, in_changes, shielded
from store.operations.erasure import Erasure
from store.rows.transaction import WriteTransaction
from store.sqlite.banks import DATABASE, Banks
from store.sqlite.catalogue import Catalogue
from store.sqlite.connection import Connection
from store.sqlite.database import Database
from store.sqlite.maintenance import (
    backup,
    checking,
    erase,
    integrity,
    word_index,
)
from store.sqlite.maintenance.portion import WHOLE, ignore, portion
from store.sqlite.migrate import migrate
from store.sqlite.open_bank import SNAPSHOT, OpenBank, claim
from store.validate import storable_text
from store.vectors.soundness import forget_vectors

BACKUPS_KEPT: Final = backup.KEEP


class Maintenance(Erasure):
    """See `store.engine.Engine`."""

    erase_wait_seconds = erase.WAIT_SECONDS

    def __init__(
        self, catalogue: Catalogue, banks: Banks, ranking: Ranking, **options: Any
    ) -> None:
        super().__init__(catalogue, banks, ranking, **options)
        self._home = catalogue
        self._registry = banks

    def health(self) -> EngineHealth:
        degraded = set(self._ranking.degraded())
        for opened in self._registry.open_banks():
            degraded |= opened.degraded
            if opened.database.is_full:
                degraded.add("storage-full")
        if self._home.database.is_full:
            degraded.add("storage-full")
        if self._registry.unfinished:
            degraded.add("erase-incomplete")
        if self._registry.orphans:
            degraded.add("banks-orphaned")
        if self._home.is_replaced:
            degraded.add("catalogue-replaced")
        if self._registry.being_deleted:
            degraded.add("deletion-incomplete")
        lost = directory_fault(self._home.directory, self._home.database.path)
        if lost is not None:
            degraded.add(lost)
        return EngineHealth(
            is_ready=lost is None,
            degraded=tuple(sorted(degraded)),
            banks=len(self._registry.all()),
            open_banks=len(self._registry.open_banks()),
            storage=f"sqlite {sqlite3.sqlite_version}",
            embedder=self._ranking.embedder,
        )

    async def recover_banks(self) -> Recovered:
        recovered = await self._registry.recover()
        log.info("banks.recovered", banks=len(recovered.banks), refused=len(recovered.refused))
        return recovered

    async def check(self, bank: str, *, progress: Progress | None = None) -> Checked:
        bank = bank_argument(bank)
        progress = _reporter(progress)
        async with self._registry.use(bank) as opened:
            return await self._check(opened, progress)

    async def repair(self, bank: str, *, progress: Progress | None = None) -> Checked:
        bank = bank_argument(bank)
        report = _reporter(progress)
        async with self._registry.use(bank) as opened:

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
        async with self._registry.use(bank) as opened:
            began = time.monotonic()
            renew = partial(word_index.renew, progress=portion(progress, 0, 500))
            items = await opened.database.maintain(renew)
            await opened.database.write(forget_vectors)
            await self._ranking.reset(opened)
            await self._ranking.written(opened)
            _log("bank.rebuilt", opened, began, items=items)
            return await self._check(opened, portion(progress, 500, WHOLE))

    async def back_up(self, bank: str, *, progress: Progress | None = None) -> BackedUp:
        bank = bank_argument(bank)
        progress = _reporter(progress)
        async with self._registry.use(bank) as opened, opened.copying:
            began = time.monotonic()
            made = await self._back_up(opened.bank, opened.database, progress)
            _log("backup.made", opened, began, items=made.items, bytes=made.bytes)
            return made

    async def backups(self, bank: str) -> list[BackedUp]:
        bank = bank_argument(bank)
        directory = self._registry.backups(self._registry.get(bank))

        def listing() -> list[BackedUp]:
            with file_errors():
                return backup.listing(directory, bank)

        return await anyio.to_thread.run_sync(listing)

    async def restore(self, bank: str, name: str, *, progress: Progress | None = None) -> BackedUp:
        bank, name = bank_argument(bank), storable_text("name", name)
        report = _reporter(progress)
        known = self._registry.get(bank)
        backups = self._registry.backups(known)
        began = time.monotonic()
        items = await anyio.to_thread.run_sync(
            lambda: backup.verify(backup.find(backups, name), portion(report, 0, 300))
        )
        async with self._registry.exclusively(bank) as directory:
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

    async def _erase(self, bank: str, work: Callable[[WriteTransaction], Erased]) -> Erased:
        """All steps of `erase.py`. The catalogue records the erase until the last step is done."""

        async def erase_all(opened: OpenBank) -> Erased:
            def begin() -> None:
                self._registry.unfinished.add(opened.bank.id)

            began = time.monotonic()
            await self._registry.note_erasing(opened.bank)
            erased = await opened.database.write(in_changes(work), then=begin)
            log.info("erase.begun", bank=opened.bank.id, items=erased.items)
            copies = await self._finish_erase(opened)
            _log("erase.finished", opened, began, items=erased.items, copies_removed=copies)
            return replace(erased, copies_removed=copies)

        async with self._registry.use(bank) as opened, opened.copying:
            return await shielded(erase_all(opened))  # cancelling does not stop it half-way

    async def _finish_erase(self, opened: OpenBank) -> int:
        await self._ranking.reset(opened)

        def finish(connection: Connection) -> int:
            with opened.files:
                return erase.finish(
                    connection,
                    opened.directory,
                    self._registry.backups(opened.bank),
                    self._now(),
                    wait_seconds=self.erase_wait_seconds,
                )

        copies = await opened.database.maintain(finish)
        await self._registry.note_erased(opened.bank)
        return copies

    async def _back_up(
        self, bank: Bank, database: Database, progress: Progress, *, spare: str = ""
    ) -> BackedUp:
        now = self._now()
        directory = self._registry.backups(bank)
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
            database = await self._registry.open_database(bank)
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


def _reporter(progress: Progress | None) -> Progress:
    given = callback("progress", progress)
    return ignore if given is None else given

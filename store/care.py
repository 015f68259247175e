"""Verbs of care: numbers, health, checking and mending, erasing, export, backup."""

import secrets
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import anyio

from store import backup, erase, integrity, memories, portability, stats
from store.access import LONG_READ_SECONDS, Access, check_page, in_changes, shielded
from store.banks import DATABASE, SNAPSHOT, OpenBank, claim
from store.database import Connection, file_error
from store.engine import Progress
from store.errors import StorageError
from store.memories import Changes
from store.migrate import migrate
from store.model import (
    BackedUp,
    Checked,
    Erased,
    Exported,
    Health,
    Imported,
    SessionActivity,
    Stats,
)
from store.validate import check_labels

IMPORT_BATCH: Final = 200
BACKUPS_KEPT: Final = backup.KEEP


class Care(Access):
    """See `store.engine.Engine`."""

    erase_wait_seconds = erase.WAIT_SECONDS

    async def stats(self, bank: str) -> Stats:
        async with self._banks.use(bank) as opened:
            return await opened.database.read(
                lambda connection: stats.stats(connection, opened.name, opened.directory)
            )

    async def sessions_in(self, bank: str, *, limit: int = 50) -> list[SessionActivity]:
        check_page(limit, 0)
        return await self._read(bank, lambda connection: stats.sessions(connection, limit=limit))

    def health(self) -> Health:
        degraded = set(self._ranking.degraded())
        for opened in self._banks.open_banks():
            degraded |= opened.degraded
        return Health(
            is_ready=True,
            degraded=tuple(sorted(degraded)),
            banks=len(self._banks.all()),
            open_banks=len(self._banks.open_banks()),
            sqlite=sqlite3.sqlite_version,
            embedder=self._ranking.embedder,
        )

    async def check(self, bank: str) -> Checked:
        async with self._banks.use(bank) as opened:
            return await self._check(opened)

    async def repair(self, bank: str) -> Checked:
        async with self._banks.use(bank) as opened:
            await opened.database.maintain(
                lambda connection: integrity.repair(connection, opened.directory)
            )
            await self._void_caches(opened)
            await self._ranking.written(opened)
            return await self._check(opened)

    async def rebuild(self, bank: str) -> Checked:
        async with self._banks.use(bank) as opened:
            await opened.database.write(integrity.rebuild_words)
            await opened.database.write(integrity.forget_vectors)
            await self._void_caches(opened)
            await self._ranking.written(opened)
            return await self._check(opened)

    async def export(self, bank: str, path: Path, *, progress: Progress | None = None) -> Exported:
        async with self._banks.use(bank) as opened:
            return await opened.database.read(
                lambda connection: portability.export(connection, opened.name, path, progress),
                seconds=LONG_READ_SECONDS,
            )

    async def import_file(
        self, bank: str, path: Path, *, progress: Progress | None = None
    ) -> Imported:
        try:
            total = await anyio.to_thread.run_sync(portability.verify, path)
        except OSError as error:
            raise file_error(error) from error
        await self._banks.ensure(bank)
        created = known = done = 0
        batches = portability.batches(path, IMPORT_BATCH)
        while batch := await anyio.to_thread.run_sync(next, batches, None):
            new, old = await self._put(bank, partial(portability.take, records=batch))
            created, known, done = created + new, known + old, done + len(batch)
            if progress is not None:
                progress(done, total)
        return Imported(bank=bank, created=created, known=known)

    async def back_up(self, bank: str) -> BackedUp:
        async with self._banks.use(bank) as opened:
            return await self._back_up(opened)

    async def backups(self, bank: str) -> list[BackedUp]:
        directory = self._banks.backups(self._banks.get(bank))
        return await anyio.to_thread.run_sync(backup.listing, directory, bank)

    async def restore(self, bank: str, name: str) -> BackedUp:
        known = self._banks.get(bank)
        source = backup.find(self._banks.backups(known), name)
        items = await anyio.to_thread.run_sync(backup.verify, source)
        is_sound = False
        with suppress(StorageError):  # a damaged bank is what people restore
            async with self._banks.use(bank) as opened:
                await self._void_caches(opened)
                await self._back_up(opened)
                is_sound = True
        async with self._banks.exclusively(bank) as directory:
            database = directory / DATABASE

            def claimed(connection: Connection) -> None:
                migrate(connection, "bank", path=database)
                claim(connection, known.id)

            def exchange() -> None:
                backup.put_in_place(source, database, claimed=claimed, keep_log=is_sound)
                (directory / SNAPSHOT).unlink(missing_ok=True)

            try:
                await anyio.to_thread.run_sync(exchange)
            except OSError as error:
                raise file_error(error) from error
        return BackedUp(bank=bank, name=name, bytes=0, items=items, made_at=self._now())

    async def erase(
        self,
        bank: str,
        ids: Sequence[str] = (),
        *,
        documents: Sequence[str] = (),
        reason: str = "asked for",
    ) -> Erased:
        check_labels(reason=reason)
        now = self._now()

        def work(changes: Changes) -> int:
            return erase.remove(changes, ids, documents=documents, reason=reason, now=now)

        return await self._erase(bank, work)

    async def erase_forgotten(self, bank: str, *, reason: str = "asked for") -> Erased:
        check_labels(reason=reason)
        now = self._now()

        def work(changes: Changes) -> int:
            ids = memories.forgotten_ids(changes.connection)
            return erase.remove(changes, ids, reason=reason, now=now)

        return await self._erase(bank, work)

    async def _erase(self, bank: str, work: Callable[[Changes], int]) -> Erased:
        """All steps of `erase.py`; the catalogue remembers until the last that it has begun."""
        async with self._banks.use(bank) as opened:
            await self._banks.note_erasing(opened.bank)
            count = await opened.database.write(in_changes(work))
            copies = await shielded(self._finish_erase(opened))  # begun, it is gone through with
            return Erased(items=count, copies_removed=copies)

    async def _finish_erase(self, opened: OpenBank) -> int:
        await self._void_caches(opened)
        opened.degraded.add("erase-incomplete")

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
        opened.degraded.discard("erase-incomplete")
        await self._banks.note_erased(opened.bank)
        return copies

    async def _void_caches(self, opened: OpenBank) -> None:
        """Nothing made from the bank as it was may be used, or written, from now on.

        No await lies between the two: whoever searches next finds no snapshot to begin with.
        """
        await self._ranking.reset(opened)
        opened.drop_snapshot()

    async def _back_up(self, opened: OpenBank) -> BackedUp:
        now = self._now()
        directory = self._banks.backups(opened.bank)
        name = f"{now:015d}-{secrets.token_hex(4)}"

        def work(connection: Connection) -> BackedUp:
            made = backup.make(connection, directory, bank=opened.name, name=name, now=now)
            backup.prune(directory, BACKUPS_KEPT)
            return made

        return await opened.database.read(work, seconds=LONG_READ_SECONDS)

    async def _check(self, opened: OpenBank) -> Checked:
        checked = await opened.database.maintain(
            lambda connection: integrity.check(connection, opened.name)
        )
        opened.degraded -= {"damaged"}
        if checked.problems:
            opened.degraded.add("damaged")
        return checked

"""The banks of a data directory: one directory each, looked up by name, some of them open.

Each bank has its own database file, statistics, index and threads, so that no query, count or
failure of one bank affects another. A name is never used as a path: the directory of a bank is
its random id, and only the catalogue maps names to ids.

Lock order: the registry's lock, then a bank's database. The registry's lock is never held while
waiting for the users of a bank.
"""

import secrets
import shutil
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final

import anyio
from msgspec.structs import replace

from store import log
from store.errors import (
    BankExists,
    BankNotFound,
    EraseIncomplete,
    StorageBusy,
    StorageClosed,
    StorageFull,
    StoreError,
    TooManyBanks,
)
from store.files import file_error, file_errors, make_private_directory, sync_directory
from store.model import Bank, Recovered
from store.sqlite.catalogue import BANKS, Catalogue
from store.sqlite.connection import Connection
from store.sqlite.database import Database
from store.sqlite.maintenance import recovery
from store.sqlite.maintenance.erase import finish
from store.sqlite.migrate import migrate
from store.sqlite.open_bank import OpenBank, claim, describe
from store.sqlite.storage_errors import BROKEN, storage_error
from store.validate import bank_name, check_range

OPEN_LIMIT: Final = 64
WARM: Final = 24  # open banks that keep idle readers, which cost file descriptors
BANK_LIMIT: Final = 10_000
QUOTA_LIMIT: Final = 2**62
DATABASE: Final = recovery.DATABASE


class Banks:
    """The banks of a data directory. `load` must be called before use."""

    def __init__(self, catalogue: Catalogue, *, open_limit: int = OPEN_LIMIT) -> None:
        self._catalogue = catalogue
        self._directory = catalogue.directory / BANKS
        self._open_limit = open_limit
        self._lock = anyio.Lock()
        self._by_name: dict[str, Bank] = {}
        self._open: dict[str, OpenBank] = {}
        self._barred: set[str] = set()
        self.unfinished: set[str] = set()  # ids of banks with an unfinished erase
        self.being_deleted: set[str] = set()  # ids of deleted banks whose files still exist
        self.orphans: frozenset[str] = frozenset()  # directories that the catalogue does not list
        self._closed = False
        self.before_closing: Callable[[OpenBank], Awaitable[None]] | None = None

    async def load(self) -> None:
        """Read the catalogue, and finish deletions that the last process did not finish."""
        try:
            await anyio.to_thread.run_sync(make_private_directory, self._directory)
        except OSError as error:
            raise file_error(error) from error

        def select(connection: Connection) -> tuple[list[Bank], list[str]]:
            rows = connection.execute("SELECT id, name, created_at, quota_bytes FROM banks")
            banks = [
                Bank(id=row[0], name=row[1], created_at=row[2], quota_bytes=row[3]) for row in rows
            ]
            leaving = [id for (id,) in connection.execute("SELECT id FROM banks_leaving")]
            return banks, leaving

        banks, leaving = await self._catalogue.database.read(select)
        self._by_name = {bank.name: bank for bank in banks}
        for id in leaving:
            with suppress(StoreError):  # reported by `health`; the other banks must open
                await self._remove_files(id)
        await self._find_orphans()

    async def recover(self) -> Recovered:
        """Add the banks that the catalogue does not list to it again, under their own names."""
        refused: list[tuple[str, str]] = []
        recovered: list[Bank] = []
        async with self._lock:
            await self._find_orphans()
            for id in sorted(self.orphans):
                try:
                    found = await anyio.to_thread.run_sync(recovery.identity, self._directory / id)
                    bank = recovery.as_bank(found, self._by_name, self._catalogue.now())
                    bank_name(bank.name)
                    await self._insert(bank)
                    recovered.append(bank)
                except OSError as error:
                    refused.append((id, str(file_error(error))))
                except StoreError as error:
                    refused.append((id, str(error)))
            await self._find_orphans()
        await self._catalogue.back_up()
        return Recovered(banks=tuple(recovered), refused=tuple(refused))

    async def _find_orphans(self) -> None:
        known = {bank.id for bank in self._by_name.values()} | self.being_deleted
        find = partial(recovery.orphans, self._directory, known)
        try:
            self.orphans = frozenset(await anyio.to_thread.run_sync(find))
        except OSError as error:
            raise file_error(error) from error
        if self.orphans:
            log.warning("banks.orphaned", banks=len(self.orphans))

    # --- names ----------------------------------------------------------------------------

    def get(self, name: str) -> Bank:
        """The bank of that name, or `BankNotFound`."""
        bank = self._by_name.get(name) or self._by_name.get(bank_name(name))
        if bank is None:
            raise BankNotFound(name)
        return bank

    def all(self) -> list[Bank]:
        return sorted(self._by_name.values(), key=lambda bank: bank.name)

    async def listed(self) -> list[Bank]:
        return self.all()

    async def create(self, name: str, *, quota_bytes: int | None = None) -> Bank:
        """Create an empty bank. Its directory is created on first use."""
        name = bank_name(name)
        if quota_bytes is not None:
            check_range("quota_bytes", quota_bytes, 1, QUOTA_LIMIT)
        async with self._lock:
            if name in self._by_name:
                raise BankExists(name)
            if len(self._by_name) >= BANK_LIMIT:
                raise TooManyBanks(BANK_LIMIT)
            bank = Bank(
                id=secrets.token_hex(16),
                name=name,
                created_at=self._catalogue.now(),
                quota_bytes=quota_bytes,
            )
            await self._insert(bank)
            return bank

    async def _insert(self, bank: Bank) -> None:
        def insert(connection: Connection) -> None:
            connection.execute(
                "INSERT INTO banks (id, name, created_at, quota_bytes) VALUES (?, ?, ?, ?)",
                (bank.id, bank.name, bank.created_at, bank.quota_bytes),
            )

        def remember() -> None:
            self._by_name[bank.name] = bank

        await self._catalogue.database.write(insert, then=remember)

    async def ensure(self, name: str) -> Bank:
        try:
            return self.get(name)
        except BankNotFound:
            pass
        try:
            return await self.create(name)
        except BankExists:
            return self.get(name)

    async def rename(self, name: str, new_name: str) -> Bank:
        new_name = bank_name(new_name)
        return await self._change(name, lambda bank: replace(bank, name=new_name))

    async def set_quota(self, name: str, quota_bytes: int | None) -> Bank:
        if quota_bytes is not None:
            check_range("quota_bytes", quota_bytes, 1, QUOTA_LIMIT)
        return await self._change(name, lambda bank: replace(bank, quota_bytes=quota_bytes))

    async def delete(self, name: str) -> None:
        """Delete a bank and all its files. Its name is free at once; current users can finish."""
        deleted: list[tuple[Bank, OpenBank | None]] = []
        try:
            async with self._lock:
                bank = self.get(name)

                def delete(connection: Connection) -> None:
                    connection.execute("DELETE FROM banks WHERE id = ?", (bank.id,))
                    connection.execute(
                        "INSERT INTO banks_leaving VALUES (?, ?)", (bank.id, self._catalogue.now())
                    )

                def remove() -> None:
                    del self._by_name[bank.name]
                    deleted.append((bank, self._open.pop(bank.id, None)))
                    self.unfinished.discard(bank.id)

                await self._catalogue.database.write(delete, then=remove)
        finally:
            # After the commit the deletion is completed, even if the caller is cancelled.
            with anyio.CancelScope(shield=True):
                for bank, opened in deleted:
                    if opened is not None:
                        await self._retire(opened)
                    await self._remove_files(bank.id)
                    await self._catalogue.back_up()

    # --- open banks -----------------------------------------------------------------------

    def use(self, name: str) -> "_Use":
        return _Use(self, self.get(name))

    async def pin(self, bank: Bank) -> OpenBank:
        opened = self._open.get(bank.id)
        if opened is None:
            opened = await self._open_bank(bank)
        opened.pins += 1
        opened.used_at = time.monotonic()
        return opened

    def open_banks(self) -> list[OpenBank]:
        return list(self._open.values())

    def directory(self, bank: Bank) -> Path:
        return self._directory / bank.id

    def backups(self, bank: Bank) -> Path:
        return self._catalogue.directory / "backups" / bank.id

    @asynccontextmanager
    async def exclusively(self, name: str) -> AsyncGenerator[Path]:
        """Close a bank, keep it closed for the duration of the block, and yield its directory."""
        async with self._lock:
            bank = self.get(name)
            if bank.id in self._barred:
                raise StorageBusy("the bank is being restored")
            self._barred.add(bank.id)
            opened = self._open.pop(bank.id, None)
        try:
            with anyio.CancelScope(shield=True):
                if opened is not None:
                    await self._retire(opened)
            yield self.directory(bank)
        finally:
            self._barred.discard(bank.id)

    async def close(self) -> None:
        """Close every open bank after it has finished its accepted work."""
        with anyio.CancelScope(shield=True):
            async with self._lock:
                self._closed = True
                opened = list(self._open.values())
                self._open.clear()
            for bank in opened:
                await self._retire(bank)

    # --- erases, as the catalogue records them ----------------------------------------------

    async def note_erasing(self, bank: Bank) -> None:
        """Record that an erase begins, so that the next start can finish it after a crash."""

        def insert(connection: Connection) -> None:
            connection.execute(
                "INSERT OR IGNORE INTO banks_erasing VALUES (?, ?)",
                (bank.id, self._catalogue.now()),
            )

        await self._catalogue.database.write(insert)

    async def note_erased(self, bank: Bank) -> None:
        def delete(connection: Connection) -> None:
            connection.execute("DELETE FROM banks_erasing WHERE id = ?", (bank.id,))

        await self._catalogue.database.write(delete)
        self.unfinished.discard(bank.id)

    async def finish_erasing(self) -> None:
        """Open every bank with an interrupted erase, because opening a bank finishes it."""

        def select(connection: Connection) -> list[str]:
            return [id for (id,) in connection.execute("SELECT id FROM banks_erasing")]

        for id in await self._catalogue.database.read(select):
            for bank in [bank for bank in self.all() if bank.id == id]:
                self.unfinished.add(id)
                try:
                    async with self.use(bank.name) as opened:
                        if opened.bank.id not in self.unfinished:
                            await self.note_erased(bank)
                except StoreError:
                    continue  # users of this bank will get the error; the others must open

    # --- opening and closing --------------------------------------------------------------

    async def _open_bank(self, bank: Bank) -> OpenBank:
        async with self._lock:
            if self._closed:
                raise StorageClosed("the engine is closed")
            current = self._by_name.get(bank.name)
            if current is None or current.id != bank.id:
                raise BankNotFound(bank.name)
            if bank.id in self._barred:
                raise StorageBusy("the bank is being restored")
            known = self._open.get(bank.id)
            if known is not None:
                return known
            await self._make_room()
            opened = OpenBank(current, self.directory(bank), await self.open_database(bank))
            self._open[bank.id] = opened
            return opened

    async def open_database(self, bank: Bank) -> Database:
        """Open the database of a closed bank, migrate it, and finish an interrupted erase.

        The caller must hold the registry's lock or use `exclusively`.
        """
        directory = self.directory(bank)
        try:
            await anyio.to_thread.run_sync(make_private_directory, directory)
        except OSError as error:
            raise file_error(error) from error
        path = directory / DATABASE
        unfinished: list[str] = []

        def prepare(connection: Connection) -> None:
            with file_errors():
                migrate(connection, "bank", path=path)
            claim(connection, bank)
            try:
                finish(connection, directory, self.backups(bank), self._catalogue.now())
            except EraseIncomplete:
                unfinished.append(bank.id)
            except BROKEN as error:
                # The erase needs space and no readers. The bank can be used without.
                if not isinstance(storage_error(error), StorageFull | StorageBusy):
                    raise
                unfinished.append(bank.id)

        database = await Database.open(path, prepare=prepare)
        if unfinished:
            log.warning("erase.incomplete", bank=bank.id)
        elif bank.id in self.unfinished:
            log.info("erase.resumed", bank=bank.id)
        self.unfinished.discard(bank.id)
        self.unfinished.update(unfinished)
        return database

    async def _make_room(self) -> None:
        """Close the least recently used banks until one more may be open."""
        idle = sorted(
            (bank for bank in self._open.values() if not bank.pins), key=lambda bank: bank.used_at
        )
        too_many = max(0, len(self._open) - self._open_limit + 1)
        for bank in idle[:too_many]:
            del self._open[bank.bank.id]
            await self._close_bank(bank)
        for bank in idle[too_many : too_many + max(0, len(self._open) - WARM)]:
            await bank.database.rest()

    async def _retire(self, opened: OpenBank) -> None:
        """Close a bank that was removed from the registry, after its last user has finished."""
        opened.is_awaited = True
        if opened.pins:
            await opened.unpinned.wait()
        await self._close_bank(opened)

    async def _close_bank(self, opened: OpenBank) -> None:
        with anyio.CancelScope(shield=True):
            if self.before_closing is not None:
                await self.before_closing(opened)
            await opened.database.close()

    async def _change(self, name: str, change: Callable[[Bank], Bank]) -> Bank:
        async with self._lock:
            bank = self.get(name)  # it may have changed while we waited for the lock
            changed = change(bank)
            if changed.name != bank.name and changed.name in self._by_name:
                raise BankExists(changed.name)

            def update(connection: Connection) -> None:
                connection.execute(
                    "UPDATE banks SET name = ?, quota_bytes = ? WHERE id = ?",
                    (changed.name, changed.quota_bytes, bank.id),
                )

            def remember() -> None:
                del self._by_name[bank.name]
                self._by_name[changed.name] = changed
                if bank.id in self._open:
                    self._open[bank.id].bank = changed

            await self._catalogue.database.write(update, then=remember)
        if (self.directory(changed) / DATABASE).exists():
            # Best-effort: the next opening of the bank writes them too.
            with suppress(StoreError):
                async with self.use(changed.name) as opened:
                    await opened.database.write(partial(describe, bank=opened.bank))
        return changed

    async def _remove_files(self, id: str) -> None:
        def remove() -> None:
            # Renamed first, so that a half-deleted bank is never taken for an orphan.
            directory = self._directory / id
            marked = directory.with_name(id + recovery.DELETED)
            if directory.is_dir():
                directory.rename(marked)
                sync_directory(self._directory)
            for each in (directory, marked, self._catalogue.directory / "backups" / id):
                if each.exists():
                    shutil.rmtree(each)
            sync_directory(self._directory)

        self.being_deleted.add(id)
        try:
            await anyio.to_thread.run_sync(remove)
        except OSError as error:
            raise file_error(error) from error

        def forget(connection: Connection) -> None:
            connection.execute("DELETE FROM banks_leaving WHERE id = ?", (id,))

        await self._catalogue.database.write(forget)
        self.being_deleted.discard(id)


class _Use:
    """A pin on a bank for the duration of a block."""

    __slots__ = ("_bank", "_banks", "_opened")

    def __init__(self, banks: Banks, bank: Bank) -> None:
        self._banks = banks
        self._bank = bank
        self._opened: OpenBank | None = None

    async def __aenter__(self) -> OpenBank:
        self._opened = await self._banks.pin(self._bank)
        return self._opened

    async def __aexit__(self, *exception: object) -> None:
        if self._opened is not None:
            self._opened.unpin()

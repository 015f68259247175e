"""The banks on a server, and those of them that this daemon uses.

Which banks exist is known to the server alone, because other daemons create, rename and delete
banks too. A daemon remembers a bank for `FRESH_SECONDS`; a deleted bank is noticed at once, because
every transaction looks at the bank's counters (`database.py`).

The vectors that this daemon has in memory are bounded: when they take more than `vector_bytes`, the
banks that were used least recently are dropped from memory. Nothing is lost: the rows are on the
server.
"""

import secrets
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final, cast

from msgspec.structs import replace

from store.database import Connection
from store.errors import BankExists, BankNotFound, TooManyBanks
from store.model import Bank
from store.postgres.connection import BankConnection
from store.postgres.database import Pools, ServerDatabase
from store.postgres.scoping import BANK_TABLES
from store.validate import bank_name, check_range

FRESH_SECONDS: Final = 1.0
BANK_LIMIT: Final = 1_000_000
QUOTA_LIMIT: Final = 2**62
OPEN_LIMIT: Final = 4_096
VECTOR_BYTES: Final = 512 * 2**20

_COLUMNS: Final = "number, id, name, created_at, quota_bytes"


class ServerBank:
    """A bank that this daemon uses. Implements `store.bank.OpenBank`."""

    is_shared = True
    snapshot = None

    def __init__(self, bank: Bank, database: ServerDatabase) -> None:
        self.bank = bank
        self.database = database
        self.degraded: set[str] = set()
        self.files: AbstractContextManager[Any] = nullcontext()
        self.pins = 0
        self.used_at = 0.0
        self.looked_at = 0.0

    @property
    def name(self) -> str:
        return self.bank.name

    def delete_snapshot(self, *, then: Callable[[], None]) -> None:
        then()

    def disk_bytes(self) -> None:
        return None


class ServerBanks:
    """The banks of a server. Implements `store.bank.Banks`."""

    def __init__(
        self,
        pools: Pools,
        catalogue: ServerDatabase,
        now: Callable[[], int],
        *,
        vector_bytes: int = VECTOR_BYTES,
        open_limit: int = OPEN_LIMIT,
    ) -> None:
        self._pools = pools
        self._catalogue = catalogue
        self._now = now
        self._vector_bytes = vector_bytes
        self._open_limit = open_limit
        self._open: dict[str, ServerBank] = {}  # by name, the least recently used first
        self.known = 0  # the number of banks when they were last listed
        self.before_closing: Callable[[ServerBank], Awaitable[None]] | None = None
        self.cached_bytes: Callable[[ServerBank], int] = lambda _: 0

    # --- names ----------------------------------------------------------------------------

    async def get(self, name: str) -> Bank:
        return (await self._look(bank_name(name))).bank

    async def listed(self) -> list[Bank]:
        def select(connection: Connection) -> list[Bank]:
            rows = connection.execute(f"SELECT {_COLUMNS} FROM banks ORDER BY name")
            return [_bank(row) for row in rows]

        banks = await self._catalogue.read(select)
        self.known = len(banks)
        return banks

    async def create(self, name: str, *, quota_bytes: int | None = None) -> Bank:
        name = bank_name(name)
        if quota_bytes is not None:
            check_range("quota_bytes", quota_bytes, 1, QUOTA_LIMIT)
        bank = Bank(
            id=secrets.token_hex(16), name=name, created_at=self._now(), quota_bytes=quota_bytes
        )

        def insert(connection: Connection) -> int:
            (count,) = connection.execute("SELECT count(*) FROM banks").fetchone()
            if count >= BANK_LIMIT:
                raise TooManyBanks(BANK_LIMIT)
            row = connection.execute(
                "INSERT INTO banks (id, name, created_at, quota_bytes) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (name) DO NOTHING RETURNING number",
                (bank.id, bank.name, bank.created_at, bank.quota_bytes),
            ).fetchone()
            if row is None:
                raise BankExists(name)
            cast("BankConnection", connection).enter(row[0])
            connection.execute("INSERT INTO state (change) VALUES (0)")
            return int(row[0])

        number = await self._catalogue.write(insert)
        self.known += 1
        self._remember(bank, number)
        return bank

    async def ensure(self, name: str) -> Bank:
        try:
            return await self.get(name)
        except BankNotFound:
            pass
        try:
            return await self.create(name)
        except BankExists:
            return await self.get(name)

    async def rename(self, name: str, new_name: str) -> Bank:
        new_name = bank_name(new_name)
        return await self._change(name, lambda bank: replace(bank, name=new_name))

    async def set_quota(self, name: str, quota_bytes: int | None) -> Bank:
        if quota_bytes is not None:
            check_range("quota_bytes", quota_bytes, 1, QUOTA_LIMIT)
        return await self._change(name, lambda bank: replace(bank, quota_bytes=quota_bytes))

    async def delete(self, name: str) -> None:
        """Delete a bank with all its rows, in one transaction."""
        opened = await self._look(bank_name(name))
        number = opened.database.number

        def delete(connection: Connection) -> None:
            for table in reversed(BANK_TABLES):
                if table != "state":
                    connection.execute(f"DELETE FROM {table}")
            connection.execute("DELETE FROM banks WHERE number = ?", (number,))

        await opened.database.write(delete)
        self.known = max(0, self.known - 1)
        await self._close(opened)

    async def _change(self, name: str, change: Callable[[Bank], Bank]) -> Bank:
        name = bank_name(name)
        opened = await self._look(name)
        changed = change(opened.bank)

        def update(connection: Connection) -> None:
            taken = connection.execute(
                "SELECT 1 FROM banks WHERE name = ? AND id <> ?", (changed.name, changed.id)
            ).fetchone()
            if taken is not None:
                raise BankExists(changed.name)
            updated = connection.execute(
                "UPDATE banks SET name = ?, quota_bytes = ? WHERE id = ?",
                (changed.name, changed.quota_bytes, changed.id),
            )
            if not updated.rowcount:
                raise BankNotFound(name)

        await self._catalogue.write(update)
        self._open.pop(name, None)
        opened.bank = changed
        opened.database.name = changed.name
        self._open[changed.name] = opened
        return changed

    # --- banks in use ---------------------------------------------------------------------

    def use(self, name: str) -> "_Use":
        return _Use(self, bank_name(name))

    def open_banks(self) -> list[ServerBank]:
        return list(self._open.values())

    async def close(self) -> None:
        """Drop every bank from memory. The database itself stays as it is."""
        for opened in list(self._open.values()):
            await self._close(opened)

    async def pin(self, name: str) -> ServerBank:
        opened = await self._look(name)
        opened.pins += 1
        opened.used_at = time.monotonic()
        self._open[name] = self._open.pop(name, opened)
        return opened

    async def unpin(self, opened: ServerBank, *, is_gone: bool) -> None:
        opened.pins -= 1
        if is_gone:
            await self._close(opened)
            return
        await self._make_room()

    async def _look(self, name: str) -> ServerBank:
        """The bank of that name, asked from the server unless it was seen just now."""
        opened = self._open.get(name)
        if opened is not None and time.monotonic() - opened.looked_at < FRESH_SECONDS:
            return opened

        def select(connection: Connection) -> Any:
            return connection.execute(
                f"SELECT {_COLUMNS} FROM banks WHERE name = ?", (name,)
            ).fetchone()

        row = await self._catalogue.read(select)
        if row is None:
            if opened is not None:
                await self._close(opened)
            raise BankNotFound(name)
        return self._remember(_bank(row), row[0])

    def _remember(self, bank: Bank, number: int) -> ServerBank:
        opened = self._open.get(bank.name)
        if opened is None or opened.bank.id != bank.id:
            database = ServerDatabase(self._pools, number, bank.name)
            opened = self._open[bank.name] = ServerBank(bank, database)
        opened.bank = bank
        opened.looked_at = time.monotonic()
        return opened

    async def _make_room(self) -> None:
        """Drop the least recently used banks from memory until the limits are kept."""
        sizes = {opened.name: self.cached_bytes(opened) for opened in self._open.values()}
        total = sum(sizes.values())
        for opened in list(self._open.values())[:-1]:
            if total <= self._vector_bytes and len(self._open) <= self._open_limit:
                return
            if not opened.pins:
                total -= sizes.get(opened.name, 0)
                await self._close(opened)

    async def _close(self, opened: ServerBank) -> None:
        if self._open.get(opened.name) is opened:
            del self._open[opened.name]
        if self.before_closing is not None:
            await self.before_closing(opened)


class _Use:
    """A pin on a bank for the duration of a block."""

    __slots__ = ("_banks", "_name", "_opened")

    def __init__(self, banks: ServerBanks, name: str) -> None:
        self._banks = banks
        self._name = name
        self._opened: ServerBank | None = None

    async def __aenter__(self) -> ServerBank:
        self._opened = await self._banks.pin(self._name)
        return self._opened

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._opened is not None:
            is_gone = kind is not None and issubclass(kind, BankNotFound)
            await self._banks.unpin(self._opened, is_gone=is_gone)


def _bank(row: tuple[Any, ...]) -> Bank:
    return Bank(id=row[1], name=row[2], created_at=row[3], quota_bytes=row[4])

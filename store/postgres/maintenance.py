"""Maintenance operations on a server: health, check, repair, rebuild, erase.

Backups belong to the server's operator, who also backs up everything else on it. `back_up` and
`restore` are refused with the name of the tools.
"""

import time
from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import replace

from store import log
from store.arguments import bank_argument
from store.database import Connection
from store.engine import Progress
from store.errors import InvalidInput
from store.model import BackedUp, Checked, EngineHealth, Erased, Recovered
from store.operations.bank_access import LONG_READ_SECONDS, Ranking, in_changes, shielded
from store.operations.erasure import Erasure
from store.postgres import care
from store.postgres.banks import ServerBank, ServerBanks
from store.postgres.catalogue import ServerCatalogue
from store.rows.transaction import WriteTransaction
from store.vectors.soundness import forget_vectors

BACKUPS: Final = (
    "are made with the server's own tools (pg_dump, pg_basebackup, or the provider's); a single"
    " bank can be exported and imported"
)


REMAINS: Final = (
    "the server's write-ahead log, its replicas and its backups still contain them until its own"
    " retention removes them, and its files until VACUUM"
)


class ServerMaintenance(Erasure):
    """See `store.engine.Engine`."""

    def __init__(
        self, catalogue: ServerCatalogue, banks: ServerBanks, ranking: Ranking, **options: Any
    ) -> None:
        super().__init__(catalogue, banks, ranking, **options)
        self._server = catalogue
        self._registry = banks

    def health(self) -> EngineHealth:
        degraded = set(self._ranking.degraded()) | self._server.degraded()
        for opened in self._registry.open_banks():
            degraded |= opened.degraded
            if opened.database.is_full:
                degraded.add("storage-full")
        return EngineHealth(
            is_ready="storage-unreachable" not in degraded,
            degraded=tuple(sorted(degraded)),
            banks=self._registry.known,
            open_banks=len(self._registry.open_banks()),
            storage=self._server.version,
            embedder=self._ranking.embedder,
        )

    async def recover_banks(self) -> Recovered:
        """A server has one catalogue, in the same database, so no bank can be missing from it."""
        return Recovered(banks=(), refused=())

    async def check(self, bank: str, *, progress: Progress | None = None) -> Checked:
        """See `store.engine.Engine`. The checks here report no progress."""
        bank = bank_argument(bank)
        async with self._registry.use(bank) as opened:
            return await self._check(opened)

    async def repair(self, bank: str, *, progress: Progress | None = None) -> Checked:
        bank = bank_argument(bank)
        async with self._registry.use(bank) as opened:

            def repair(connection: Connection) -> None:
                care.renew_words(connection)
                care.realign_vectors(connection)

            began = time.monotonic()
            await opened.database.write(repair)
            await self._ranking.reset(opened)
            await self._ranking.written(opened)
            checked = await self._check(opened)
            _log("bank.repaired", opened, began, problems_left=len(checked.problems))
            return checked

    async def rebuild(self, bank: str, *, progress: Progress | None = None) -> Checked:
        bank = bank_argument(bank)
        async with self._registry.use(bank) as opened:
            began = time.monotonic()
            items = await opened.database.write(care.renew_words)
            await opened.database.write(forget_vectors)
            await self._ranking.reset(opened)
            await self._ranking.written(opened)
            _log("bank.rebuilt", opened, began, items=items)
            return await self._check(opened)

    async def back_up(self, bank: str, *, progress: Progress | None = None) -> BackedUp:
        bank_argument(bank)
        raise InvalidInput("backups", BACKUPS)

    async def backups(self, bank: str) -> list[BackedUp]:
        bank_argument(bank)
        return []

    async def restore(self, bank: str, name: str, *, progress: Progress | None = None) -> BackedUp:
        bank_argument(bank)
        raise InvalidInput("backups", BACKUPS)

    async def _erase(self, bank: str, work: Callable[[WriteTransaction], Erased]) -> Erased:
        """Delete the rows. Copies in the server's log, replicas and backups are out of reach."""
        now = self._now()

        def remove(changes: WriteTransaction) -> Erased:
            erased = work(changes)
            changes.connection.execute(
                "UPDATE tombstones SET finished_at = ? WHERE finished_at IS NULL", (now,)
            )
            return erased

        async def erase_all(opened: ServerBank) -> Erased:
            began = time.monotonic()
            erased = await opened.database.write(in_changes(remove))
            await self._ranking.reset(opened)
            _log("erase.finished", opened, began, items=erased.items)
            return replace(erased, remains=REMAINS)

        async with self._registry.use(bank) as opened:
            return await shielded(erase_all(opened))

    async def _check(self, opened: ServerBank) -> Checked:
        def work(connection: Connection) -> Checked:
            return care.check(connection, opened.name)

        checked = await opened.database.read(work, seconds=LONG_READ_SECONDS)
        opened.degraded.discard("damaged")
        if checked.problems:
            opened.degraded.add("damaged")
            names = sorted({problem.name for problem in checked.problems})
            log.warning("bank.damaged", bank=opened.bank.id, problems=names)
        return checked


def _log(event: str, opened: ServerBank, began: float, **fields: object) -> None:
    ms = round((time.monotonic() - began) * 1000)
    log.info(event, bank=opened.bank.id, ms=ms, **fields)

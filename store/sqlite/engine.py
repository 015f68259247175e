"""The embedded engine: banks in SQLite files on the local disk.

Its operations on items are those of all engines (`store.operations`).
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from anyio.abc import TaskGroup

from store.arguments import (
    bank_argument,
    optional_integer,
)
from store.bulk.operations import UNDO_SECONDS
from store.clock import wall_clock
from store.model import (
    Bank,
)
from store.operations.bank_access import Ranking
from store.operations.items import Items
from store.operations.knowledge import Knowledge
from store.operations.sessions import Sessions
from store.search.hybrid import HybridRanking
from store.sources.ledger import SourceLedgers
from store.sqlite.banks import OPEN_LIMIT, Banks
from store.sqlite.catalogue import Catalogue
from store.sqlite.maintenance.operations import Maintenance


class EmbeddedEngine(Items, Knowledge, Maintenance, SourceLedgers):
    """Implements `store.engine.Engine`."""

    def __init__(
        self,
        catalogue: Catalogue,
        banks: Banks,
        ranking: Ranking,
        *,
        undo_seconds: float = UNDO_SECONDS,
    ) -> None:
        super().__init__(catalogue, banks, ranking, undo_seconds=undo_seconds)

    @property
    def sessions(self) -> Sessions:
        return self._home.sessions

    async def close(self) -> None:
        """Finish the accepted work and close every bank."""
        await self._registry.close()

    # --- banks ----------------------------------------------------------------------------

    async def bank(self, name: str) -> Bank:
        name = bank_argument(name)
        return self._registry.get(name)

    async def banks(self) -> list[Bank]:
        return self._registry.all()

    async def create_bank(self, name: str, *, quota_bytes: int | None = None) -> Bank:
        name = bank_argument(name)
        quota_bytes = optional_integer("quota_bytes", quota_bytes)
        return await self._registry.create(name, quota_bytes=quota_bytes)

    async def rename_bank(self, name: str, new_name: str) -> Bank:
        name, new_name = bank_argument(name), bank_argument(new_name)
        return await self._registry.rename(name, new_name)

    async def set_quota(self, name: str, quota_bytes: int | None) -> Bank:
        name = bank_argument(name)
        quota_bytes = optional_integer("quota_bytes", quota_bytes)
        return await self._registry.set_quota(name, quota_bytes)

    async def delete_bank(self, name: str) -> None:
        name = bank_argument(name)
        await self._registry.delete(name)


@asynccontextmanager
async def open_engine(
    directory: Path,
    *,
    ranking: Callable[[TaskGroup], Ranking] = HybridRanking,
    catalogue: Catalogue | None = None,
    now: Callable[[], int] = wall_clock,
    open_limit: int = OPEN_LIMIT,
    undo_seconds: float = UNDO_SECONDS,
) -> AsyncGenerator[EmbeddedEngine]:
    """Open the engine of a data directory for the duration of the block.

    The caller must make sure that no other process uses the directory. Background work (embedding,
    building indexes) ends with the block.
    """
    own = catalogue is None
    catalogue = catalogue or await Catalogue.open(directory, now=now)
    failure: Exception | None = None
    ranked: Ranking | None = None
    try:
        async with anyio.create_task_group() as background:
            banks = Banks(catalogue, open_limit=open_limit)
            ranked = ranking(background)
            banks.before_closing = ranked.leave
            engine = EmbeddedEngine(catalogue, banks, ranked, undo_seconds=undo_seconds)
            try:
                await banks.load()
                await banks.finish_erasing()
                background.start_soon(catalogue.back_up)
                yield engine
            except Exception as error:  # noqa: BLE001  (raised again, outside the task group)
                failure = error
            finally:
                await engine.close()
                background.cancel_scope.cancel()
    finally:
        if ranked is not None:
            await ranked.close()
        if own:
            await catalogue.close()
    if failure is not None:
        raise failure  # not inside an exception group, so that `except StoreError` catches it

"""The engine on a PostgreSQL server. Several daemons may use one database at the same time."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup

from store.arguments import bank_argument, optional_integer
from store.bulk.operations import UNDO_SECONDS
from store.clock import wall_clock
from store.model import Bank
from store.operations.bank_access import Ranking
from store.operations.items import Items
from store.operations.knowledge import Knowledge
from store.operations.sessions import Sessions
from store.postgres.banks import VECTOR_BYTES, ServerBanks
from store.postgres.catalogue import ServerCatalogue
from store.postgres.maintenance import ServerMaintenance
from store.search.hybrid import HybridRanking
from store.sources.ledger import SourceLedgers


class PostgresEngine(Items, Knowledge, ServerMaintenance, SourceLedgers):
    """Implements `store.engine.Engine`."""

    def __init__(
        self,
        catalogue: ServerCatalogue,
        banks: ServerBanks,
        ranking: Ranking,
        *,
        undo_seconds: float = UNDO_SECONDS,
    ) -> None:
        super().__init__(catalogue, banks, ranking, undo_seconds=undo_seconds)

    @property
    def sessions(self) -> Sessions:
        return self._server.sessions

    async def close(self) -> None:
        """Drop every bank from memory."""
        await self._registry.close()

    async def bank(self, name: str) -> Bank:
        return await self._registry.get(bank_argument(name))

    async def banks(self) -> list[Bank]:
        return await self._registry.listed()

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
        await self._registry.delete(bank_argument(name))


@asynccontextmanager
async def open_postgres_engine(
    server: str | ServerCatalogue,
    *,
    ranking: Callable[[TaskGroup], Ranking] = HybridRanking,
    now: Callable[[], int] = wall_clock,
    undo_seconds: float = UNDO_SECONDS,
    vector_bytes: int = VECTOR_BYTES,
) -> AsyncGenerator[PostgresEngine]:
    """Use the database of a server for the duration of the block.

    The server is given by its address, or opened: then the caller closes it.
    """
    own = isinstance(server, str)
    catalogue = await ServerCatalogue.open(server, now=now) if isinstance(server, str) else server
    failure: Exception | None = None
    ranked: Ranking | None = None
    try:
        async with anyio.create_task_group() as background:
            banks = ServerBanks(
                catalogue.pools, catalogue.database, catalogue.now, vector_bytes=vector_bytes
            )
            ranked = ranking(background)
            banks.before_closing = ranked.leave
            banks.cached_bytes = ranked.cached_bytes
            engine = PostgresEngine(catalogue, banks, ranked, undo_seconds=undo_seconds)
            try:
                await banks.listed()
                background.start_soon(catalogue.watch)
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
            with anyio.CancelScope(shield=True):
                await catalogue.close()
    if failure is not None:
        raise failure  # not inside an exception group, so that `except StoreError` catches it

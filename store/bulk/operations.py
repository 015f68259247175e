"""Operations on many items: tag, move, undo, and summaries of a bank."""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Final

import anyio
from msgspec.structs import replace

from store.arguments import bank_argument, checked_filters, kinds_argument, texts
from store.bulk import changes, overview
from store.bulk.changes import Undo
from store.engine import ANY
from store.errors import InvalidInput, UndoExpired
from store.exporting.export_format import ItemRecord
from store.model import BankMap, BulkChange, Facets, Filters, GrowthDay, Kind
from store.operations.bank_access import BankAccess
from store.ranking.projection import project
from store.rows import listing, memories
from store.rows.transaction import WriteTransaction
from store.undo import moved_to, new_token
from store.validate import check_list, check_range, integer, storable_text

UNDO_SECONDS: Final = 24 * 3600
MAP_LIMIT: Final = 10_000
GROWTH_DAYS: Final = 3_660


class BulkOperations(BankAccess):
    """See `store.engine.Engine`."""

    undo_ms = UNDO_SECONDS * 1000

    async def tag(
        self,
        bank: str,
        *,
        ids: Sequence[str] = (),
        kinds: Sequence[Kind] = (),
        filters: Filters | None = None,
        add: Sequence[str] = (),
        remove: Sequence[str] = (),
    ) -> BulkChange:
        bank = bank_argument(bank)
        choose = listing.choice(ids, kinds, filters)
        add, remove = texts("add", add), texts("remove", remove)
        check_list("add", add)
        check_list("remove", remove)
        undo = self._undo_token()

        def work(transaction: WriteTransaction) -> BulkChange:
            rowids = choose(transaction.connection)
            return changes.change_tags(transaction, rowids, undo, add=add, remove=remove)

        return await self._write(bank, work, grows=True)

    async def move(
        self,
        bank: str,
        to: str,
        *,
        ids: Sequence[str] = (),
        kinds: Sequence[Kind] = (),
        filters: Filters | None = None,
    ) -> BulkChange:
        bank, to = bank_argument(bank), bank_argument(to)
        choose = listing.choice(ids, kinds, filters)
        if bank == to:
            raise InvalidInput("to", "must be another bank")
        records = await self._read(
            bank, lambda connection: changes.read_records(connection, choose(connection))
        )
        if not records:
            return BulkChange(token=None, count=0, undo_until=0)
        target = await self._banks.ensure(to)
        undo = self._undo_token(target.id)
        # The copies are committed first: an interruption leaves the items in both banks, and moving
        # again removes them from this one.
        known = await self._put(to, partial(changes.receive, records=records, undo=undo))
        moved = [
            record.public_id
            for record in records
            if isinstance(record, ItemRecord) and record.public_id not in known
        ]

        def forget(transaction: WriteTransaction) -> int:
            rowids = listing.live_rowids(transaction.connection, moved)
            gone = memories.forget(
                transaction, rowids, token=undo.token, now=undo.now, undo_until=undo.until
            )
            return gone.count

        count = await self._write(bank, forget) if moved else 0
        return BulkChange(
            token=undo.token if count else None,
            count=count,
            undo_until=undo.until,
            skipped=known,
        )

    async def undo(self, bank: str, token: str) -> int:
        bank, token = bank_argument(bank), storable_text("token", token)
        undo = replace(self._undo_token(), token=token)
        since = undo.now - self.undo_ms
        work = partial(changes.undo_changes, undo=undo, since=since)
        target = moved_to(token)
        count = await self._write(bank, work)
        for other in await self._banks.listed() if target is not None else ():
            if other.id == target:
                with suppress(UndoExpired):  # every moved item was known there
                    await self._write(other.name, work)
        return count

    async def facets(
        self, bank: str, *, kinds: Sequence[Kind] = (), filters: Filters = ANY
    ) -> Facets:
        bank, kinds = bank_argument(bank), kinds_argument(kinds)
        filters = checked_filters(filters)
        return await self._read(bank, partial(overview.facets, kinds=kinds, filters=filters))

    async def growth(self, bank: str, *, days: int = 90) -> list[GrowthDay]:
        bank, days = bank_argument(bank), integer("days", days)
        check_range("days", days, 1, GROWTH_DAYS)
        now = self._now()
        return await self._read(bank, partial(overview.growth, days=days, today=now))

    async def map(self, bank: str, *, limit: int = 2_000) -> BankMap:
        bank, limit = bank_argument(bank), integer("limit", limit)
        check_range("limit", limit, 1, MAP_LIMIT)
        points, vectors, total = await self._read(bank, partial(overview.read_points, limit=limit))
        if vectors is None:
            return BankMap(points=(), total=total)
        places = await anyio.to_thread.run_sync(project, vectors)
        return BankMap(
            points=tuple(
                replace(point, x=x, y=y) for point, (x, y) in zip(points, places, strict=True)
            ),
            total=total,
        )

    def _undo_token(self, target: str = "") -> Undo:
        now = self._now()
        return Undo(token=new_token(target), now=now, until=now + self.undo_ms)

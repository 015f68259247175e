"""Operations on items and documents.

They are thin. Each opens its bank and runs a unit of work from a module in `rows/`.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from store.arguments import (
    bank_argument,
    callback,
    checked,
    checked_filters,
    checked_query,
    flag,
    json_object,
    kinds_argument,
    listed,
    optional_text,
    page_arguments,
    texts,
)
from store.bank import Banks, Catalogue
from store.bulk.operations import UNDO_SECONDS, BulkOperations
from store.database import Connection
from store.engine import ANY, Progress
from store.errors import InvalidInput, ItemChanged
from store.model import (
    Document,
    DocumentHeader,
    Filters,
    Forgotten,
    Found,
    Item,
    Kind,
    NewDocument,
    NewMemory,
    Page,
    Put,
    Query,
    SourceCount,
    Stage,
    Upserted,
)
from store.operations.bank_access import Ranking, off_loop_if_large
from store.rows import documents, listing, memories
from store.rows.items import find
from store.rows.prepared import Prepared, prepare
from store.rows.transaction import WriteTransaction
from store.undo import new_token
from store.validate import (
    check_labels,
    check_list,
    check_range,
    check_text,
    check_time,
    encode_json,
    integer,
    storable_text,
)

PUT_MANY_LIMIT: Final = 10_000


class Items(BulkOperations):
    """See `store.engine.Engine`."""

    def __init__(
        self,
        catalogue: Catalogue,
        banks: Banks,
        ranking: Ranking,
        *,
        undo_seconds: float = UNDO_SECONDS,
    ) -> None:
        super().__init__(catalogue, banks, ranking)
        self.undo_ms = int(undo_seconds * 1000)

    # --- items ----------------------------------------------------------------------------

    async def put(self, bank: str, memory: NewMemory) -> Put:
        bank = bank_argument(bank)
        memory = checked(NewMemory, memory)
        now = self._now()
        prepared = await off_loop_if_large(len(memory.text), lambda: prepare(memory, now))
        return await self._put(
            bank, lambda changes: memories.put(changes, prepared), at_least=len(memory.text)
        )

    async def put_many(
        self, bank: str, new: Sequence[NewMemory], *, progress: Progress | None = None
    ) -> list[Put]:
        bank = bank_argument(bank)
        progress = callback("progress", progress)
        new = listed("memories", new)
        check_range("memories", len(new), 0, PUT_MANY_LIMIT)
        prepared = await off_loop_if_large(
            _characters(new), partial(_prepare_all, new, self._now())
        )

        def work(changes: WriteTransaction) -> list[Put]:
            kept: list[Put] = []
            for each in prepared:
                kept.append(memories.put(changes, each))
                if progress is not None:
                    progress(len(kept), len(prepared))
            return kept

        return await self._put(bank, work, at_least=sum(len(memory.text) for memory in new))

    async def search(self, query: Query) -> Found:
        query = checked_query(query)
        async with self._banks.use(query.bank) as opened:
            return await self._ranking.search(opened, query)

    async def settle(self, bank: str, *, watch: Callable[[Stage], None] | None = None) -> None:
        """Wait until every item can be found by its meaning; for imports and benchmarks."""
        bank = bank_argument(bank)
        watch = callback("watch", watch)
        async with self._banks.use(bank) as opened:
            await self._ranking.settle(opened, watch)

    async def get(self, bank: str, id: str) -> Item:
        bank, id = bank_argument(bank), storable_text("id", id)
        return await self._read(bank, lambda connection: find(connection, id))

    async def recent(
        self,
        bank: str,
        *,
        kinds: Sequence[Kind] = (),
        filters: Filters = ANY,
        limit: int = 20,
        offset: int = 0,
        before: int | None = None,
    ) -> Page:
        bank, kinds = bank_argument(bank), kinds_argument(kinds)
        filters = checked_filters(filters)
        limit, offset = page_arguments(limit, offset)
        before = None if before is None else integer("before", before)
        return await self._read(
            bank,
            lambda connection: listing.listing(
                connection,
                kinds=kinds,
                filters=filters,
                limit=limit,
                offset=offset,
                by="arrival",
                before=before,
            ),
        )

    async def timeline(
        self,
        bank: str,
        *,
        kinds: Sequence[Kind] = ("event", "memory"),
        filters: Filters = ANY,
        limit: int = 50,
        offset: int = 0,
        newest_first: bool = True,
    ) -> Page:
        bank, kinds = bank_argument(bank), kinds_argument(kinds)
        filters, newest_first = checked_filters(filters), flag("newest_first", newest_first)
        limit, offset = page_arguments(limit, offset)
        return await self._read(
            bank,
            lambda connection: listing.listing(
                connection,
                kinds=kinds,
                filters=filters,
                limit=limit,
                offset=offset,
                newest_first=newest_first,
            ),
        )

    async def change(
        self,
        bank: str,
        id: str,
        *,
        text: str | None = None,
        title: str | None = None,
        status: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        tags: Sequence[str] | None = None,
        occurred_at: int | None = None,
        expected_text: str | None = None,
    ) -> Item:
        bank, id = bank_argument(bank), storable_text("id", id)
        expected_text = optional_text("expected_text", expected_text)
        text, title = optional_text("text", text), optional_text("title", title)
        status = optional_text("status", status)
        if metadata is not None:
            metadata = json_object("metadata", metadata)
        fields: dict[str, Any] = {}
        check_labels(title=title, status=status)
        if text is not None:
            check_text("text", text, empty=False)
            fields |= {"text": text, "sameness": None}
        if title is not None:
            fields |= {"title": title, "sameness": None}
        if status is not None:
            fields["status"] = status
        if metadata is not None:
            fields |= {"metadata": encode_json("metadata", metadata), "sameness": None}
        if tags is not None:
            tags = texts("tags", tags)
            check_list("tags", tags)
            fields |= {"tags": encode_json("tags", tags), "sameness": None}
        if occurred_at is not None:
            occurred_at = integer("occurred_at", occurred_at)
            check_time("occurred_at", occurred_at)
            fields["occurred_at"] = occurred_at
        now = self._now()

        def work(changes: WriteTransaction) -> Item:
            item = find(changes.connection, id)
            if expected_text is not None and item.text != expected_text:
                raise ItemChanged(id)
            return memories.change_item(changes, item, now, **fields)

        return await self._write(bank, work, grows=True)

    async def forget(self, bank: str, ids: Sequence[str]) -> Forgotten:
        bank, ids = bank_argument(bank), texts("ids", ids)
        return await self._forget(bank, lambda connection: listing.rowids_of(connection, ids))

    async def forget_where(
        self, bank: str, *, kinds: Sequence[Kind] = (), filters: Filters
    ) -> Forgotten:
        bank, kinds = bank_argument(bank), kinds_argument(kinds)
        filters = checked_filters(filters)
        return await self._forget(
            bank,
            lambda connection: listing.rowids_where(connection, kinds=kinds, filters=filters),
        )

    # --- documents ------------------------------------------------------------------------

    async def upsert_document(
        self, bank: str, document: NewDocument, *, progress: Progress | None = None
    ) -> Upserted:
        bank = bank_argument(bank)
        document = checked(NewDocument, document)
        progress = callback("progress", progress)
        await off_loop_if_large(len(document.body), partial(documents.check, document))
        await self._banks.ensure(bank)
        known = await self._write(bank, lambda changes: documents.recognise(changes, document))
        if known is not None:
            return known
        prepared = await off_loop_if_large(
            len(document.body), partial(documents.prepare_document, document, self._now())
        )
        return await self._put(
            bank,
            lambda changes: documents.upsert(changes, prepared, progress),
            at_least=len(document.body),
        )

    async def document(self, bank: str, id: str) -> Document:
        bank, id = bank_argument(bank), storable_text("id", id)
        return await self._read(bank, lambda connection: documents.get(connection, id))

    async def find_document(self, bank: str, source: str, source_id: str) -> Document | None:
        bank = bank_argument(bank)
        source = storable_text("source", source)
        source_id = storable_text("source_id", source_id)
        return await self._read(
            bank, lambda connection: documents.find_by_source(connection, source, source_id)
        )

    async def document_headers(self, bank: str, ids: Sequence[str]) -> list[DocumentHeader]:
        bank, ids = bank_argument(bank), texts("ids", ids)
        return await self._read(bank, lambda connection: documents.headers(connection, ids))

    async def documents(
        self, bank: str, *, source: str | None = None, limit: int = 50, offset: int = 0
    ) -> list[DocumentHeader]:
        bank, source = bank_argument(bank), optional_text("source", source)
        limit, offset = page_arguments(limit, offset)
        return await self._read(
            bank,
            lambda connection: documents.listing(
                connection, source=source, limit=limit, offset=offset
            ),
        )

    async def chunks(self, bank: str, document: str) -> list[Item]:
        bank, document = bank_argument(bank), storable_text("document", document)
        return await self._read(bank, lambda connection: documents.chunks_of(connection, document))

    async def delete_documents(self, bank: str, ids: Sequence[str]) -> int:
        bank, ids = bank_argument(bank), texts("ids", ids)
        return await self._write(bank, lambda changes: documents.delete(changes, ids))

    async def sweep_documents(self, bank: str, source: str, run: str) -> int:
        bank = bank_argument(bank)
        source, run = storable_text("source", source), storable_text("run", run)

        def work(changes: WriteTransaction) -> int:
            gone = documents.not_seen(changes.connection, source, run)
            return documents.delete(changes, gone)

        return await self._write(bank, work)

    async def sources(self, bank: str) -> tuple[SourceCount, ...]:
        bank = bank_argument(bank)
        return await self._read(bank, documents.counts)

    async def _forget(self, bank: str, choose: Callable[[Connection], list[int]]) -> Forgotten:
        now = self._now()
        token = new_token()

        def work(changes: WriteTransaction) -> Forgotten:
            rowids = choose(changes.connection)
            return memories.forget(
                changes, rowids, token=token, now=now, undo_until=now + self.undo_ms
            )

        return await self._write(bank, work)


def _characters(new: Sequence[NewMemory]) -> int:
    """The total length of texts that were not validated yet and may be of any type."""
    texts: list[Any] = [getattr(memory, "text", "") for memory in new]
    return sum(len(text) for text in texts if isinstance(text, str))


def _prepare_all(new: Sequence[NewMemory], now: int) -> list[Prepared]:
    """Validate and tokenise memories; an error names the position of the invalid one."""
    prepared: list[Prepared] = []
    for position, memory in enumerate(new):
        try:
            prepared.append(prepare(checked(NewMemory, memory), now))
        except InvalidInput as error:
            raise error.within(f"memories[{position}]") from None
    return prepared

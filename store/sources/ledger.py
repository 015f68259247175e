"""Operations on the ledgers of document sources, which lie in the banks."""

from collections.abc import Sequence
from functools import partial

import anyio

from store.arguments import bank_argument, checked, texts
from store.database import Connection
from store.errors import InvalidInput
from store.model import SHORT_LIMIT, NewDocument, SourceBatch, SourceFile, Upserted
from store.operations.bank_access import BankAccess
from store.rows import documents
from store.rows.documents import PreparedDocument
from store.rows.transaction import WriteTransaction
from store.sources import files
from store.sources.records import SourceRecords
from store.validate import check_labels, check_text, check_time, storable_text


class SourceLedgers(BankAccess):
    """See `store.engine.Engine`."""

    @property
    def source_records(self) -> SourceRecords:
        return SourceRecords(self._catalogue.database)

    async def source_files(
        self, bank: str, source: str, *, under: Sequence[str] = ()
    ) -> list[SourceFile]:
        bank, source = bank_argument(bank), storable_text("source", source)
        under = texts("under", under)
        return await self._read(bank, partial(files.listing, source=source, under=under))

    async def count_synced(self, bank: str, source: str) -> int:
        bank, source = bank_argument(bank), storable_text("source", source)
        return await self._read(bank, partial(files.count, source=source))

    async def sync_documents(self, bank: str, batch: SourceBatch) -> list[Upserted | None]:
        bank, batch = bank_argument(bank), checked(SourceBatch, batch, "batch")
        new = [each.document for each in batch.files if each.document is not None]
        await anyio.to_thread.run_sync(partial(_check, batch))
        await self._banks.ensure(bank)
        changed = await self._read(bank, partial(_changed, new=new))
        now = self._now()
        prepared = await anyio.to_thread.run_sync(partial(_prepare, changed, now))

        def work(transaction: WriteTransaction) -> list[Upserted | None]:
            return files.apply(transaction, batch, prepared)

        size = sum(len(document.body) for document in changed)
        return await self._put(bank, work, at_least=size)


def _check(batch: SourceBatch) -> None:
    check_text("batch.source", batch.source, limit=SHORT_LIMIT, empty=False)
    seen: set[str] = set()
    for at, synced in enumerate(batch.files):
        place, document = f"batch.files[{at}]", synced.document
        for name in ("source_id", "version", "digest", "ledger"):
            check_text(f"{place}.file.{name}", getattr(synced.file, name), limit=SHORT_LIMIT)
        if synced.file.source_id in seen:
            raise InvalidInput(f"{place}.file.source_id", "must not occur twice in a batch")
        seen.add(synced.file.source_id)
        if synced.head is not None:
            check_labels(author=synced.head.author, url=synced.head.url)
            check_time(f"{place}.head.updated_at", synced.head.updated_at)
        if document is None:
            continue
        documents.check(document)
        if (document.source, document.source_id) != (batch.source, synced.file.source_id):
            raise InvalidInput(f"{place}.document", "must have the source and id of its file")


def _changed(connection: Connection, new: Sequence[NewDocument]) -> list[NewDocument]:
    """The documents whose stored version differs. Only they are cut into chunks."""
    return [document for document in new if not documents.is_stored(connection, document)]


def _prepare(new: Sequence[NewDocument], now: int) -> dict[str, PreparedDocument]:
    return {document.source_id: documents.prepare_document(document, now) for document in new}

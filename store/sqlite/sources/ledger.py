"""Operations on the ledgers of document sources, which lie in the banks."""

from collections.abc import Sequence
from functools import partial

import anyio

from store.arguments import bank_argument, checked, texts
from store.model import NewDocument, SourceBatch, SourceFile, Upserted
from store.sqlite.bank_access import BankAccess
from store.sqlite.connection import Connection
from store.sqlite.rows import documents
from store.sqlite.rows.documents import PreparedDocument
from store.sqlite.rows.transaction import WriteTransaction
from store.sqlite.sources import files
from store.sqlite.sources.records import SourceRecords
from store.validate import storable_text


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
        bank = bank_argument(bank)
        given = [each.document for each in batch.files if each.document is not None]
        new = [checked(NewDocument, document) for document in given]
        await self._banks.ensure(bank)
        await anyio.to_thread.run_sync(partial(_check, new))
        changed = await self._read(bank, partial(_changed, new=new))
        now = self._now()
        prepared = await anyio.to_thread.run_sync(partial(_prepare, changed, now))

        def work(transaction: WriteTransaction) -> list[Upserted | None]:
            return files.apply(transaction, batch, prepared)

        size = sum(len(document.body) for document in changed)
        return await self._put(bank, work, at_least=size)


def _check(new: Sequence[NewDocument]) -> None:
    for document in new:
        documents.check(document)


def _changed(connection: Connection, new: Sequence[NewDocument]) -> list[NewDocument]:
    """The documents whose stored version differs. Only they are cut into chunks."""
    return [document for document in new if not documents.is_stored(connection, document)]


def _prepare(new: Sequence[NewDocument], now: int) -> dict[str, PreparedDocument]:
    return {document.source_id: documents.prepare_document(document, now) for document in new}

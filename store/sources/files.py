"""The ledger of document sources: one row for each file of a source.

A batch writes documents and ledger entries in one transaction. So a process that is killed at any
moment leaves a ledger that agrees with the documents, and the next sync continues where it ended.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from store.database import Connection
from store.model import SYNC_RUN, DocumentHead, SourceBatch, SourceFile, SyncedFile, Upserted
from store.rows import documents
from store.rows.documents import PreparedDocument
from store.rows.memories import follow_row
from store.rows.transaction import WriteTransaction

_COLUMNS: Final = "source_id, version, digest, ledger, document"


def listing(connection: Connection, source: str, under: Sequence[str]) -> list[SourceFile]:
    """The files of a source; with `under`, only these files and those below these folders.

    A document of a sync that has no entry (in an imported bank) is listed with empty fields.
    """
    found: dict[str, SourceFile] = {}
    for condition, values in _ranges(under):
        for row in connection.execute(
            f"SELECT {_COLUMNS} FROM source_files WHERE source = ? AND {condition}",
            (source, *values),
        ):
            found[row[0]] = SourceFile(
                source_id=row[0], version=row[1], digest=row[2], ledger=row[3], document=row[4]
            )
        # `run` lies behind the body in a row, so it is read only for documents without an entry.
        for source_id, document, run in connection.execute(
            f"SELECT source_id, public_id, run FROM documents WHERE source = ? AND {condition}"
            " AND NOT EXISTS (SELECT 1 FROM source_files"
            " WHERE source = documents.source AND source_id = documents.source_id)",
            (source, *values),
        ):
            if run == SYNC_RUN:
                found[source_id] = SourceFile(
                    source_id=source_id, version="", digest="", ledger="", document=document
                )
    return list(found.values())


def count(connection: Connection, source: str) -> int:
    """The number of documents that syncs of this source have stored."""
    (found,) = connection.execute(
        "SELECT count(*) FROM source_files WHERE source = ? AND document IS NOT NULL", (source,)
    ).fetchone()
    return int(found)


def apply(
    transaction: WriteTransaction, batch: SourceBatch, prepared: Mapping[str, PreparedDocument]
) -> list[Upserted | None]:
    """Write a batch. `prepared` holds the documents that are not known to be unchanged."""
    results = [_apply_file(transaction, batch.source, each, prepared) for each in batch.files]
    remove(transaction, batch.source, batch.removed)
    return results


def remove(transaction: WriteTransaction, source: str, source_ids: Iterable[str]) -> None:
    """Delete files from the ledger, each with its document."""
    connection = transaction.connection
    for source_id in source_ids:
        row = connection.execute(
            "SELECT public_id FROM documents WHERE source = ? AND source_id = ? AND run = ?",
            (source, source_id, SYNC_RUN),
        ).fetchone()
        if row is not None:
            documents.delete(transaction, row)
        connection.execute(
            "DELETE FROM source_files WHERE source = ? AND source_id = ?", (source, source_id)
        )


def _apply_file(
    transaction: WriteTransaction,
    source: str,
    synced: SyncedFile,
    prepared: Mapping[str, PreparedDocument],
) -> Upserted | None:
    connection = transaction.connection
    file = synced.file
    result: Upserted | None = None
    if synced.is_unusable:
        remove(transaction, source, (file.source_id,))
    elif synced.document is not None:
        result = documents.recognise(transaction, synced.document) or documents.upsert(
            transaction, prepared[file.source_id]
        )
        file = replace(file, document=result.id)
    elif synced.head is not None and file.document is not None:
        _change_head(transaction, file.document, synced.head)
    connection.execute(
        f"INSERT INTO source_files (source, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (source, source_id) DO UPDATE SET version = excluded.version,"
        " digest = excluded.digest, ledger = excluded.ledger, document = excluded.document",
        (source, file.source_id, file.version, file.digest, file.ledger, file.document),
    )
    if synced.moved_from is not None:
        connection.execute(
            "DELETE FROM source_files WHERE source = ? AND source_id = ?",
            (source, synced.moved_from),
        )
    return result


def _change_head(transaction: WriteTransaction, document: str, head: DocumentHead) -> None:
    """Change the dates, author and address of a document; its text and vectors stay."""
    connection = transaction.connection
    row = documents.find_row(connection, document)
    if row is None:
        return
    updated_at = row.updated_at if head.updated_at is None else head.updated_at
    changed = replace(row, author=head.author, url=head.url, updated_at=updated_at)
    if changed == row:
        return
    documents.DOCUMENTS.update(connection, changed)
    if updated_at != row.updated_at:
        chunks = connection.execute("SELECT id FROM items WHERE document = ?", (document,))
        for (rowid,) in chunks.fetchall():
            follow_row(transaction, rowid, row.indexed_at, occurred_at=updated_at)


def _ranges(under: Sequence[str]) -> list[tuple[str, tuple[str, ...]]]:
    """Conditions on `source_id`, with their parameters; "" stands for the whole source."""
    if not under or "" in under:
        return [("TRUE", ())]
    # "0" follows "/" in ASCII, so the range holds exactly the paths below the folder.
    condition = "(source_id = ? OR (source_id >= ? AND source_id < ?))"
    return [(condition, (path, f"{path}/", f"{path}0")) for path in under]

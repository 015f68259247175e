"""The first step of an erase: deleting rows, and recording that without content.

Copies of the deleted rows remain where the database keeps any; the engine removes them, or says
where they are.
"""

from collections.abc import Sequence

from store.errors import InvalidInput, NotFound
from store.model import Erased
from store.rows.memories import delete_rows
from store.rows.transaction import WriteTransaction


def remove(
    changes: WriteTransaction,
    ids: Sequence[str],
    *,
    reason: str,
    now: int,
    documents: Sequence[str] = (),
) -> Erased:
    """Delete items, live or forgotten, and documents; an unknown id raises `NotFound`."""
    connection = changes.connection
    rowids: dict[int, tuple[str, str]] = {}
    parts: dict[str, str] = {}  # document id -> id of one of its chunks
    for id in dict.fromkeys(ids):
        row = connection.execute(
            "SELECT id, kind, document FROM items WHERE public_id = ?", (id,)
        ).fetchone()
        if row is None:
            raise NotFound("item", id)
        rowids[row[0]] = (id, row[1])
        if row[2] is not None:
            parts[row[2]] = id
    for document in parts.keys() - set(documents):
        # Fetch all rows at once, because VACUUM fails while a statement is in progress.
        chunks = connection.execute(
            "SELECT id FROM items WHERE document = ?", (document,)
        ).fetchall()
        if any(rowid not in rowids for (rowid,) in chunks):
            raise InvalidInput(
                "ids",
                f"{parts[document]!r} is a part of document {document!r}, which keeps the whole"
                " text: erase the document",
            )
    documents = [*documents, *parts]
    for id in dict.fromkeys(documents):
        if not connection.execute("SELECT 1 FROM documents WHERE public_id = ?", (id,)).fetchone():
            raise NotFound("document", id)
        rows = connection.execute("SELECT id, public_id FROM items WHERE document = ?", (id,))
        rowids |= {rowid: (public_id, "chunk") for rowid, public_id in rows}
    delete_rows(changes, rowids)
    tombstones = [*rowids.values(), *((id, "document") for id in dict.fromkeys(documents))]
    for id, kind in tombstones:
        connection.execute("DELETE FROM documents WHERE public_id = ?", (id,))
        connection.execute("DELETE FROM evidence WHERE item = ?", (id,))
        connection.execute("DELETE FROM origins WHERE public_id = ?", (id,))
        connection.execute("DELETE FROM source_files WHERE document = ?", (id,))
        connection.execute(
            "INSERT INTO tombstones (public_id, kind, erased_at, reason) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (public_id)"
            " DO UPDATE SET erased_at = excluded.erased_at, finished_at = NULL",
            (id, kind, now, reason),
        )
    return Erased(items=len(rowids), documents=len(tombstones) - len(rowids))

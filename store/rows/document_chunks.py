"""The chunks of a document: written together, matched with those of its former version."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

from msgspec.structs import replace

from store.database import Connection
from store.engine import Progress
from store.rows.memories import delete_rows, follow_row, insert_row
from store.rows.prepared import Prepared
from store.rows.transaction import WriteTransaction

# The columns that a chunk takes over from the new version of its document.
_FOLLOWED: Final = (
    "title", "session", "user", "role", "metadata", "details", "provenance", "occurred_at",
)  # fmt: skip


def write_chunks(
    transaction: WriteTransaction,
    document: str,
    wanted: Sequence[Prepared],
    now: int,
    *,
    is_moved: bool,
    progress: Progress | None,
) -> int:
    """Write the chunks of a document. Returns how many of them were stored already.

    A chunk is recognised by its id, else by its text: after a move its id is still derived from
    the former place of the document. The vectors of a moved document are kept, even if its title
    was the name of its file.
    """
    connection = transaction.connection
    known = _match(connection, document, wanted)
    kept = set(known.values())
    delete_rows(
        transaction,
        [rowid for rowid in chunk_rowids(connection, document).values() if rowid not in kept],
    )
    for position, chunk in enumerate(wanted):
        rowid = known.get(position)
        if rowid is not None:
            followed = {name: getattr(chunk.row, name) for name in _FOLLOWED}
            follow_row(
                transaction,
                rowid,
                now,
                keep_vector=is_moved,
                position=position,
                **followed,
            )
        else:
            insert_row(
                transaction, _unique(connection, chunk, document), document=document,
                position=position,
            )  # fmt: skip
        if progress is not None:
            progress(position + 1, len(wanted))
    return len(kept)


def _match(connection: Connection, document: str, wanted: Sequence[Prepared]) -> dict[int, int]:
    """The rowid of the stored chunk for each position that has one."""
    rows = connection.execute(
        "SELECT public_id, text, id FROM items WHERE document = ?", (document,)
    )
    by_id: dict[str, int] = {}
    by_text: dict[str, list[tuple[str, int]]] = {}
    for public_id, text, rowid in rows:
        by_id[public_id] = rowid
        by_text.setdefault(text, []).append((public_id, rowid))
    found: dict[int, int] = {}
    for position, chunk in enumerate(wanted):
        rowid = by_id.pop(chunk.row.public_id, None)
        if rowid is not None:
            found[position] = rowid
    for position, chunk in enumerate(wanted):
        if position not in found:
            for public_id, rowid in by_text.get(chunk.row.text, ()):
                if by_id.pop(public_id, None) is not None:
                    found[position] = rowid
                    break
    return found


def _unique(connection: Connection, chunk: Prepared, document: str) -> Prepared:
    """The chunk with an id that no other document uses.

    The id is taken if a document moved away, kept its chunks, and an equal text took its place.
    """
    id = chunk.row.public_id
    taken = connection.execute("SELECT 1 FROM items WHERE public_id = ?", (id,)).fetchone()
    if taken is None:
        return chunk
    salted = blake2b(f"{document} {id}".encode(), digest_size=16).hexdigest()
    return replace(chunk, row=replace(chunk.row, public_id=f"chk_{salted}"))


def chunk_rowids(connection: Connection, document: str) -> dict[str, int]:
    rows = connection.execute("SELECT public_id, id FROM items WHERE document = ?", (document,))
    return dict(rows.fetchall())

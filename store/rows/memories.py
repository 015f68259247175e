"""Writing items: put, change, forget, restore, delete. No other module writes to `items`.

Each function here runs inside one unit of work (see `database.py`) and keeps three sets equal: the
live items, the rows of `words`, and the rows of `vectors`.
"""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any, Final, Literal

import msgspec
import orjson
from msgspec.structs import asdict, astuple, replace

from store.database import Connection
from store.errors import InvalidInput, KeyReused, UndoExpired
from store.model import Forgotten, Item, Put
from store.rows.items import ITEMS, LIVE, SELECT, ItemRow, item_from, item_of, read_row
from store.rows.prepared import Prepared, count_words, tokens_of
from store.rows.transaction import WriteTransaction

# The columns that stay when a put replaces the item with the same natural key.
_KEPT_BY_REPLACE: Final = ("id", "public_id", "created_at", "repeats", "updated_at")
# The columns that may differ between a put and a retry of it.
_NOT_CONTENT: Final = frozenset(("id", "public_id", "occurred_at", "created_at", "updated_at"))

_encode: Final = msgspec.msgpack.Encoder().encode


def put(transaction: WriteTransaction, prepared: Prepared) -> Put:
    """Store an item, unless it is known: a retry by its key, a repetition by its content."""
    connection = transaction.connection
    row = prepared.row
    if prepared.idempotency_key is not None:
        known = connection.execute(
            "SELECT item, sameness FROM put_keys WHERE key = ?", (prepared.idempotency_key,)
        ).fetchone()
        if known is not None:
            if known[1] != _content_hash(row):
                raise KeyReused(prepared.idempotency_key)
            return _known(connection, known[0])
    outcome = (
        _repeat(transaction, row)
        or _replace(transaction, prepared)
        or _insert(transaction, prepared)
    )
    if prepared.idempotency_key is not None:
        connection.execute(
            "INSERT INTO put_keys (key, item, sameness, put_at) VALUES (?, ?, ?, ?)",
            (prepared.idempotency_key, outcome.rowid, _content_hash(row), row.created_at),
        )
    return outcome


def change_item(transaction: WriteTransaction, item: Item, now: int, **fields: Any) -> Item:
    """Write an item again with some columns changed. JSON columns are given encoded.

    If the change affects the tokens, they are replaced and the vector is marked as missing.
    """
    row = read_row(transaction.connection, item.rowid)
    return item_from(_change(transaction, row, replace(row, **fields, updated_at=now)))


def follow_row(
    transaction: WriteTransaction, rowid: int, now: int, *, keep_vector: bool = False, **fields: Any
) -> None:
    """Give an item the fields of the document it belongs to; an equal row is not written."""
    row = read_row(transaction.connection, rowid)
    if any(getattr(row, name) != value for name, value in fields.items()):
        after = replace(row, **fields, updated_at=now)
        _change(transaction, row, after, keep_vector=keep_vector)


def forget(
    transaction: WriteTransaction,
    rowids: Sequence[int],
    *,
    token: str,
    now: int,
    undo_until: int,
) -> Forgotten:
    """Hide items from every operation until `restore` or `erase`."""
    count = 0
    for rowid in rowids:
        row = read_row(transaction.connection, rowid)
        if row.forgotten_at is not None:
            continue
        _rewrite(transaction, replace(row, forgotten_at=now, forgotten_by=token))
        unlist(transaction, rowid)
        count += 1
    return Forgotten(token=token if count else None, count=count, undo_until=undo_until)


def restore(transaction: WriteTransaction, token: str, *, now: int, forgotten_since: int) -> int:
    """Undo a forget. An equal item that was put in the meantime stays beside the restored one."""
    connection = transaction.connection
    rowids = [
        rowid
        for (rowid,) in connection.execute(
            "SELECT id FROM items WHERE forgotten_by = ? AND forgotten_at >= ?",
            (token, forgotten_since),
        )
    ]
    if not rowids:
        raise UndoExpired(token)
    for rowid in rowids:
        row = read_row(connection, rowid)
        row = replace(
            row,
            forgotten_at=None,
            forgotten_by=None,
            updated_at=now,
            sameness=None if _has_live_twin(connection, row, "sameness") else row.sameness,
            key=None if _has_live_twin(connection, row, "key") else row.key,
        )
        _rewrite(transaction, row)
        enlist(transaction, rowid, tokens_of(row))
    return len(rowids)


def insert_row(
    transaction: WriteTransaction,
    prepared: Prepared,
    *,
    document: str | None = None,
    position: int | None = None,
) -> Put:
    """Insert an item without looking for a repetition of it. A chunk names its document."""
    row = replace(prepared.row, document=document, position=position)
    return _insert(
        transaction, Prepared(row=row, tokens=prepared.tokens, is_fresh=prepared.is_fresh)
    )


def insert_known(transaction: WriteTransaction, prepared: Prepared) -> Put:
    """Insert an item as it is; the caller has checked that nothing has its id."""
    return _insert(transaction, prepared)


def delete_rows(transaction: WriteTransaction, rowids: Iterable[int]) -> int:
    """Delete items, live or forgotten, with the rows of other tables that refer to them."""
    connection = transaction.connection
    count = 0
    for rowid in list(rowids):
        listed = connection.execute("SELECT 1 FROM vectors WHERE item = ?", (rowid,)).fetchone()
        if listed is not None:
            unlist(transaction, rowid)
        count += connection.execute("DELETE FROM items WHERE id = ?", (rowid,)).rowcount
        transaction.next()
    return count


def enlist(transaction: WriteTransaction, rowid: int, tokens: str) -> None:
    """Add an item to the search: its words now, its vector as soon as it is computed."""
    connection = transaction.connection
    connection.words.add(rowid, tokens)
    connection.execute(
        "INSERT INTO vectors (item, change) VALUES (?, ?)", (rowid, transaction.change)
    )
    transaction.items += 1
    transaction.words += count_words(tokens)


def unlist(transaction: WriteTransaction, rowid: int) -> None:
    """Remove an item from the search."""
    connection = transaction.connection
    found = connection.words.tokens((rowid,))
    connection.words.remove(rowid)
    connection.execute("DELETE FROM vectors WHERE item = ?", (rowid,))
    transaction.items -= 1
    transaction.words -= sum(count_words(tokens) for _, tokens in found)


def _change(
    transaction: WriteTransaction, before: ItemRow, after: ItemRow, *, keep_vector: bool = False
) -> ItemRow:
    _rewrite(transaction, after)
    old_tokens, tokens = tokens_of(before), tokens_of(after)
    # A forgotten item has neither words nor a vector.
    if tokens != old_tokens and after.forgotten_at is None:
        connection = transaction.connection
        connection.words.replace(after.id, tokens)
        if not keep_vector:
            connection.execute(
                "UPDATE vectors SET model = NULL, bytes = NULL, change = ? WHERE item = ?",
                (transaction.change, after.id),
            )
            connection.execute("DELETE FROM turns WHERE item = ?", (after.id,))
        transaction.words += count_words(tokens) - count_words(old_tokens)
    return after


def _insert(transaction: WriteTransaction, prepared: Prepared) -> Put:
    row = prepared.row
    if not prepared.is_fresh and _is_taken(transaction.connection, row.public_id):
        raise InvalidInput("id", "is the id of another item already")
    rowid = transaction.next()
    ITEMS.insert_as(transaction.connection, rowid, row, rowid)
    enlist(transaction, rowid, prepared.tokens)
    return Put(id=row.public_id, rowid=rowid)


def _is_taken(connection: Connection, id: str) -> bool:
    row = connection.execute("SELECT 1 FROM items WHERE public_id = ?", (id,)).fetchone()
    return row is not None


def _repeat(transaction: WriteTransaction, new: ItemRow) -> Put | None:
    """Count a repetition of an item with the same content. None if there is no such item."""
    if new.sameness is None:
        return None
    found = transaction.connection.execute(
        f"SELECT id FROM items WHERE kind = ? AND sameness = ? AND {LIVE}",
        (new.kind, new.sameness),
    ).fetchone()
    if found is None:
        return None
    known = read_row(transaction.connection, found[0])
    known = replace(known, repeats=known.repeats + 1, updated_at=new.updated_at)
    _rewrite(transaction, known)
    return Put(id=known.public_id, rowid=known.id, duplicate=True, repeats=known.repeats)


def _replace(transaction: WriteTransaction, prepared: Prepared) -> Put | None:
    """Replace the content of the item with the same natural key; its id stays."""
    new = prepared.row
    if new.key is None:
        return None
    columns = transaction.connection.execute(
        f"{SELECT} WHERE kind = ? AND key = ? AND {LIVE}", (new.kind, new.key)
    ).fetchone()
    if columns is None:
        return None
    old = item_of(columns)
    fields = {name: value for name, value in asdict(new).items() if name not in _KEPT_BY_REPLACE}
    change_item(transaction, old, new.updated_at, **fields)
    return Put(id=old.id, rowid=old.rowid)


def _known(connection: Connection, rowid: int) -> Put:
    row = connection.execute("SELECT public_id, repeats FROM items WHERE id = ?", (rowid,))
    id, repeats = row.fetchone()
    return Put(id=id, rowid=rowid, duplicate=True, repeats=repeats)


def _rewrite(transaction: WriteTransaction, row: ItemRow) -> None:
    ITEMS.update(transaction.connection, row, transaction.next())


def _has_live_twin(
    connection: Connection, row: ItemRow, column: Literal["sameness", "key"]
) -> bool:
    """Whether a live item of the same kind has the same value in this column."""
    value = row.sameness if column == "sameness" else row.key
    if value is None:
        return False
    found = connection.execute(
        f"SELECT 1 FROM items WHERE kind = ? AND {column} = ? AND {LIVE}", (row.kind, value)
    ).fetchone()
    return found is not None


def _content_hash(row: ItemRow) -> bytes:
    """The hash of a put's content, which tells a retry from another use of the same key.

    Stored hashes cover JSON as msgspec writes it (1e22, where orjson writes 1e+22), so the JSON
    columns are written by msgspec here.
    """
    row = replace(row, metadata=_by_msgspec(row.metadata), details=_by_msgspec(row.details))
    content = [
        value
        for name, value in zip(ITEMS.columns, astuple(row), strict=True)
        if name not in _NOT_CONTENT
    ]
    return blake2b(_encode(content), digest_size=16).digest()


def _by_msgspec(encoded: str) -> str:
    return encoded if encoded == "{}" else msgspec.json.encode(orjson.loads(encoded)).decode()

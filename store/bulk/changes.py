"""Bulk changes of items, each with one token that undoes it.

A forget marks its rows with the token. A change of tags and the arrival of moved items are recorded
in the table `undo_steps`. Steps whose time to undo has passed are deleted by the next bulk change.
"""

from collections.abc import Sequence
from typing import Any, Final

import orjson
from msgspec import Struct

from store.database import Connection
from store.errors import InvalidInput, UndoExpired
from store.exporting.export_format import EvidenceRecord, ItemRecord, Record, decode_line
from store.exporting.export_writer import exported
from store.exporting.portability import Batch, has_item, prepared, take
from store.model import BulkChange, Forgotten
from store.rows import memories
from store.rows.items import ITEMS, SELECT, read_row
from store.rows.transaction import WriteTransaction
from store.validate import check_list

_SOME: Final = 500


class Undo(Struct, frozen=True, kw_only=True):
    """The token of a bulk change, when it is made, and until when it can be undone."""

    token: str
    now: int
    until: int


def change_tags(
    transaction: WriteTransaction,
    rowids: Sequence[int],
    undo: Undo,
    *,
    add: Sequence[str],
    remove: Sequence[str],
) -> BulkChange:
    """Add and remove tags. Vectors stay, because tags hardly change the meaning of a text."""
    _drop_expired(transaction.connection, undo)
    count = 0
    for rowid in rowids:
        row = read_row(transaction.connection, rowid)
        before: list[str] = orjson.loads(row.tags)
        added = [tag for tag in add if tag not in before]
        removed = [tag for tag in before if tag in remove and tag not in add]
        if added or removed:
            after = [tag for tag in before if tag not in removed] + added
            _set_tags(transaction, rowid, after, undo.now)
            _note(transaction.connection, undo, rowid, added=added, removed=removed)
            count += 1
    return BulkChange(token=undo.token if count else None, count=count, undo_until=undo.until)


def read_records(connection: Connection, rowids: Sequence[int]) -> list[Record]:
    """The items and the evidence of their cards, as an export writes them."""
    records: list[Record] = []
    for start in range(0, len(rowids), _SOME):
        some = rowids[start : start + _SOME]
        marks = ",".join("?" * len(some))
        rows = connection.execute(f"{SELECT} WHERE items.id IN ({marks}) ORDER BY items.id", some)
        for columns in rows.fetchall():
            row = ITEMS.read(columns)
            if row.kind == "chunk":
                raise InvalidInput("ids", f"{row.public_id!r} is part of a document")
            line = orjson.dumps({"type": "item"} | exported(row))
            record = decode_line(line, 0)
            assert isinstance(record, ItemRecord)
            records.append(record)
        records += [
            EvidenceRecord(card=card, snippet=snippet, session=session, item=item)
            for card, snippet, session, item in connection.execute(
                "SELECT items.public_id, snippet, evidence.session, item FROM evidence"
                f" JOIN items ON items.id = evidence.card WHERE items.id IN ({marks})"
                " ORDER BY items.id, snippet, evidence.session",
                some,
            )
        ]
    return records


def receive(
    transaction: WriteTransaction, records: Sequence[Record], undo: Undo
) -> tuple[str, ...]:
    """Store items of another bank. Those that this bank has already are skipped and returned."""
    connection = transaction.connection
    _drop_expired(connection, undo)
    skipped: list[str] = []
    for record in records:
        id = record.public_id if isinstance(record, ItemRecord) else ""
        if id and has_item(connection, id):
            skipped.append(id)
            continue
        rows = {id: prepared(record)} if isinstance(record, ItemRecord) else {}
        is_new = bool(take(transaction, Batch([record], rows)).created)
        if id and is_new:
            (rowid,) = connection.execute(
                "SELECT id FROM items WHERE public_id = ?", (id,)
            ).fetchone()
            _note(connection, undo, rowid)
    return tuple(skipped)


def undo_changes(transaction: WriteTransaction, undo: Undo, *, since: int) -> int:
    """Undo the changes of one token; returns the number of items, or raises `UndoExpired`."""
    connection = transaction.connection
    count = 0
    try:
        count = memories.restore(transaction, undo.token, now=undo.now, forgotten_since=since)
    except UndoExpired:
        if not _has_steps(connection, undo.token, since):
            raise
    steps = connection.execute(
        "SELECT undo_steps.item, added, removed, items.forgotten_at FROM undo_steps"
        " JOIN items ON items.id = undo_steps.item WHERE token = ? AND made_at >= ?",
        (undo.token, since),
    ).fetchall()
    arrived: list[int] = []
    for rowid, added, removed, forgotten_at in steps:
        if forgotten_at is not None:
            continue  # it was forgotten since, on its own
        if added is None:
            arrived.append(rowid)
            continue
        tags: list[str] = orjson.loads(read_row(connection, rowid).tags)
        kept = [tag for tag in tags if tag not in orjson.loads(added)]
        back = [tag for tag in orjson.loads(removed) if tag not in kept]
        _set_tags(transaction, rowid, kept + back, undo.now)
        count += 1
    count += _forget_arrived(transaction, arrived, undo).count
    connection.execute("DELETE FROM undo_steps WHERE token = ?", (undo.token,))
    return count


def _forget_arrived(transaction: WriteTransaction, rowids: Sequence[int], undo: Undo) -> Forgotten:
    # With another token, so that undoing twice does not bring them back.
    return memories.forget(
        transaction, rowids, token=f"{undo.token}_undone", now=undo.now, undo_until=undo.until
    )


def _set_tags(transaction: WriteTransaction, rowid: int, tags: list[str], now: int) -> None:
    check_list("tags", tags)
    fields: dict[str, Any] = {"tags": orjson.dumps(tags).decode(), "sameness": None}
    memories.follow_row(transaction, rowid, now, keep_vector=True, **fields)


def _note(
    connection: Connection,
    undo: Undo,
    rowid: int,
    *,
    added: Sequence[str] | None = None,
    removed: Sequence[str] | None = None,
) -> None:
    connection.execute(
        "INSERT INTO undo_steps (token, item, made_at, added, removed) VALUES (?, ?, ?, ?, ?)",
        (
            undo.token,
            rowid,
            undo.now,
            None if added is None else orjson.dumps(added).decode(),
            None if removed is None else orjson.dumps(removed).decode(),
        ),
    )


def _has_steps(connection: Connection, token: str, since: int) -> bool:
    found = connection.execute(
        "SELECT 1 FROM undo_steps WHERE token = ? AND made_at >= ? LIMIT 1", (token, since)
    ).fetchone()
    return found is not None


def _drop_expired(connection: Connection, undo: Undo) -> None:
    window = undo.until - undo.now
    connection.execute("DELETE FROM undo_steps WHERE made_at < ?", (undo.now - window,))

"""Putting items in, changing them, taking them out of sight: the only module that writes items.

Each function here runs inside one unit of work (see `database.py`) and keeps three things equal:
the items that can be found, the rows of `words`, and the rows of `vectors` (invariant I4). A put
is prepared before it: checking, hashing and cutting into words need no connection and may be slow.
"""

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any, Final

import msgspec
from msgspec import Struct

from store.errors import InvalidInput, KeyReused, NotFound, StorageDamaged, UndoExpired
from store.model import KINDS, Filters, Forgotten, Item, Kind, NewMemory, Page, Provenance, Put
from store.ranking.tokenizer import index_text
from store.sqlite.database import Connection
from store.sqlite.ids import fresh_id
from store.sqlite.rows.details import check_details
from store.sqlite.rows.items import (
    COLUMNS,
    LIVE,
    SELECT,
    Row,
    as_stored,
    digest_of,
    find,
    item_from,
    item_of,
    searchable_text,
    where,
)
from store.validate import (
    check_choice,
    check_finite,
    check_labels,
    check_list,
    check_share,
    check_text,
    check_time,
    encode_json,
)

_INSERT: Final = (
    f"INSERT INTO items ({', '.join(COLUMNS)}, change, digest)"
    f" VALUES ({', '.join('?' * (len(COLUMNS) + 2))})"
)
_UPDATE: Final = (
    f"UPDATE items SET {', '.join(f'{name} = ?' for name in COLUMNS)}, change = ?, digest = ?"
    " WHERE id = ?"
)
_PREFIXES: Final[dict[Kind, str]] = {
    "memory": "mem", "event": "evt", "card": "kc", "task": "task", "risk": "risk",
    "narrative": "nar", "skill": "skill", "chunk": "chk",
}  # fmt: skip
ALL: Final = Filters()
_NOTHING: Final = Provenance()
_AT: Final = {name: position for position, name in enumerate(COLUMNS)}
# Kinds whose exact repetition is the same thing said again. The others have rules of their own.
_SAME_BY_CONTENT: Final = ("memory", "event")

_encode: Final = msgspec.msgpack.Encoder().encode


class Prepared(Struct, frozen=True, kw_only=True):
    """A put that is checked, hashed and cut into words, and waits for its place in the bank."""

    values: tuple[Any, ...]  # one for each of COLUMNS; the rowid is still 0
    tokens: str
    idempotency_key: str | None = None
    is_fresh: bool = False  # the id was made just now and cannot be taken


class Changes:
    """The bank's counters during one unit of work; written back once, at its end."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        row = connection.execute("SELECT change FROM state").fetchone()
        if row is None:
            raise StorageDamaged("the bank has lost its counters")
        self.change: int = row[0]
        self._before = self.change
        self.items = 0
        self.words = 0

    def next(self) -> int:
        self.change += 1
        return self.change

    def save(self) -> None:
        if self.change != self._before:
            self.connection.execute(
                "UPDATE state SET change = ?, items = items + ?, words = words + ? WHERE id = 1",
                (self.change, self.items, self.words),
            )


@contextmanager
def changing(connection: Connection) -> Generator[Changes]:
    """The counters for a unit of work that writes items."""
    changes = Changes(connection)
    yield changes
    changes.save()


def prepare(new: NewMemory, now: int, *, of_document: bool = False) -> Prepared:
    """Check a put and do all of it that needs no database."""
    check(new)
    if new.kind == "chunk" and not of_document:
        raise InvalidInput("kind", "must not be chunk: only a document has chunks")
    id = new.id or fresh_id(_PREFIXES[new.kind], now)
    occurred_at = now if new.occurred_at is None else new.occurred_at
    values = (
        0, id, new.kind, new.title, new.text, new.context, new.category, new.status, new.level,
        new.confidence, new.salience, new.session, None, None, new.source, new.user, new.role,
        new.actor, new.event_type, new.key, encode_json("tags", new.tags),
        encode_json("metadata", new.metadata), encode_json("details", new.details),
        encode_provenance(new.provenance), occurred_at, now, now, None, 0, None, None,
        sameness(new),
    )  # fmt: skip
    return Prepared(
        values=values,
        tokens=tokens_of(values),
        idempotency_key=new.idempotency_key,
        is_fresh=new.id is None,
    )


def check(new: NewMemory) -> None:
    """Refuse what cannot be kept, naming the field and the rule."""
    check_choice("kind", new.kind, KINDS)
    check_text("text", new.text)
    check_labels(
        title=new.title, id=new.id, category=new.category, status=new.status, level=new.level,
        session=new.session, source=new.source, user=new.user, role=new.role, actor=new.actor,
        event_type=new.event_type, key=new.key, idempotency_key=new.idempotency_key,
    )  # fmt: skip
    if not new.text.strip() and not new.title.strip():
        raise InvalidInput("text", "must not be empty")
    if new.id is not None and not new.id.strip():
        raise InvalidInput("id", "must not be empty")
    check_text("context", new.context or "")
    check_list("tags", new.tags)
    check_share("confidence", new.confidence)
    check_finite("salience", new.salience)
    check_time("occurred_at", new.occurred_at)
    check_details(new.kind, new.details)


def sameness(new: NewMemory) -> bytes | None:
    """A hash of what makes two puts the same; None when repetition is not sameness."""
    if new.kind not in _SAME_BY_CONTENT or new.allow_duplicate or new.key is not None:
        return None
    said = (
        new.kind, new.title, new.text, new.context, new.category, new.user, new.role, new.actor,
        new.event_type, new.occurred_at, tuple(new.tags), dict(new.metadata),
        new.session if new.kind == "event" else None,
    )  # fmt: skip
    return blake2b(_encode(said), digest_size=16).digest()


def put(changes: Changes, prepared: Prepared) -> Put:
    """Keep it, or recognise it: a retry by its key, a repetition by its content."""
    connection = changes.connection
    values = prepared.values
    if prepared.idempotency_key is not None:
        known = connection.execute(
            "SELECT item, sameness FROM put_keys WHERE key = ?", (prepared.idempotency_key,)
        ).fetchone()
        if known is not None:
            if known[1] != _said(values):
                raise KeyReused(prepared.idempotency_key)
            return _known(connection, known[0])
    outcome = _repeat(changes, values) or _replace(changes, prepared) or _insert(changes, prepared)
    if prepared.idempotency_key is not None:
        connection.execute(
            "INSERT INTO put_keys VALUES (?, ?, ?, ?)",
            (prepared.idempotency_key, outcome.rowid, _said(values), values[_AT["created_at"]]),
        )
    return outcome


def change_item(changes: Changes, item: Item, now: int, **fields: Any) -> Item:
    """Write an item again with some fields changed; its words and vector follow when they must.

    `fields` are columns; JSON columns are given encoded.
    """
    values = _values(changes.connection, item.rowid)
    return item_from(_change(changes, values, {**fields, "updated_at": now}))


def _change(changes: Changes, values: list[Any], fields: Mapping[str, Any]) -> list[Any]:
    rowid = values[0]
    before = tokens_of(values)
    for name, value in fields.items():
        values[_AT[name]] = as_stored(name, value)
    _rewrite(changes, values)
    after = tokens_of(values)
    # What is forgotten has neither words nor a vector.
    if after != before and values[_AT["forgotten_at"]] is None:
        connection = changes.connection
        connection.execute("UPDATE words SET tokens = ? WHERE rowid = ?", (after, rowid))
        connection.execute(
            "UPDATE vectors SET model = NULL, bytes = NULL, change = ? WHERE item = ?",
            (changes.change, rowid),
        )
        changes.words += count_words(after) - count_words(before)
    return values


def forget(
    changes: Changes, rowids: Sequence[int], *, token: str, now: int, undo_until: int
) -> Forgotten:
    """Make items unreachable at once, all of them, until `restore` or `erase`."""
    count = 0
    for rowid in rowids:
        values = _values(changes.connection, rowid)
        if values[_AT["forgotten_at"]] is not None:
            continue
        values[_AT["forgotten_at"]] = now
        values[_AT["forgotten_by"]] = token
        _rewrite(changes, values)
        unlist(changes, rowid)
        count += 1
    return Forgotten(token=token if count else None, count=count, undo_until=undo_until)


def restore(changes: Changes, token: str, *, now: int, forgotten_since: int) -> int:
    """Undo a forget. Whatever was put again meanwhile stays beside what comes back."""
    connection = changes.connection
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
        values = _values(connection, rowid)
        values[_AT["forgotten_at"]] = None
        values[_AT["forgotten_by"]] = None
        values[_AT["updated_at"]] = now
        if _live_twin(connection, values, "sameness"):
            values[_AT["sameness"]] = None
        if _live_twin(connection, values, "key"):
            values[_AT["key"]] = None
        _rewrite(changes, values)
        enlist(changes, rowid, tokens_of(values))
    return len(rowids)


def insert_row(
    changes: Changes,
    prepared: Prepared,
    *,
    document: str | None = None,
    position: int | None = None,
) -> Put:
    """Keep a prepared item without asking whether it is known; a chunk names its document."""
    values = list(prepared.values)
    values[_AT["document"]] = document
    values[_AT["position"]] = position
    return _insert(
        changes,
        Prepared(values=tuple(values), tokens=prepared.tokens, is_fresh=prepared.is_fresh),
    )


def follow_row(changes: Changes, rowid: int, now: int, **fields: Any) -> None:
    """Bring an item up to date with what it is part of; one that has not changed is left alone."""
    values = _values(changes.connection, rowid)
    if any(values[_AT[name]] != value for name, value in fields.items()):
        _change(changes, values, {**fields, "updated_at": now})


def delete_rows(changes: Changes, rowids: Iterable[int]) -> int:
    """Delete items with all that hangs on them, findable or forgotten."""
    connection = changes.connection
    count = 0
    for rowid in list(rowids):
        listed = connection.execute("SELECT 1 FROM vectors WHERE item = ?", (rowid,)).fetchone()
        if listed is not None:
            unlist(changes, rowid)
        count += connection.execute("DELETE FROM items WHERE id = ?", (rowid,)).rowcount
        changes.next()
    return count


def enlist(changes: Changes, rowid: int, tokens: str) -> None:
    """Make an item findable: by its words now, by its vector when that is made."""
    connection = changes.connection
    connection.execute("INSERT INTO words (rowid, tokens) VALUES (?, ?)", (rowid, tokens))
    connection.execute("INSERT INTO vectors (item, change) VALUES (?, ?)", (rowid, changes.change))
    changes.items += 1
    changes.words += count_words(tokens)


def unlist(changes: Changes, rowid: int) -> None:
    """The opposite of `enlist`; its cost is one reading of the item's own words."""
    connection = changes.connection
    row = connection.execute("SELECT tokens FROM words WHERE rowid = ?", (rowid,)).fetchone()
    connection.execute("DELETE FROM words WHERE rowid = ?", (rowid,))
    connection.execute("DELETE FROM vectors WHERE item = ?", (rowid,))
    changes.items -= 1
    changes.words -= count_words(row[0]) if row is not None else 0


def tokens_of(values: Sequence[Any]) -> str:
    """What the item in these column values is found by."""
    return index_text(
        searchable_text(
            values[_AT["title"]],
            values[_AT["text"]],
            values[_AT["context"]],
            values[_AT["tags"]],
            values[_AT["details"]],
        )
    )


def count_words(tokens: str) -> int:
    return tokens.count(" ") + 1 if tokens else 0


def encode_provenance(provenance: Provenance) -> str:
    if provenance == _NOTHING:
        return "{}"
    check_labels(
        dialect=provenance.dialect,
        client=provenance.client,
        transport=provenance.transport,
        principal=provenance.principal,
    )
    check_text("explanation", provenance.explanation or "")
    return msgspec.json.encode(provenance).decode()


# --- asking without ranking -------------------------------------------------------------------


def listing(
    connection: Connection,
    *,
    kinds: Sequence[Kind] = (),
    filters: Filters = ALL,
    limit: int = 50,
    offset: int = 0,
    newest_first: bool = True,
    by: str = "time",
    count: bool = True,
) -> Page:
    """Items in order of time (when it happened) or of arrival (when it was put).

    Counting the whole list costs more than reading a page of it; `count` says whether to.
    """
    kinds = tuple(dict.fromkeys(kinds))  # a kind named twice is asked for once
    condition, values = where(filters, kinds)
    end = offset + limit
    direction = "DESC" if newest_first else "ASC"
    order = f"id {direction}"
    if by == "time":
        order = f"occurred_at {direction}, {order}"
    if by == "time" and kinds and filters.document is None:
        # A kind at a time comes out of the index in order, and the reading stops early.
        parts: list[str] = []
        chosen: list[Any] = []
        for kind in kinds:
            part, bound = where(filters, (kind,))
            parts.append(
                f"SELECT * FROM (SELECT id, occurred_at FROM items WHERE {part}"
                f" ORDER BY {order} LIMIT ?)"
            )
            chosen += [*bound, end]
        ids = f"SELECT id FROM ({' UNION ALL '.join(parts)}) ORDER BY {order} LIMIT ? OFFSET ?"
    else:
        ids = f"SELECT id FROM items WHERE {condition} ORDER BY {order} LIMIT ? OFFSET ?"
        chosen = [*values]
    # Ids first: sorting whole rows would carry their texts along.
    rows = connection.execute(
        f"{SELECT} WHERE items.id IN ({ids}) ORDER BY {order}", [*chosen, limit, offset]
    ).fetchall()
    total = offset + len(rows)
    if count and (offset or len(rows) == limit):
        (total,) = connection.execute(
            f"SELECT count(*) FROM items WHERE {condition}", values
        ).fetchone()
    return Page(
        items=tuple(map(item_of, rows)),
        total=total,
        next=offset + len(rows) if rows and offset + len(rows) < total else None,
    )


def rowids_where(
    connection: Connection, *, kinds: Sequence[Kind] = (), filters: Filters
) -> list[int]:
    condition, values = where(filters, kinds)
    return [row[0] for row in connection.execute(f"SELECT id FROM items WHERE {condition}", values)]


def forgotten_ids(connection: Connection) -> list[str]:
    rows = connection.execute("SELECT public_id FROM items WHERE forgotten_at IS NOT NULL")
    return [id for (id,) in rows]


def rowids_of(connection: Connection, ids: Sequence[str]) -> list[int]:
    """The rowids of live items with these ids, or `NotFound` for the first that is not there."""
    return [find(connection, id).rowid for id in dict.fromkeys(ids)]


# --- one row ----------------------------------------------------------------------------------


def _insert(changes: Changes, prepared: Prepared) -> Put:
    rowid = changes.next()
    values: tuple[Any, ...] = (rowid, *prepared.values[1:])
    id: str = values[_AT["public_id"]]
    if not prepared.is_fresh and _is_taken(changes.connection, id):
        raise InvalidInput("id", "is the id of another item already")
    changes.connection.execute(_INSERT, (*values, rowid, digest_of(values)))
    enlist(changes, rowid, prepared.tokens)
    return Put(id=id, rowid=rowid)


def _is_taken(connection: Connection, id: str) -> bool:
    row = connection.execute("SELECT 1 FROM items WHERE public_id = ?", (id,)).fetchone()
    return row is not None


def _repeat(changes: Changes, values: Sequence[Any]) -> Put | None:
    """The same content once more: count it."""
    if values[_AT["sameness"]] is None:
        return None
    row = changes.connection.execute(
        f"SELECT id FROM items WHERE kind = ? AND sameness = ? AND {LIVE}",
        (values[_AT["kind"]], values[_AT["sameness"]]),
    ).fetchone()
    if row is None:
        return None
    known = _values(changes.connection, row[0])
    known[_AT["repeats"]] += 1
    known[_AT["updated_at"]] = values[_AT["updated_at"]]
    _rewrite(changes, known)
    return _known(changes.connection, row[0])


def _replace(changes: Changes, prepared: Prepared) -> Put | None:
    """Another thing under a natural key that is in use: it takes the place, and the id stays."""
    values = prepared.values
    if values[_AT["key"]] is None:
        return None
    row = changes.connection.execute(
        f"{SELECT} WHERE kind = ? AND key = ? AND {LIVE}",
        (values[_AT["kind"]], values[_AT["key"]]),
    ).fetchone()
    if row is None:
        return None
    old = item_of(row)
    kept = ("id", "public_id", "created_at", "repeats", "updated_at")
    fields = {name: values[_AT[name]] for name in COLUMNS if name not in kept}
    change_item(changes, old, values[_AT["updated_at"]], **fields)
    return Put(id=old.id, rowid=old.rowid)


def _known(connection: Connection, rowid: int) -> Put:
    row = connection.execute("SELECT public_id, repeats FROM items WHERE id = ?", (rowid,))
    id, repeats = row.fetchone()
    return Put(id=id, rowid=rowid, duplicate=True, repeats=repeats)


def _values(connection: Connection, rowid: int) -> list[Any]:
    row: Row | None = connection.execute(f"{SELECT} WHERE items.id = ?", (rowid,)).fetchone()
    if row is None:
        raise NotFound("item", str(rowid))
    item_of(row)
    return list(row[:-1])


def _rewrite(changes: Changes, values: Sequence[Any]) -> None:
    changes.connection.execute(_UPDATE, (*values, changes.next(), digest_of(values), values[0]))


def _live_twin(connection: Connection, values: Sequence[Any], column: str) -> bool:
    if values[_AT[column]] is None:
        return False
    row = connection.execute(
        f"SELECT 1 FROM items WHERE kind = ? AND {column} = ? AND {LIVE}",
        (values[_AT["kind"]], values[_AT[column]]),
    ).fetchone()
    return row is not None


def _said(values: Sequence[Any]) -> bytes:
    """A hash of what a put says, for recognising a retry whatever the kind."""
    said = [
        value
        for name, value in zip(COLUMNS, values, strict=True)
        if name not in ("id", "public_id", "occurred_at", "created_at", "updated_at")
    ]
    return blake2b(_encode(said), digest_size=16).digest()

"""Integrity checks of a bank, and repair of everything that can be derived from its rows.

The rows are the source of truth. Words, vectors and counters are derived from them and can be
rebuilt. A row with a wrong digest cannot be repaired: it is moved to a file beside the database,
where a person can look at it.
"""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from store.model import Checked, Problem
from store.ranking.tokenizer import index_text
from store.sqlite.connection import Connection
from store.sqlite.files import replace_file
from store.sqlite.rows.documents import DOCUMENTS
from store.sqlite.rows.items import ITEMS, LIVE, SELECT, item_of, searchable
from store.sqlite.rows.prepared import count_words, tokens_of
from store.sqlite.rows.skills import PROFILES
from store.sqlite.rows.table import Columns, RowDamaged, Table, is_sound
from store.sqlite.rows.transaction import counted

QUARANTINE: Final = "damaged.jsonl"
_BATCH: Final = 500

_FINDABLE: Final = f"SELECT id FROM items WHERE {LIVE}"
_WORDS: Final = "SELECT id FROM words_docsize"
_VECTORS: Final = "SELECT item FROM vectors"
_ORPHANS: Final = "SELECT id FROM items WHERE kind = 'chunk' AND document IS NULL"
# Sets of rowids that must be empty: (problem, part, query).
_DIFFERENCES: Final = (
    ("words-missing", "words", f"{_FINDABLE} EXCEPT {_WORDS}"),
    ("words-left-over", "words", f"{_WORDS} EXCEPT {_FINDABLE}"),
    ("vectors-missing", "vectors", f"{_FINDABLE} EXCEPT {_VECTORS}"),
    ("vectors-left-over", "vectors", f"{_VECTORS} EXCEPT {_FINDABLE}"),
    ("chunks-without-document", "items", _ORPHANS),
)


class _Damaged(NamedTuple):
    kind: str
    columns: tuple[str, ...]
    row: Columns


def check(connection: Connection, bank: str) -> Checked:
    """Run all checks, on the writer's connection and outside a transaction."""
    with _tolerant(connection):
        return _check(connection, bank)


def _check(connection: Connection, bank: str) -> Checked:
    problems: list[Problem] = []
    faults = connection.execute("PRAGMA integrity_check(100)").fetchall()
    if faults != [("ok",)]:
        problems.append(
            Problem(name="database-damaged", part="file", count=len(faults), remedy="restore")
        )
    broken = connection.execute("PRAGMA foreign_key_check").fetchall()
    if broken:
        problems.append(Problem(name="references-broken", part="items", count=len(broken)))
    for name, part, query in _DIFFERENCES:
        (count,) = connection.execute(f"SELECT count(*) FROM ({query})").fetchone()
        if count:
            problems.append(Problem(name=name, part=part, count=count))
    items, wrong_words = _check_items(connection)
    if items:
        problems.append(Problem(name="rows-damaged", part="items", count=items))
    if wrong_words:
        problems.append(Problem(name="words-wrong", part="words", count=wrong_words))
    documents = sum(not is_sound(row) for row in connection.execute(DOCUMENTS.select))
    if documents:
        problems.append(Problem(name="rows-damaged", part="documents", count=documents))
    profiles = sum(not is_sound(row) for row in connection.execute(PROFILES.select))
    if profiles:
        problems.append(Problem(name="rows-damaged", part="profiles", count=profiles))
    wrong_vectors = sum(1 for _ in _wrong_vectors(connection))
    if wrong_vectors:
        problems.append(Problem(name="vectors-wrong", part="vectors", count=wrong_vectors))
    if _counters(connection) != _true_counters(connection):
        problems.append(Problem(name="counters-wrong", part="state"))
    return Checked(
        bank=bank,
        items=_count(connection, f"items WHERE {LIVE}"),
        words=_count(connection, "words_docsize"),
        vectors=_count(connection, "vectors"),
        documents=_count(connection, "documents"),
        problems=tuple(problems),
    )


def repair(connection: Connection, directory: Path) -> int:
    """Move damaged rows to a file, and rebuild words, vectors and counters from the others.

    Returns the number of rows that were moved.
    """
    with _tolerant(connection):
        return _repair(connection, directory)


def _repair(connection: Connection, directory: Path) -> int:
    connection.execute("REINDEX")  # indexes are derived from the rows too
    connection.execute("BEGIN IMMEDIATE")
    try:
        damaged = _damaged_rows(connection, "item", ITEMS)
        damaged += _damaged_rows(connection, "document", DOCUMENTS)
        damaged += _damaged_rows(connection, "profile", PROFILES)
        if damaged:
            _quarantine(directory / QUARANTINE, damaged)
        for kind, _, row in damaged:
            if kind == "document":
                connection.execute("UPDATE items SET document = NULL WHERE document = ?", (row[1],))
                connection.execute("DELETE FROM documents WHERE id = ?", (row[0],))
            elif kind == "item":
                connection.execute("DELETE FROM items WHERE id = ?", (row[0],))
        # By rowid, because a damaged role may not be text any more.
        connection.executemany(
            "DELETE FROM profiles WHERE rowid = ?", _damaged_profiles(connection)
        )
        # A chunk without its document cannot be cited.
        connection.execute("DELETE FROM items WHERE kind = 'chunk' AND document IS NULL")
        rebuild_words(connection)
        _realign_vector_rows(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return len(damaged)


def rebuild_words(connection: Connection) -> int:
    """Rebuild the words of every live item, and the counters.

    A damaged row raises `RowDamaged`; run `repair` first.
    """
    connection.execute("DELETE FROM words")
    items = words = 0
    for row in _rows(connection, f"{SELECT} WHERE {LIVE} AND items.id > ?"):
        tokens = index_text(searchable(item_of(row)))
        connection.execute("INSERT INTO words (rowid, tokens) VALUES (?, ?)", (row[0], tokens))
        items += 1
        words += count_words(tokens)
    connection.execute("UPDATE state SET items = ?, words = ?", (items, words))
    return items


def forget_vectors(connection: Connection) -> int:
    """Mark every vector as pending."""
    with counted(connection) as changes:
        return connection.execute(
            "UPDATE vectors SET model = NULL, bytes = NULL, change = ?", (changes.next(),)
        ).rowcount


def _realign_vector_rows(connection: Connection) -> None:
    connection.execute(f"DELETE FROM vectors WHERE item NOT IN (SELECT id FROM items WHERE {LIVE})")
    with counted(connection) as changes:
        change = changes.next()
        connection.execute(
            f"INSERT INTO vectors (item, change) SELECT id, ? FROM items WHERE {LIVE}"
            " AND id NOT IN (SELECT item FROM vectors)",
            (change,),
        )
        connection.executemany(
            "UPDATE vectors SET model = NULL, bytes = NULL, change = ? WHERE item = ?",
            [(change, item) for item in _wrong_vectors(connection)],
        )


def _wrong_vectors(connection: Connection) -> Iterator[int]:
    """The items whose vector has the wrong length or contains NaN or infinity.

    A vector consists of little-endian half floats. If all exponent bits of one are set, it is NaN
    or infinite, and these bits are in its second byte. So it is enough to look at every second
    byte, and NumPy need not be loaded.
    """
    rows = connection.execute(
        "SELECT vectors.item, vectors.bytes, models.dims FROM vectors"
        " LEFT JOIN models ON models.id = vectors.model WHERE vectors.bytes IS NOT NULL"
    )
    for item, vector, dims in rows:
        if dims is None or len(vector) != 2 * dims or vector[1::2].translate(None, _FINITE):
            yield item


_FINITE: Final = bytes(byte for byte in range(256) if byte & 0x7C != 0x7C)


def _damaged_profiles(connection: Connection) -> list[tuple[int]]:
    rows = connection.execute(f"SELECT rowid, {', '.join(PROFILES.columns)}, digest FROM profiles")
    return [(row[0],) for row in rows if not is_sound(row[1:])]


def _check_items(connection: Connection) -> tuple[int, int]:
    damaged = wrong_words = 0
    for row in _rows(connection, f"{SELECT} WHERE items.id > ?"):
        try:
            item = ITEMS.read(row)
        except RowDamaged:
            damaged += 1
            continue
        if item.forgotten_at is not None:
            continue
        found = connection.execute(
            "SELECT tokens FROM words WHERE rowid = ?", (item.id,)
        ).fetchone()
        if found is not None and found[0] != tokens_of(item):
            wrong_words += 1
    return damaged, wrong_words


def _damaged_rows(connection: Connection, kind: str, table: Table[Any]) -> list[_Damaged]:
    rows = connection.execute(table.select)
    return [_Damaged(kind, table.columns, row) for row in rows if not is_sound(row)]


@contextmanager
def _tolerant(connection: Connection) -> Generator[None]:
    """Decode invalid UTF-8 leniently, so that damaged texts can be read and reported."""

    def lenient(text: bytes) -> str:
        return text.decode("utf-8", "surrogateescape")

    connection.text_factory = lenient
    try:
        yield
    finally:
        connection.text_factory = str


def _rows(connection: Connection, select: str) -> Iterator[Columns]:
    """Read rows in batches by ascending rowid; `select` ends with a condition on the last one."""
    last = -1
    while rows := connection.execute(
        f"{select} ORDER BY items.id LIMIT {_BATCH}", (last,)
    ).fetchall():
        yield from rows
        last = rows[-1][0]


def _quarantine(path: Path, damaged: list[_Damaged]) -> None:
    lines = [path.read_bytes()] if path.exists() else []
    for kind, columns, row in damaged:
        values = {name: _readable(value) for name, value in zip(columns, row[:-1], strict=True)}
        lines.append(msgspec.json.encode({"damaged": kind, **values}) + b"\n")
    replace_file(path, b"".join(lines))


def _readable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return value


def _counters(connection: Connection) -> tuple[int, int]:
    items, words = connection.execute("SELECT items, words FROM state").fetchone()
    return items, words


def _true_counters(connection: Connection) -> tuple[int, int]:
    items = _count(connection, "words_docsize")
    rows = connection.execute("SELECT tokens FROM words")
    return items, sum(count_words(tokens) for (tokens,) in rows)


def _count(connection: Connection, table: str) -> int:
    (count,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    return int(count)

"""Checks of a bank on a server, and renewal of everything that can be derived from its rows.

The server has checksums of its own, and its operator repairs files. These checks are about our
rows: their digests, and the parts that are derived from them. A row with a wrong digest is reported
and never returned, but not removed: there is no place for it outside the database.
"""

from collections.abc import Iterator
from typing import Any, Final

from store.database import Connection
from store.model import Checked, Problem
from store.ranking.tokenizer import index_text
from store.rows.documents import DOCUMENTS
from store.rows.items import ITEMS, LIVE, SELECT, item_of, searchable
from store.rows.prepared import count_words, tokens_of
from store.rows.skills import PROFILES
from store.rows.table import Columns, RowDamaged, Table, is_sound
from store.rows.transaction import counted
from store.vectors.soundness import wrong_vectors

BATCH: Final = 500

_FINDABLE: Final = f"SELECT id FROM items WHERE {LIVE}"
_WORDS: Final = "SELECT item FROM words"
_VECTORS: Final = "SELECT item FROM vectors"
# Sets of item numbers that must be empty: (problem, part, query).
_DIFFERENCES: Final = (
    ("words-missing", "words", f"{_FINDABLE} EXCEPT {_WORDS}"),
    ("words-left-over", "words", f"{_WORDS} EXCEPT {_FINDABLE}"),
    ("words-left-over", "words", f"SELECT item FROM postings EXCEPT {_WORDS}"),
    ("vectors-missing", "vectors", f"{_FINDABLE} EXCEPT {_VECTORS}"),
    ("vectors-left-over", "vectors", f"{_VECTORS} EXCEPT {_FINDABLE}"),
    (
        "chunks-without-document",
        "items",
        "SELECT id FROM items WHERE kind = 'chunk' AND document IS NULL",
    ),
)


def check(connection: Connection, bank: str) -> Checked:
    """Run all checks in one read transaction."""
    problems: list[Problem] = []
    for name, part, query in _DIFFERENCES:
        count = _count(connection, f"({query}) AS different")
        if count:
            problems.append(Problem(name=name, part=part, count=count))
    problems += _check_items(connection)
    for part, table in (("documents", DOCUMENTS), ("profiles", PROFILES)):
        problems += _check_digests(connection, part, table)
    wrong = sum(1 for _ in wrong_vectors(connection))
    if wrong:
        problems.append(Problem(name="vectors-wrong", part="vectors", count=wrong))
    if _counters(connection) != _true_counters(connection):
        problems.append(Problem(name="counters-wrong", part="state"))
    return Checked(
        bank=bank,
        items=_count(connection, f"items WHERE {LIVE}"),
        words=_count(connection, "words"),
        vectors=_count(connection, "vectors"),
        documents=_count(connection, "documents"),
        problems=tuple(problems),
    )


def renew_words(connection: Connection) -> int:
    """Make words and counters equal to the rows; returns the number of live items.

    The words of a damaged row are left out.
    """
    connection.execute("DELETE FROM postings")
    connection.execute("DELETE FROM words")
    items = words = 0
    for row in _rows(connection, f"{SELECT} WHERE {LIVE} AND items.id > ?"):
        try:
            tokens = index_text(searchable(item_of(row)))
        except RowDamaged:
            tokens = ""
        connection.words.add(row[0], tokens)
        items += 1
        words += count_words(tokens)
    connection.execute("UPDATE state SET items = ?, words = ?", (items, words))
    return items


def realign_vectors(connection: Connection) -> None:
    """Give every live item one row of vectors, and mark vectors that cannot be right as pending."""
    connection.execute(f"DELETE FROM vectors WHERE item NOT IN ({_FINDABLE})")
    with counted(connection) as changes:
        change = changes.next()
        connection.execute(
            f"INSERT INTO vectors (item, change) SELECT id, ? FROM items WHERE {LIVE}"
            " AND id NOT IN (SELECT item FROM vectors)",
            (change,),
        )
        for item in sorted(set(wrong_vectors(connection))):
            connection.execute("DELETE FROM turns WHERE item = ?", (item,))
            connection.execute(
                "UPDATE vectors SET model = NULL, bytes = NULL, change = ? WHERE item = ?",
                (change, item),
            )


def _check_items(connection: Connection) -> Iterator[Problem]:
    damaged = wrong_words = 0
    postings = dict(connection.execute("SELECT item, count(*) FROM postings GROUP BY item"))
    for row in _rows(connection, f"{SELECT} WHERE items.id > ?"):
        try:
            item = ITEMS.read(row)
        except RowDamaged:
            damaged += 1
            continue
        if item.forgotten_at is not None:
            continue
        tokens = tokens_of(item)
        stored = connection.words.tokens((item.id,))
        if stored and (
            stored[0][1] != tokens or postings.get(item.id, 0) != len(set(tokens.split()))
        ):
            wrong_words += 1
    if damaged:
        yield Problem(name="rows-damaged", part="items", count=damaged)
    if wrong_words:
        yield Problem(name="words-wrong", part="words", count=wrong_words)


def _check_digests(connection: Connection, part: str, table: Table[Any]) -> Iterator[Problem]:
    damaged = sum(not is_sound(row) for row in connection.execute(table.select))
    if damaged:
        yield Problem(name="rows-damaged", part=part, count=damaged)


def _rows(connection: Connection, select: str) -> Iterator[Columns]:
    last = -1
    while rows := connection.execute(
        f"{select} ORDER BY items.id LIMIT {BATCH}", (last,)
    ).fetchall():
        yield from rows
        last = rows[-1][0]


def _counters(connection: Connection) -> tuple[int, int]:
    items, words = connection.execute("SELECT items, words FROM state").fetchone()
    return items, words


def _true_counters(connection: Connection) -> tuple[int, int]:
    rows = connection.execute("SELECT tokens FROM words").fetchall()
    return len(rows), sum(count_words(tokens) for (tokens,) in rows)


def _count(connection: Connection, table: str) -> int:
    (count,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    return int(count)

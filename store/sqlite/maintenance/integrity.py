"""Integrity checks of a bank, and repair of everything that can be derived from its rows.

The rows are the source of truth. Words, vectors and counters are derived from them and can be
rebuilt. A row with a wrong digest cannot be repaired: it is moved to a file beside the database,
where a person can look at it.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import msgspec

from store.engine import Progress
from store.errors import StorageBusy
from store.files import replace_file
from store.model import Checked, Problem
from store.rows.documents import DOCUMENTS
from store.rows.items import ITEMS, LIVE, SELECT
from store.rows.prepared import count_words, tokens_of
from store.rows.skills import PROFILES
from store.rows.table import Columns, RowDamaged, Table, is_sound
from store.rows.transaction import counted
from store.sqlite.connection import Connection, roll_back
from store.sqlite.maintenance import word_index
from store.sqlite.maintenance.portion import WHOLE, ignore, portion
from store.sqlite.maintenance.tolerance import UNREADABLE, lenient_texts, rows_by_id
from store.sqlite.storage_errors import storage_error
from store.vectors.soundness import wrong_vectors

QUARANTINE: Final = "damaged.jsonl"
#: Parts that `repair` makes from the rows.
_DERIVED: Final = frozenset({"words", "vectors", "state"})

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


def check(
    connection: Connection,
    bank: str,
    *,
    is_stopped: Callable[[], bool] = lambda: False,
    progress: Progress = ignore,
) -> Checked:
    """Run all checks, outside a transaction, on a connection that can write.

    Damage that keeps a check from finishing is a problem like any other. `is_stopped` is asked
    between the steps and ends the check early.
    """
    with lenient_texts(connection):
        found = _Findings(connection, is_stopped)
        found.run("file", _check_file)
        progress(200, WHOLE)
        found.run("items", _check_references)
        for name, part, query in _DIFFERENCES:
            found.run(part, partial(_check_difference, name=name, part=part, query=query))
        found.run("words", _check_word_index)
        rows = partial(_check_items, is_stopped=is_stopped, progress=portion(progress, 350, 850))
        found.run("items", rows)
        found.run("documents", partial(_check_digests, part="documents", table=DOCUMENTS))
        found.run("profiles", partial(_check_digests, part="profiles", table=PROFILES))
        found.run("vectors", _check_vectors)
        found.run("state", _check_counters)
        return Checked(
            bank=bank,
            items=found.count(f"items WHERE {LIVE}"),
            words=found.count("words_docsize"),
            vectors=found.count("vectors"),
            documents=found.count("documents"),
            problems=tuple(found.problems),
        )


class _Findings:
    """The problems found so far."""

    def __init__(self, connection: Connection, is_stopped: Callable[[], bool]) -> None:
        self._connection = connection
        self._is_stopped = is_stopped
        self.problems: list[Problem] = []

    def run(self, part: str, work: Callable[[Connection], Iterable[Problem]]) -> None:
        if self._is_stopped():
            raise StorageBusy("the check was stopped before its end")
        try:
            found = list(work(self._connection))
        except UNREADABLE as error:
            if isinstance(storage_error(error), StorageBusy):
                raise  # it took too long, or was interrupted
            remedy: Literal["repair", "restore"] = "repair" if part in _DERIVED else "restore"
            found = [Problem(name="unreadable", part=part, remedy=remedy)]
        self.problems += [each for each in found if each not in self.problems]

    def count(self, table: str) -> int:
        try:
            return _count(self._connection, table)
        except UNREADABLE:
            return 0


def _check_file(connection: Connection) -> Iterator[Problem]:
    faults = connection.execute("PRAGMA integrity_check(100)").fetchall()
    if faults != [("ok",)]:
        yield Problem(name="database-damaged", part="file", count=len(faults), remedy="restore")


def _check_references(connection: Connection) -> Iterator[Problem]:
    broken = connection.execute("PRAGMA foreign_key_check").fetchall()
    if broken:
        yield Problem(name="references-broken", part="items", count=len(broken))


def _check_difference(
    connection: Connection, *, name: str, part: str, query: str
) -> Iterator[Problem]:
    count = _count(connection, f"({query})")
    if count:
        yield Problem(name=name, part=part, count=count)


def _check_word_index(connection: Connection) -> Iterator[Problem]:
    if not word_index.is_sound(connection):
        yield Problem(name="word-index-damaged", part="words")


def _check_digests(connection: Connection, *, part: str, table: Table[Any]) -> Iterator[Problem]:
    damaged = sum(not is_sound(row) for row in connection.execute(table.select))
    if damaged:
        yield Problem(name="rows-damaged", part=part, count=damaged)


def _check_vectors(connection: Connection) -> Iterator[Problem]:
    wrong = sum(1 for _ in wrong_vectors(connection))
    if wrong:
        yield Problem(name="vectors-wrong", part="vectors", count=wrong)


def _check_counters(connection: Connection) -> Iterator[Problem]:
    if _counters(connection) != _true_counters(connection):
        yield Problem(name="counters-wrong", part="state")


def repair(connection: Connection, directory: Path, progress: Progress = ignore) -> int:
    """Move damaged rows to a file, and rebuild words, vectors and counters from the others.

    Returns the number of rows that were moved.
    """
    with lenient_texts(connection):
        connection.execute("REINDEX")  # indexes are derived from the rows too
        removed = _remove_damaged(connection, directory)
        word_index.renew(connection, progress)
        return removed


def _remove_damaged(connection: Connection, directory: Path) -> int:
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
        _realign_vector_rows(connection)
        connection.execute("COMMIT")
    except BaseException:
        roll_back(connection)
        raise
    return len(damaged)


def _realign_vector_rows(connection: Connection) -> None:
    connection.execute(f"DELETE FROM vectors WHERE item NOT IN (SELECT id FROM items WHERE {LIVE})")
    with counted(connection) as changes:
        change = changes.next()
        connection.execute(
            f"INSERT INTO vectors (item, change) SELECT id, ? FROM items WHERE {LIVE}"
            " AND id NOT IN (SELECT item FROM vectors)",
            (change,),
        )
        wrong = sorted(set(wrong_vectors(connection)))
        connection.executemany(
            "UPDATE vectors SET model = NULL, bytes = NULL, change = ? WHERE item = ?",
            [(change, item) for item in wrong],
        )
        connection.executemany("DELETE FROM turns WHERE item = ?", [(item,) for item in wrong])
        connection.execute("DELETE FROM turns WHERE item NOT IN (SELECT item FROM vectors)")


def _damaged_profiles(connection: Connection) -> list[tuple[int]]:
    rows = connection.execute(f"SELECT rowid, {', '.join(PROFILES.columns)}, digest FROM profiles")
    return [(row[0],) for row in rows if not is_sound(row[1:])]


def _check_items(
    connection: Connection, *, is_stopped: Callable[[], bool], progress: Progress
) -> Iterator[Problem]:
    total = _count(connection, "items")
    damaged = wrong_words = 0
    for number, row in enumerate(rows_by_id(connection, f"{SELECT} WHERE items.id > ?")):
        if number % 1_000 == 0:
            if is_stopped():
                raise StorageBusy("the check was stopped before its end")
            progress(number, total)
        try:
            item = ITEMS.read(row)
        except (RowDamaged, *UNREADABLE):
            damaged += 1
            continue
        if item.forgotten_at is not None:
            continue
        found = connection.execute(
            "SELECT tokens FROM words WHERE rowid = ?", (item.id,)
        ).fetchone()
        if found is not None and found[0] != tokens_of(item):
            wrong_words += 1
    if damaged:
        yield Problem(name="rows-damaged", part="items", count=damaged)
    if wrong_words:
        yield Problem(name="words-wrong", part="words", count=wrong_words)


def _damaged_rows(connection: Connection, kind: str, table: Table[Any]) -> list[_Damaged]:
    rows = connection.execute(table.select)
    return [_Damaged(kind, table.columns, row) for row in rows if not is_sound(row)]


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

"""The word index (an FTS5 table): its integrity check, and its renewal from the rows.

FTS5 keeps the index in ordinary tables, whose content SQLite's own check does not understand. Of 80
damages to them it missed 66. FTS5's `integrity-check` found all of them. It compares the index with
the stored tokens, and it counts as a write, so it runs on a copy of the bank or on the writer.

FTS5's `rebuild` mends most damage. It needs intact stored tokens, and FTS5 must be able to open the
table. Otherwise the table is dropped and created again. If even dropping it fails, its entries
in the schema are removed, and VACUUM frees the pages.
"""

from collections.abc import Callable
from typing import Final

from store.engine import Progress
from store.ranking.tokenizer import index_text
from store.rows.items import LIVE, SELECT, item_of, searchable
from store.rows.prepared import count_words
from store.sqlite.connection import Connection, roll_back
from store.sqlite.maintenance.portion import ignore
from store.sqlite.maintenance.tolerance import UNREADABLE, rows_by_id
from store.sqlite.migrate import migrations, statements

Step = Callable[[Connection], None]

_ROWS_PER_REPORT: Final = 500
_CREATE: Final = "CREATE VIRTUAL TABLE words "


def is_sound(connection: Connection) -> bool:
    """Run FTS5's integrity check. It writes nothing, but needs a connection that can write."""
    try:
        connection.execute("INSERT INTO words (words) VALUES ('integrity-check')")
    except UNREADABLE:
        return False
    return True


def renew(connection: Connection, progress: Progress = ignore) -> int:
    """Make the index equal to the rows, whatever its state; returns the number of live items.

    Runs outside a transaction. A damaged row raises `RowDamaged`; run `repair` first.
    """
    try:
        return _refill(connection, progress, before=_rebuild)
    except UNREADABLE:
        roll_back(connection)
    try:
        return _refill(connection, progress, before=_recreate)
    except UNREADABLE:
        roll_back(connection)
    _cut_out(connection)
    items = _refill(connection, progress, before=_create)
    connection.execute("VACUUM")
    return items


def fill(connection: Connection, progress: Progress = ignore) -> int:
    """Write the words of every live item and the counters, inside a transaction."""
    connection.execute("DELETE FROM words")
    (total,) = connection.execute(f"SELECT count(*) FROM items WHERE {LIVE}").fetchone()
    items = words = 0
    for row in rows_by_id(connection, f"{SELECT} WHERE {LIVE} AND items.id > ?"):
        tokens = index_text(searchable(item_of(row)))
        connection.execute("INSERT INTO words (rowid, tokens) VALUES (?, ?)", (row[0], tokens))
        items += 1
        words += count_words(tokens)
        if items % _ROWS_PER_REPORT == 0:
            progress(items, total)
    connection.execute("UPDATE state SET items = ?, words = ?", (items, words))
    return items


def _refill(connection: Connection, progress: Progress, *, before: Step) -> int:
    connection.execute("BEGIN IMMEDIATE")
    try:
        before(connection)
        items = fill(connection, progress)
        connection.execute("INSERT INTO words (words) VALUES ('integrity-check')")
        connection.execute("COMMIT")
    except BaseException:
        roll_back(connection)
        raise
    return items


def _rebuild(connection: Connection) -> None:
    connection.execute("INSERT INTO words (words) VALUES ('rebuild')")


def _recreate(connection: Connection) -> None:
    connection.execute("DROP TABLE words")
    _create(connection)


def _create(connection: Connection) -> None:
    connection.execute(_definition())


def _definition() -> str:
    """The statement of the newest migration that creates the table."""
    scripts = (step.path.read_text(encoding="utf-8") for step in migrations("bank"))
    found = [
        statement[statement.index(_CREATE) :]
        for script in scripts
        for statement in statements(script)
        if _CREATE in statement
    ]
    return found[-1]


def _cut_out(connection: Connection) -> None:
    """Remove a table that FTS5 cannot drop from the schema; its pages stay until VACUUM."""
    connection.execute("PRAGMA writable_schema = ON")
    try:
        connection.execute(
            "DELETE FROM sqlite_schema WHERE name = 'words' OR tbl_name GLOB 'words_*'"
        )
    finally:
        connection.execute("PRAGMA writable_schema = RESET")

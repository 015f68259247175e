"""Reading of damaged databases: lenient texts, and the errors that damage causes.

SQLite does not check the type of a stored value when it reads it. So a damaged page can bring a
value of any type to code that expects another, which raises `TypeError` and its like.
"""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Final

from store.rows.table import Columns
from store.sqlite.connection import Connection
from store.sqlite.storage_errors import BROKEN, MISREAD

#: The errors that code may raise which reads a damaged database.
UNREADABLE: Final = (*BROKEN, *MISREAD)

_BATCH: Final = 500


@contextmanager
def lenient_texts(connection: Connection) -> Generator[None]:
    """Decode invalid UTF-8 leniently, so that damaged texts can be read and reported."""

    def lenient(text: bytes) -> str:
        return text.decode("utf-8", "surrogateescape")

    connection.text_factory = lenient
    try:
        yield
    finally:
        connection.text_factory = str


def rows_by_id(connection: Connection, select: str) -> Iterator[Columns]:
    """Read rows in batches by ascending rowid; `select` ends with a condition on the last one."""
    last = -1
    while rows := connection.execute(
        f"{select} ORDER BY items.id LIMIT {_BATCH}", (last,)
    ).fetchall():
        yield from rows
        if rows[-1][0] <= last:
            return  # a damaged tree can lead in a circle
        last = rows[-1][0]

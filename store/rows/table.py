"""Tables whose rows are Structs and carry a digest.

SQLite has no checksums: a damaged page often still passes its integrity check. So every row of
these tables has a digest over its columns in the last column. `Table.read` compares the digest
before a row becomes a Struct, so a row that the disk has changed is reported and never returned.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec import Struct

from store.database import Connection
from store.errors import StorageDamaged

R = TypeVar("R", bound=Struct)

#: The columns of a row as SQLite returns them, with the digest last.
Columns = tuple[Any, ...]

_encode: Final = msgspec.msgpack.Encoder().encode


class RowDamaged(StorageDamaged):
    """A stored row differs from the one that was written. `repair` moves it out of the bank."""

    def __init__(self, kind: str, rowid: int) -> None:
        super().__init__(f"stored {kind} number {rowid} is damaged")
        self.rowid = rowid


class Table(Generic[R]):
    """A table and the Struct of its rows.

    The fields of the Struct are the columns, in the same order, which is also the order in which
    the digest covers them; the first one is the key. `undigested` columns are written with a row
    but are neither read nor covered by the digest.
    """

    def __init__(
        self, name: str, row: type[R], *, noun: str, undigested: Sequence[str] = ()
    ) -> None:
        self.columns: tuple[str, ...] = row.__struct_fields__
        self.select = (
            f"SELECT {', '.join(f'{name}.{column}' for column in self.columns)}, {name}.digest"
            f" FROM {name}"
        )
        written = (*self.columns, *undigested, "digest")
        names, marks = ", ".join(map(_quoted, written)), ", ".join("?" * len(written))
        self.insert_statement = f"INSERT INTO {name} ({names}) VALUES ({marks})"
        self.update_statement = (
            f"UPDATE {name} SET {', '.join(f'{_quoted(column)} = ?' for column in written)}"
            f" WHERE {self.columns[0]} = ?"
        )
        self._row = row
        self._noun = noun

    def read(self, columns: Columns) -> R:
        """The row in the columns of `select`, or `RowDamaged`."""
        values = columns[:-1]
        try:
            if blake2b(_encode(values), digest_size=16).digest() == columns[-1]:
                return self._row(*values)
        except (TypeError, ValueError, OverflowError):
            pass  # a value of a type that is never written
        raise RowDamaged(self._noun, columns[0] if isinstance(columns[0], int) else 0)

    def insert(self, connection: Connection, row: R, *undigested: Any) -> None:
        connection.execute(self.insert_statement, self.written(row, *undigested))

    def insert_as(self, connection: Connection, key: int, row: R, *undigested: Any) -> None:
        """Insert a row under another key than its own."""
        columns = (key, *msgspec.structs.astuple(row)[1:])
        connection.execute(self.insert_statement, (*columns, *undigested, digest_of(columns)))

    def update(self, connection: Connection, row: R, *undigested: Any) -> None:
        """Write a row again, in the place of the row with its key."""
        columns = self.written(row, *undigested)
        connection.execute(self.update_statement, (*columns, columns[0]))

    def written(self, row: R, *undigested: Any) -> Columns:
        """The parameters of `insert_statement`."""
        columns = msgspec.structs.astuple(row)
        return (*columns, *undigested, digest_of(columns))


def _quoted(column: str) -> str:
    """A name that may be a reserved word, such as `user`."""
    return f'"{column}"'


def digest_of(columns: Sequence[Any]) -> bytes:
    """The digest of a row, given its columns without the digest itself."""
    return blake2b(_encode(columns), digest_size=16).digest()


def is_sound(columns: Columns) -> bool:
    """Whether the digest of a row, its last column, matches the other columns."""
    try:
        return bool(digest_of(columns[:-1]) == columns[-1])
    except (TypeError, ValueError, OverflowError):
        return False

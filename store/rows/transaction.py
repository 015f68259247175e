"""The bank's counters during one write transaction.

A bank counts its changes, its live items and the words of those items in the one row of the table
`state`. A transaction reads them once, counts in memory, and writes them back once, at its end.
"""

from collections.abc import Generator
from contextlib import contextmanager

from store.database import Connection
from store.errors import StorageDamaged


class WriteTransaction:
    """The connection of a unit of work that writes items, with the bank's counters.

    `database.py` begins and commits the transaction itself.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        row = connection.execute(f"SELECT change FROM state{connection.dialect.locked}").fetchone()
        if row is None:
            raise StorageDamaged("the bank has lost its counters")
        self.change: int = row[0]
        self._before = self.change
        self.items = 0
        self.words = 0

    def next(self) -> int:
        """A new change number."""
        self.change += 1
        return self.change

    def save(self) -> None:
        """Write the counters back, if anything was changed."""
        if self.change != self._before:
            self.connection.execute(
                "UPDATE state SET change = ?, items = items + ?, words = words + ?",
                (self.change, self.items, self.words),
            )


@contextmanager
def counted(connection: Connection) -> Generator[WriteTransaction]:
    """The counters for the statements of the block; they are saved when the block succeeds."""
    transaction = WriteTransaction(connection)
    yield transaction
    transaction.save()

"""A connection to the server, as the storage port sees it: `store.database.Connection`.

Statements run in psycopg's pipeline mode: a statement whose result nobody looks at is sent together
with the next one whose result is needed. So a put is about two round trips, whatever it writes.

Nothing here outlives a transaction: no session settings, no session locks, no LISTEN. A pooler in
transaction mode may therefore hand the connection to another client after each COMMIT. Statements
are prepared by name only if the caller says that no pooler is between (`prepares`).
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, LiteralString, cast

import psycopg
from psycopg.rows import tuple_row
from psycopg.types.numeric import Int8Dumper, NumericLoader

from store.postgres.dialect import DIALECT, PostgresDialect
from store.postgres.scoping import scoped
from store.postgres.words import PostgresWords
from store.rows.items import ITEMS

Server = psycopg.Connection[tuple[Any, ...]]

CONNECT_SECONDS: Final = 5
PREPARE_AFTER: Final = 5

_TITLE: Final = ITEMS.columns.index("title")
_TEXT: Final = ITEMS.columns.index("text")


class _Whole(NumericLoader):
    """Sums of whole numbers are `numeric` on the server; here they are int again."""

    def load(self, data: Any) -> Any:
        number = super().load(data)
        return int(number) if number == number.to_integral_value() else float(number)


def connect(url: str, *, prepares: bool) -> Server:
    """Open a connection. Blocks for at most `CONNECT_SECONDS` for each address of the server."""
    server = psycopg.connect(
        url,
        autocommit=True,
        row_factory=tuple_row,
        cursor_factory=psycopg.RawCursor,
        prepare_threshold=PREPARE_AFTER if prepares else None,
        connect_timeout=CONNECT_SECONDS,
        application_name="recalld",
        client_encoding="utf8",
        keepalives_idle=30,
        keepalives_interval=10,
        keepalives_count=3,
    )
    server.adapters.register_dumper(int, Int8Dumper)  # one type, so that one plan fits all
    server.adapters.register_loader("numeric", _Whole)
    return server


class BankConnection:
    """The tables of one bank on a connection, inside a transaction of the caller."""

    def __init__(
        self, server: Server, bank: int | None, pipeline: psycopg.Pipeline | None = None
    ) -> None:
        self._server = server
        self._bank = bank
        self._pipeline = pipeline
        self.words = PostgresWords(self)

    @property
    def dialect(self) -> PostgresDialect:
        return DIALECT

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> "BankCursor":
        if sql is ITEMS.insert_statement:
            sql, parameters = _INSERT_ITEM, (*parameters, _folded(parameters))
        elif sql is ITEMS.update_statement:
            *columns, key = parameters
            sql, parameters = _UPDATE_ITEM, (*columns, _folded(parameters), key)
        statement, names_bank = scoped(sql)
        if names_bank:
            parameters = (self._bank, *parameters)
        return BankCursor(
            self._server.execute(cast("LiteralString", statement), parameters), self._pipeline
        )

    def enter(self, bank: int) -> None:
        """Go on with the tables of a bank that was created in this transaction."""
        self._bank = bank
        self._server.execute("SELECT set_config('recalld.bank', $1, true)", (str(bank),))

    def executemany(self, sql: str, parameters: Sequence[Sequence[Any]], /) -> None:
        for values in parameters:
            self.execute(sql, values)

    def stored_bytes(self) -> int:
        """The size of the bank's texts and vectors; indexes are not counted."""
        (size,) = self.execute(
            "SELECT (SELECT coalesce(sum(octet_length(title) + octet_length(text)"
            " + octet_length(metadata) + octet_length(details) + 300), 0) FROM items)"
            " + (SELECT coalesce(sum(octet_length(body) + 300), 0) FROM documents)"
            " + (SELECT coalesce(sum(coalesce(octet_length(bytes), 0) + 50), 0) FROM vectors)"
            " + (SELECT coalesce(sum(octet_length(tokens) * 2), 0) FROM words)"
        ).fetchone()
        return int(size)


class BankCursor:
    """The result of a statement that the server may not have answered yet."""

    __slots__ = ("_cursor", "_pipeline")

    def __init__(self, cursor: "psycopg.Cursor[Any]", pipeline: psycopg.Pipeline | None) -> None:
        self._cursor = cursor
        self._pipeline = pipeline

    @property
    def rowcount(self) -> int:
        if self._pipeline is not None and self._cursor.pgresult is None:
            self._pipeline.sync()
        return self._cursor.rowcount

    def fetchone(self) -> Any:
        return self._cursor.fetchone()

    def fetchmany(self, size: int = 1, /) -> list[Any]:
        return self._cursor.fetchmany(size)

    def fetchall(self) -> list[Any]:
        return self._cursor.fetchall()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._cursor.fetchall())


_NAMED: Final = '"digest"'
_INSERT_ITEM: Final = ITEMS.insert_statement.replace(_NAMED, f'{_NAMED}, "folded"').replace(
    "?)", "?, ?)"
)
_UPDATE_ITEM: Final = ITEMS.update_statement.replace(f"{_NAMED} = ?", f'{_NAMED} = ?, "folded" = ?')


def _folded(columns: Sequence[Any]) -> str:
    return f"{columns[_TITLE]}\n{columns[_TEXT]}".casefold()

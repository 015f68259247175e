"""The words of a bank in an FTS5 table. See `store.database.Words`, which this implements."""

import sqlite3
from collections.abc import Sequence

from store.database import EVERYTHING, Condition
from store.ranking.tokenizer import quoted


class Words:
    """The table `words` of one connection."""

    __slots__ = ("_connection",)

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def add(self, item: int, tokens: str) -> None:
        self._connection.execute("INSERT INTO words (rowid, tokens) VALUES (?, ?)", (item, tokens))

    def replace(self, item: int, tokens: str) -> None:
        self._connection.execute("UPDATE words SET tokens = ? WHERE rowid = ?", (tokens, item))

    def remove(self, item: int) -> None:
        self._connection.execute("DELETE FROM words WHERE rowid = ?", (item,))

    def tokens(self, items: Sequence[int]) -> list[tuple[int, str]]:
        rows: list[tuple[int, str]] = []
        for start in range(0, len(items), 500):
            some = items[start : start + 500]
            # FTS5's own table of texts: reading through `words` takes twice as long.
            rows += self._connection.execute(
                f"SELECT id, c0 FROM words_content WHERE id IN ({','.join('?' * len(some))})", some
            ).fetchall()
        return rows

    def postings(
        self, terms: Sequence[str], most: int, among: Condition = EVERYTHING
    ) -> dict[str, list[int]]:
        return {term: self._matches(quoted(term), most, among) for term in terms}

    def with_all(
        self,
        terms: Sequence[str],
        most: int,
        among: Condition = EVERYTHING,
        *,
        oldest_first: bool = False,
    ) -> list[int]:
        order = "ASC" if oldest_first else "DESC"
        return self._matches(" AND ".join(map(quoted, terms)), most, among, order)

    def _matches(
        self, expression: str, most: int, among: Condition, order: str = "DESC"
    ) -> list[int]:
        condition, values = among
        if condition:
            sql = (
                "SELECT words.rowid FROM words JOIN items ON items.id = words.rowid"
                f" WHERE words MATCH ? AND {condition} ORDER BY words.rowid {order} LIMIT ?"
            )
        else:
            sql = f"SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid {order} LIMIT ?"
        return [id for (id,) in self._connection.execute(sql, (expression, *values, most))]

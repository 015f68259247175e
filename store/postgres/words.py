"""The words of a bank as posting rows. See `store.database.Words`, which this implements.

`words` holds the tokens of an item as one text, and `postings` one row for each item and token. The
newest items with a token are the end of a range in the key (bank, term, item), so a list that is
cut off is never read as a whole.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from store.database import EVERYTHING, Condition, Cursor


class _Executes(Protocol):
    def execute(self, sql: str, parameters: Sequence[Any] = ..., /) -> Cursor: ...


class PostgresWords:
    """The tables `words` and `postings` of one connection."""

    __slots__ = ("_connection",)

    def __init__(self, connection: _Executes) -> None:
        self._connection = connection

    def add(self, item: int, tokens: str) -> None:
        self._connection.execute("INSERT INTO words (item, tokens) VALUES (?, ?)", (item, tokens))
        terms = sorted(set(tokens.split()))  # in order, so that two writers never wait in a circle
        if terms:
            self._connection.execute(
                "INSERT INTO postings (term, item)"
                " SELECT term, ? FROM unnest(?::text[]) AS new (term)",
                (item, terms),
            )

    def replace(self, item: int, tokens: str) -> None:
        self.remove(item)
        self.add(item, tokens)

    def remove(self, item: int) -> None:
        for _, tokens in self.tokens((item,)):
            self._connection.execute(
                "DELETE FROM postings WHERE item = ? AND term = ANY (?::text[])",
                (item, sorted(set(tokens.split()))),
            )
        self._connection.execute("DELETE FROM words WHERE item = ?", (item,))

    def tokens(self, items: Sequence[int]) -> list[tuple[int, str]]:
        if not items:
            return []
        return self._connection.execute(
            "SELECT item, tokens FROM words WHERE item = ANY (?::bigint[])", (list(items),)
        ).fetchall()

    def postings(
        self, terms: Sequence[str], most: int, among: Condition = EVERYTHING
    ) -> dict[str, list[int]]:
        if not terms:
            return {}
        join, condition, values = _limited("found", among)
        rows = self._connection.execute(
            f"SELECT asked.term, ARRAY (SELECT found.item FROM postings AS found{join}"
            f" WHERE found.term = asked.term{condition} ORDER BY found.item DESC LIMIT ?)"
            " FROM unnest(?::text[]) AS asked (term)",
            (*values, most, list(terms)),
        )
        found = dict(rows.fetchall())
        return {term: found[term] for term in terms}

    def with_all(
        self,
        terms: Sequence[str],
        most: int,
        among: Condition = EVERYTHING,
        *,
        oldest_first: bool = False,
    ) -> list[int]:
        if not terms:
            return []
        join, condition, values = _limited("first", among)
        others = "".join(
            " AND EXISTS (SELECT 1 FROM postings AS other"
            " WHERE other.term = ? AND other.item = first.item)"
            for _ in terms[1:]
        )
        rows = self._connection.execute(
            f"SELECT first.item FROM postings AS first{join} WHERE first.term = ?"
            f"{others}{condition} ORDER BY first.item {'ASC' if oldest_first else 'DESC'} LIMIT ?",
            (*terms, *values, most),
        )
        return [item for (item,) in rows]


def _limited(name: str, among: Condition) -> tuple[str, str, Sequence[Any]]:
    """The join, the condition and the parameters that limit postings to some items."""
    condition, values = among
    if not condition:
        return "", "", ()
    return f" JOIN items ON items.id = {name}.item", f" AND {condition}", values

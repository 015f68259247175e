"""How alike two short texts are, by their words: for recognising what was said before.

No model is asked: the answer must be the same on every machine and for ever, because it decides
what takes the place of what.
"""

from typing import Final

from store.database import Connection
from store.items import LIVE, SELECT, item_of
from store.lexical import index_text, match_expression
from store.model import Item, Kind

CANDIDATES: Final = 50


def words_of(text: str) -> frozenset[str]:
    return frozenset(index_text(text).split())


def likeness(one: frozenset[str], other: frozenset[str]) -> float:
    """The share of words that both have (Jaccard), from 0 to 1."""
    if not one or not other:
        return 0.0
    return len(one & other) / len(one | other)


def same_words(one: str, other: str) -> bool:
    return index_text(one) == index_text(other)


def candidates(
    connection: Connection, kind: Kind, text: str, *, category: str | None = None
) -> list[Item]:
    """Items of a kind that share the most telling words with a text, best first.

    Looked for among all of them, not among the newest: an old duplicate is a duplicate.
    """
    expression = match_expression(text)
    if expression is None:
        return []
    rows = connection.execute(
        f"{SELECT} JOIN words ON words.rowid = items.id"
        f" WHERE words MATCH ? AND items.kind = ? AND {LIVE} AND items.superseded_by IS NULL"
        " AND (? IS NULL OR items.category = ?) ORDER BY bm25(words), items.id LIMIT ?",
        (expression, kind, category, category, CANDIDATES),
    )
    return [item_of(row) for row in rows]

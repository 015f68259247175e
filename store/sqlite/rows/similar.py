"""Looking up stored items that resemble or contain a text."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from store.errors import NotFound
from store.model import Item, Kind
from store.ranking.tokenizer import index_text, query_terms, quoted
from store.sqlite.connection import Connection
from store.sqlite.rows.items import LIVE, SELECT, find, item_of

CANDIDATES: Final = 50
TERMS: Final = 24
QUOTATION_TERMS: Final = 64


def candidates(
    connection: Connection, kind: Kind, text: str, *, category: str | None = None
) -> list[Item]:
    """The items of a kind that share the most significant words with a text, best first.

    All items are searched, not only the newest ones, because an old duplicate is a duplicate too.
    """
    # Stop words say nothing about equality and are the most expensive words to look up.
    terms = [term for term in query_terms(text) if term.weight == 1.0][:TERMS]
    if not terms:
        return []
    expression = " OR ".join(quoted(term.text) for term in terms)
    rows = connection.execute(
        f"{SELECT} JOIN words ON words.rowid = items.id"
        f" WHERE words MATCH ? AND items.kind = ? AND {LIVE} AND items.superseded_by IS NULL"
        " AND (? IS NULL OR items.category = ?) ORDER BY bm25(words), items.id LIMIT ?",
        (expression, kind, category, category, CANDIDATES),
    )
    return [item_of(row) for row in rows]


def find_quoted(
    connection: Connection, kinds: Sequence[Kind], snippet: str, *, first: str | None = None
) -> str | None:
    """The id of an item that contains the snippet literally, apart from case and white space.

    The item with the id `first` is preferred, if it contains the snippet.
    """
    wanted = " ".join(snippet.casefold().split())
    if first is not None:
        with suppress(NotFound):
            named = find(connection, first)
            if named.kind in kinds and wanted in " ".join(named.text.casefold().split()):
                return named.id
    words = list(dict.fromkeys(index_text(snippet).split()))
    # The first and last word of a snippet may be cut off in the middle.
    inner = words[1:-1] if len(words) > 3 else words
    if not inner:
        return None
    expression = " AND ".join(quoted(word) for word in inner[:QUOTATION_TERMS])
    marks = ",".join("?" * len(kinds))
    rows = connection.execute(
        f"{SELECT} JOIN words ON words.rowid = items.id"
        f" WHERE words MATCH ? AND items.kind IN ({marks}) AND {LIVE} ORDER BY items.id LIMIT ?",
        (expression, *kinds, CANDIDATES),
    )
    for row in rows:
        item = item_of(row)
        if wanted in " ".join(item.text.casefold().split()):
            return item.id
    return None

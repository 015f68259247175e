"""Looking up stored items that resemble or contain a text."""

from collections.abc import Sequence
from contextlib import suppress
from heapq import nlargest
from typing import Any, Final

from store.database import Condition, Connection
from store.errors import NotFound
from store.model import Item, Kind
from store.ranking.bm25 import CorpusStatistics, bm25, inverse_frequency
from store.ranking.tokenizer import index_text, query_terms
from store.rows.items import LIVE, fetch, find, item_of

CANDIDATES: Final = 50
SCORED: Final = 200  # items whose tokens are read and scored
POSTINGS: Final = 10_000  # items of one kind that share a word
TERMS: Final = 24
QUOTATION_TERMS: Final = 64


def candidates(
    connection: Connection, kind: Kind, text: str, *, category: str | None = None
) -> list[Item]:
    """The items of a kind that share the most significant words with a text, best first.

    All items of the kind are searched, not only the newest ones, because an old duplicate is a
    duplicate too (up to `POSTINGS` for a single word).
    """
    # Stop words say nothing about equality and are the most expensive words to look up.
    terms = [term for term in query_terms(text) if term.weight == 1.0][:TERMS]
    if not terms:
        return []
    condition = f"items.kind = ? AND {LIVE} AND items.superseded_by IS NULL"
    values: list[Any] = [kind]
    if category is not None:
        condition += " AND items.category = ?"
        values.append(category)
    postings = connection.words.postings(
        [term.text for term in terms], POSTINGS, (condition, values)
    )
    items, words = connection.execute("SELECT items, words FROM state").fetchone()
    statistics = CorpusStatistics(
        items=items,
        average_length=words / max(1, items),
        frequencies={term: len(found) for term, found in postings.items()},
    )
    gains: dict[int, float] = {}
    for found in postings.values():
        gain = inverse_frequency(len(found), items)
        for id in found:
            gains[id] = gains.get(id, 0.0) + gain
    likely = nlargest(SCORED, gains, key=lambda id: (gains[id], -id))
    tokens = connection.words.tokens(likely)
    scores = dict(
        zip(
            (id for id, _ in tokens),
            bm25(terms, [each for _, each in tokens], statistics),
            strict=True,
        )
    )
    best = sorted(scores, key=lambda id: (-scores[id], id))[:CANDIDATES]
    rows = {row[0]: row for row in fetch(connection, best)}
    return [item_of(rows[id]) for id in best if id in rows]


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
    among: Condition = (f"items.kind IN ({','.join('?' * len(kinds))}) AND {LIVE}", kinds)
    ids = connection.words.with_all(inner[:QUOTATION_TERMS], CANDIDATES, among, oldest_first=True)
    for row in sorted(fetch(connection, ids), key=lambda row: row[0]):
        item = item_of(row)
        if wanted in " ".join(item.text.casefold().split()):
            return item.id
    return None

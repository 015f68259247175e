"""How alike two short texts are, by their words: for recognising what was said before.

No model is asked: the answer must be the same on every machine and for ever, because it decides
what takes the place of what.
"""

from collections.abc import Sequence
from typing import Final

from store.model import Item, Kind
from store.ranking.tokenizer import index_text, query_terms, quoted
from store.sqlite.database import Connection
from store.sqlite.rows.items import LIVE, SELECT, item_of

CANDIDATES: Final = 50
TERMS: Final = 24
WITNESS_TERMS: Final = 64

# Words that may come and go without changing what is said. "Not", numbers and names may not.
_GLUE: Final = frozenset(
    index_text(
        "a an the is are was were be been am this that these those it its we our i my you your"
        " he his she her they their and of to for with has have had do does did so very just also"
    ).split()
)


def words_of(text: str) -> frozenset[str]:
    return frozenset(index_text(text).split())


def likeness(one: frozenset[str], other: frozenset[str]) -> float:
    """The share of words that both have (Jaccard), from 0 to 1."""
    if not one or not other:
        return 0.0
    return len(one & other) / len(one | other)


def same_words(one: str, other: str) -> bool:
    return index_text(one) == index_text(other)


def same_substance(one: str, other: str) -> bool:
    """Whether two texts say the same words in the same order, articles and the like aside.

    Likeness is no measure for this: "the limit is 30" and "the limit is 60" are very alike.
    """
    return _substance(one) == _substance(other)


def _substance(text: str) -> list[str]:
    words = index_text(text).split()
    return [word for word in words if word not in _GLUE] or words


def candidates(
    connection: Connection, kind: Kind, text: str, *, category: str | None = None
) -> list[Item]:
    """Items of a kind that share the most telling words with a text, best first.

    Looked for among all of them, not among the newest: an old duplicate is a duplicate.
    """
    # Words that are everywhere tell nothing about sameness and cost the most to look up.
    terms = query_terms(text)
    telling = [term for term in terms if term.weight == 1.0][:TERMS]
    if not telling:
        return []
    expression = " OR ".join(quoted(term.text) for term in telling)
    rows = connection.execute(
        f"{SELECT} JOIN words ON words.rowid = items.id"
        f" WHERE words MATCH ? AND items.kind = ? AND {LIVE} AND items.superseded_by IS NULL"
        " AND (? IS NULL OR items.category = ?) ORDER BY bm25(words), items.id LIMIT ?",
        (expression, kind, category, category, CANDIDATES),
    )
    return [item_of(row) for row in rows]


def saying(connection: Connection, kinds: Sequence[Kind], snippet: str) -> str | None:
    """The id of an item of these kinds that says a snippet word for word, blanks and case aside."""
    wanted = " ".join(snippet.casefold().split())
    words = list(dict.fromkeys(index_text(snippet).split()))
    # A snippet may be cut in the middle of its first and last word.
    inner = words[1:-1] if len(words) > 3 else words
    if not inner:
        return None
    expression = " AND ".join(quoted(word) for word in inner[:WITNESS_TERMS])
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

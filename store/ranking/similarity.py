"""Similarity of short texts by their words, for recognising repetitions.

No embedding model is used: the result decides which card replaces another one, so it must be the
same on every machine and in every version.
"""

from typing import Final

from store.ranking.tokenizer import index_text

# Words that may be added or removed without changing the statement. "Not", numbers and names are
# not among them.
FILLERS: Final = frozenset(
    index_text(
        "a an the is are was were be been am this that these those it its we our i my you your"
        " he his she her they their and of to for with has have had do does did so very just also"
    ).split()
)


def words_of(text: str) -> frozenset[str]:
    return frozenset(index_text(text).split())


def similarity(one: frozenset[str], other: frozenset[str]) -> float:
    """The share of common words (Jaccard index), from 0 to 1."""
    if not one or not other:
        return 0.0
    return len(one & other) / len(one | other)


def same_words(one: str, other: str) -> bool:
    return index_text(one) == index_text(other)


def same_statement(one: str, other: str) -> bool:
    """Whether two texts have the same words in the same order, apart from articles and the like.

    `similarity` cannot decide this: "the limit is 30" and "the limit is 60" are very similar.
    """
    return statement(one) == statement(other)


def statement(text: str) -> tuple[str, ...]:
    """The words of a text in order, without articles and the like."""
    words = index_text(text).split()
    return tuple(word for word in words if word not in FILLERS) or tuple(words)

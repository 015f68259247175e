"""BM25 over stored tokens.

FTS5 has a `bm25()` function of its own, but it visits every posting of every term and was the
slowest part of a query. These functions score only the candidates.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from store.ranking.tokenizer import Term

K1: Final = 0.9
B: Final = 0.4


class CorpusStatistics(Struct, frozen=True, kw_only=True):
    """The number of items in a bank, their average length, and the frequency of each term."""

    items: int
    average_length: float
    frequencies: Mapping[str, int]


def inverse_frequency(frequency: int, items: int) -> float:
    """The inverse document frequency of a term, in the usual BM25 form that is always positive."""
    return math.log1p((max(items, frequency) - frequency + 0.5) / (frequency + 0.5))


def bm25(
    terms: Sequence[Term], documents: Iterable[str], statistics: CorpusStatistics
) -> list[float]:
    """The BM25 score of each document, given as its `index_text`."""
    return [score for score, _ in bm25_with_terms(terms, documents, statistics)]


def bm25_with_terms(
    terms: Sequence[Term], documents: Iterable[str], statistics: CorpusStatistics
) -> list[tuple[float, int]]:
    """The BM25 score of each document, and a bit for each significant term that it contains.

    A significant term has the weight 1. A token that follows itself directly counts once, so that
    one substring count suffices.
    """
    weighed: list[tuple[str, float, int]] = []
    bit = 1
    for term in terms:
        frequency = statistics.frequencies.get(term.text, 0)
        gain = term.weight * inverse_frequency(frequency, statistics.items) * (K1 + 1.0)
        is_significant = term.weight == 1.0
        weighed.append((f" {term.text} ", gain, bit if is_significant else 0))
        bit <<= is_significant
    average = max(statistics.average_length, 1.0)
    scores: list[tuple[float, int]] = []
    for document in documents:
        padded = f" {document} "
        base = K1 * (1.0 - B + B * (padded.count(" ") - 1) / average)
        score = 0.0
        found = 0
        for needle, gain, mark in weighed:
            if needle in padded:
                found |= mark
                times = padded.count(needle)
                score += gain * times / (times + base)
        scores.append((score, found))
    return scores


def best_possible(terms: Sequence[Term], statistics: CorpusStatistics) -> float:
    """The score of a document of average length that contains every term once."""
    return sum(
        term.weight * inverse_frequency(statistics.frequencies.get(term.text, 0), statistics.items)
        for term in terms
    )

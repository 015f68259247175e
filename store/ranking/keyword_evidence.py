"""How well the words of an item match a query: BM25, phrases, and which terms and pairs occur."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from store.ranking.bm25 import CorpusStatistics, bm25_with_terms
from store.ranking.tokenizer import Term, index_text, tokens


class KeywordEvidence(NamedTuple):
    """The evidence of an item's words. `Candidate` describes the fields."""

    words: float
    is_phrase: bool
    is_exact: bool
    terms: int
    pairs: float


NO_MATCH: Final = KeywordEvidence(0.0, False, False, 0, 0.0)


class QueryWords:
    """The words of a query, prepared for comparison with many items."""

    def __init__(self, asked: str, terms: Sequence[Term], *, for_turns: bool) -> None:
        self.terms = terms
        self.significant = [term.text for term in terms if term.weight == 1.0]
        self._phrase = index_text(asked)
        self._length = self._phrase.count(" ") + 1
        # Only the ranking of turns uses terms and pairs.
        self._for_turns = for_turns
        self._pairs: list[str] = []
        if for_turns:
            stops = {term.text for term in terms if term.weight < 1.0}
            self._pairs = [
                f" {one} {two} "
                for one, two in pairwise(tokens(asked, for_query=True))
                if one not in stops or two not in stops
            ]

    def weigh(self, indexed: Sequence[str], statistics: CorpusStatistics) -> list[KeywordEvidence]:
        """The evidence of each item, given as its `index_text`."""
        found = bm25_with_terms(self.terms, indexed, statistics)
        return [self._one(text, *match) for text, match in zip(indexed, found, strict=True)]

    def _one(self, text: str, score: float, terms: int) -> KeywordEvidence:
        is_phrase = is_exact = False
        if self._phrase in text:
            if self._length > 1 and f" {self._phrase} " in f" {text} ":
                size = text.count(" ") + 1
                is_phrase = self._length > 2 or self._length * 3 >= size
                is_exact = self._length * 5 >= size * 4
            elif self._phrase == text:
                is_exact = is_phrase = bool(self._phrase)
        pairs = self._pairs
        terms = terms if self._for_turns else 0
        if not pairs or not terms:
            return KeywordEvidence(score, is_phrase, is_exact, terms, 0.0)
        padded = f" {text} "
        share = sum([pair in padded for pair in pairs]) / len(pairs)
        return KeywordEvidence(score, is_phrase, is_exact, terms, share)

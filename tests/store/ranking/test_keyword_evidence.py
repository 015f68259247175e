"""Phrases, terms and pairs of a query in the words of an item."""

from store.ranking.bm25 import CorpusStatistics
from store.ranking.keyword_evidence import KeywordEvidence, QueryWords
from store.ranking.tokenizer import index_text, query_terms

STATISTICS = CorpusStatistics(items=10, average_length=5.0, frequencies={})


def weigh(asked: str, text: str, *, for_turns: bool = True) -> KeywordEvidence:
    words = QueryWords(asked, query_terms(asked), for_turns=for_turns)
    return words.weigh([index_text(text)], STATISTICS)[0]


def test_each_significant_term_has_a_bit() -> None:
    assert weigh("red car", "a car").terms == 0b10
    assert weigh("red car", "a red car").terms == 0b11
    assert weigh("red car", "nothing").terms == 0


def test_pairs_of_adjacent_words_count_by_their_share() -> None:
    assert weigh("old red car", "my red car").pairs == 0.5
    assert weigh("old red car", "car, red").pairs == 0.0


def test_a_phrase_and_an_exact_text_are_recognised() -> None:
    assert weigh("old red car", "we sold the old red car to a friend of mine").is_phrase
    assert weigh("old red car", "old red car").is_exact
    assert not weigh("old red car", "red old car").is_phrase


def test_terms_and_pairs_are_not_looked_for_without_turns() -> None:
    found = weigh("red car", "a red car", for_turns=False)
    assert found.terms == 0
    assert found.words > 0.0

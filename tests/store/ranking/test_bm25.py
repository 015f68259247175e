"""BM25: rare terms, frequent matches and short texts score higher."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.ranking.bm25 import CorpusStatistics, best_possible, bm25, inverse_frequency
from store.ranking.tokenizer import index_text, query_terms


def statistics(documents: list[str]) -> CorpusStatistics:
    cut = [document.split() for document in documents]
    words = {word for document in cut for word in document}
    return CorpusStatistics(
        items=len(documents),
        average_length=sum(map(len, cut)) / max(1, len(cut)),
        frequencies={word: sum(word in document for document in cut) for word in words},
    )


def test_rarer_terms_more_often_and_shorter_texts_score_higher() -> None:
    documents = ["rare common", "common common2", "rare rare2 rare common", "rare " + "x " * 50]
    rare, common, twice, diluted = bm25(query_terms("rare"), documents, statistics(documents))
    assert common == 0.0
    assert twice > rare > diluted > 0.0


def test_a_term_found_in_every_item_still_counts_a_little() -> None:
    assert inverse_frequency(10, 10) > 0.0
    assert inverse_frequency(1, 10) > inverse_frequency(5, 10)
    assert inverse_frequency(20, 10) > 0.0, "an estimate may exceed the number of items"


def test_the_yardstick_is_every_term_once_in_a_text_of_usual_length() -> None:
    documents = ["camp fire", "camp tent", "lake boat"]
    terms = query_terms("camp fire")
    scores = bm25(terms, documents, statistics(documents))
    assert scores[0] == pytest.approx(best_possible(terms, statistics(documents)))


@given(
    st.lists(st.text(alphabet="abc ", max_size=20), max_size=5),
    st.text(alphabet="abc ", max_size=9),
)
def test_scores_are_never_negative_and_zero_without_a_common_word(
    texts: list[str], query: str
) -> None:
    documents = [index_text(text) for text in texts]
    terms = query_terms(query)
    for document, score in zip(
        documents, bm25(terms, documents, statistics(documents)), strict=True
    ):
        assert (score > 0.0) == bool({t.text for t in terms} & set(document.split()))

"""Fusion: words, meaning and context make one order and an absolute score."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.model import MODES, Mode
from store.ranking.candidates import Candidate
from store.ranking.fusion import EXACT_SCORE, PHRASE_SCORE, Weights, rank


def ids(candidates: list[Candidate], **how: Any) -> list[int]:
    return [entry.id for entry in rank(candidates, **({"yardstick": 10.0} | how))]


def test_words_and_meaning_together_beat_either_alone() -> None:
    both = Candidate(id=1, words=9.0, cosine=0.6)
    words = Candidate(id=2, words=10.0, cosine=0.05)
    meaning = Candidate(id=3, words=0.0, cosine=0.65)
    assert ids([words, meaning, both])[0] == 1


def test_weights_decide_which_side_counts() -> None:
    words = Candidate(id=1, words=10.0, cosine=0.1)
    meaning = Candidate(id=2, words=1.0, cosine=0.8)
    assert ids([words, meaning], weights=Weights(keyword=1.0, vector=0.0)) == [1, 2]
    assert ids([words, meaning], weights=Weights(keyword=0.0, vector=1.0)) == [2, 1]
    assert ids([words, meaning], weights=Weights(keyword=0.0, vector=0.0)) == [1, 2]


def test_a_poor_best_match_by_words_does_not_outrank_a_good_one_by_meaning() -> None:
    words = Candidate(id=1, words=0.5, cosine=0.1)  # covers a twentieth of the query
    meaning = Candidate(id=2, words=0.0, cosine=0.6)
    assert ids([words, meaning]) == [2, 1]


def test_an_item_gains_from_its_neighbours() -> None:
    question = Candidate(id=10, words=10.0, cosine=0.7, group="s", after=11, may_answer=False)
    reply = Candidate(id=11, cosine=0.2, group="s", before=10)
    stranger = Candidate(id=12, cosine=0.25)
    noise = [Candidate(id=n, cosine=0.1) for n in range(20, 26)]
    assert ids([question, reply, stranger, *noise])[0] == 11
    early = Candidate(id=9, cosine=0.2, group="s", after=10)
    late = Candidate(id=13, cosine=0.2, group="s", two_before=10)
    order = ids([question, reply, early, late, stranger, *noise])
    assert order[:4] == [11, 9, 13, 12], "before counts more than after, after more than two before"


def test_a_context_item_is_never_a_result() -> None:
    aside = Candidate(id=1, words=10.0, cosine=0.9, may_answer=False)
    for mode in MODES:
        assert ids([aside], mode=mode) == []


def test_an_item_without_neighbours_loses_nothing() -> None:
    alone = Candidate(id=1, words=8.0, cosine=0.6)
    beside = Candidate(id=2, words=7.9, cosine=0.6, group="s", before=3)
    dull = [Candidate(id=n, cosine=0.1, group="s") for n in range(3, 9)]
    assert ids([alone, beside, *dull])[0] == 1


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (
            Candidate(id=1, words=5.0, cosine=0.5, is_phrase=True),
            Candidate(id=2, words=5.0, cosine=0.5),
        ),
        (
            Candidate(id=1, words=5.0, cosine=0.5),
            Candidate(id=2, words=5.0, cosine=0.5, is_asking=True),
        ),
        (Candidate(id=1, words=5.0, age_days=1.0), Candidate(id=2, words=5.0, age_days=400.0)),
        (Candidate(id=2, words=5.0), Candidate(id=1, words=5.0)),
    ],
    ids=["the phrase", "a statement", "the recent", "the newer of equals"],
)
def test_boosts_decide_between_equal_items(better: Candidate, worse: Candidate) -> None:
    assert ids([worse, better]) == [better.id, worse.id]


def test_a_time_in_the_future_is_no_advantage_over_now() -> None:
    future = rank([Candidate(id=1, words=5.0, age_days=-500.0)], yardstick=10.0)[0]
    now = rank([Candidate(id=1, words=5.0, age_days=0.0)], yardstick=10.0)[0]
    assert future.value == now.value


def test_modes_order_by_their_own_evidence_only() -> None:
    words = Candidate(id=1, words=9.0, cosine=0.1)
    meaning = Candidate(id=2, words=1.0, cosine=0.9)
    neither = Candidate(id=3)
    assert ids([words, meaning, neither], mode="keyword") == [1, 2]
    assert ids([words, meaning, neither], mode="semantic") == [2, 1]


def test_exact_and_phrase_hits_score_at_least_nine_tenths() -> None:
    for mode in ("keyword", "hybrid"):
        exact = Candidate(id=1, words=1.0, is_phrase=True, is_exact=True)
        phrase = Candidate(id=2, words=0.9, is_phrase=True)
        first, second = rank([exact, phrase], yardstick=10.0, mode=mode)
        assert first.score >= EXACT_SCORE
        assert second.score >= PHRASE_SCORE


def test_the_best_of_only_weak_results_scores_under_three_tenths() -> None:
    for size in (1, 3, 30):
        strangers = [Candidate(id=n, cosine=0.33 - n / 200) for n in range(1, size + 1)]
        assert rank(strangers, yardstick=10.0)[0].score < 0.3


def test_a_clear_answer_scores_seven_tenths() -> None:
    clear = Candidate(id=1, words=9.0, cosine=0.65)
    others = [Candidate(id=n, words=2.0, cosine=0.2) for n in range(2, 12)]
    assert rank([clear, *others], yardstick=10.0)[0].score >= 0.7


def test_explain_returns_the_parts_and_they_sum_to_the_value() -> None:
    (entry,) = rank([Candidate(id=1, words=5.0, cosine=0.5, is_phrase=True)], yardstick=10.0)
    parts = entry.parts
    assert parts["keyword"] + parts["vector"] + parts["context"] + parts["boosts"] == pytest.approx(
        parts["value"], abs=1e-3
    )
    assert parts["bm25"] == 5.0 and parts["cosine"] == 0.5 and parts["cover"] == 0.5


def test_no_candidates_give_no_results() -> None:
    for mode in MODES:
        assert rank([], yardstick=0.0, mode=mode) == []


numbers = st.floats(min_value=0.0, max_value=50.0)
candidates = st.lists(
    st.builds(
        Candidate,
        id=st.integers(min_value=1, max_value=40),
        words=numbers,
        cosine=st.none() | st.floats(min_value=-1.0, max_value=1.0),
        group=st.sampled_from([None, "a", "b"]),
        before=st.none() | st.integers(min_value=1, max_value=40),
        after=st.none() | st.integers(min_value=1, max_value=40),
        two_before=st.none() | st.integers(min_value=1, max_value=40),
        may_answer=st.booleans(),
        is_phrase=st.booleans(),
        is_exact=st.booleans(),
        is_asking=st.booleans(),
        age_days=st.none() | st.floats(min_value=-10.0, max_value=1e6),
    ),
    max_size=20,
    unique_by=lambda candidate: candidate.id,
)


@given(candidates, numbers, st.sampled_from(MODES), st.randoms())
def test_the_order_is_total_and_the_score_is_a_share_that_never_rises(
    some: list[Candidate], yardstick: float, mode: Mode, random: Any
) -> None:
    ranked = rank(some, yardstick=yardstick, mode=mode, limit=5)
    assert len(ranked) <= 5
    assert all(0.0 <= entry.score <= 1.0 for entry in ranked)
    assert [entry.score for entry in ranked] == sorted(
        (entry.score for entry in ranked), reverse=True
    )
    shuffled = list(some)
    random.shuffle(shuffled)
    again = rank(shuffled, yardstick=yardstick, mode=mode, limit=5)
    assert [(e.id, e.score) for e in again] == [(e.id, e.score) for e in ranked]


def test_some_common_words_without_a_common_meaning_score_low() -> None:
    unrelated = Candidate(id=1, words=1.2, cosine=0.1)
    named = Candidate(id=2, words=4.0, cosine=0.1)
    assert rank([unrelated], yardstick=4.0)[0].score <= 0.15
    assert rank([named], yardstick=4.0)[0].score > 0.5

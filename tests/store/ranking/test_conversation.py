"""The ranking of turns: which evidence moves a turn up or down."""

from msgspec.structs import replace

from store.ranking.candidates import Candidate, Question, TurnEvidence
from store.ranking.conversation import TurnRanking
from store.ranking.turns import HAS_TIME


def turn(id: int, **fields: object) -> Candidate:
    evidence = TurnEvidence(closest=(0.3, 0.3))
    return replace(Candidate(id=id, cosine=0.2, turn=evidence), **fields)


def value_of(candidates: list[Candidate], id: int, **question: object) -> float:
    asked = replace(Question(gains=(2.0, 1.0)), **question)
    return TurnRanking(candidates, asked).value(id)


def test_a_turn_gains_from_the_words_of_the_turn_before_it() -> None:
    alone = [turn(1), turn(2), turn(3, terms=0b11, words=4.0)]
    linked = [turn(1), turn(2, before=3), turn(3, terms=0b11, words=4.0)]
    assert value_of(linked, 2) > value_of(alone, 2)


def test_an_answer_gains_more_if_the_turn_before_it_is_a_question() -> None:
    told = [turn(1), turn(2, before=3), turn(3, words=4.0)]
    asked = [turn(1), turn(2, before=3), turn(3, words=4.0, is_asking=True)]
    assert value_of(asked, 2) > value_of(told, 2)


def test_the_closest_tokens_of_a_neighbour_count_at_a_discount() -> None:
    strong = TurnEvidence(closest=(0.9, 0.9))
    apart = [turn(1), turn(2), turn(3, turn=strong)]
    near = [turn(1), turn(2, before=3), turn(3, turn=strong)]
    assert value_of(apart, 2) < value_of(near, 2) < value_of(near, 3)


def test_a_turn_with_a_time_gains_if_the_question_asks_for_one() -> None:
    dated = TurnEvidence(closest=(0.3, 0.3), traits=HAS_TIME)
    candidates = [turn(1), turn(2, turn=dated)]
    assert value_of(candidates, 2, traits=HAS_TIME) > value_of(candidates, 1, traits=HAS_TIME)
    assert value_of(candidates, 2) == value_of(candidates, 1)


def test_the_named_speaker_comes_first() -> None:
    speaker = TurnEvidence(closest=(0.3, 0.3), is_speaker=True)
    candidates = [turn(1), turn(2, turn=speaker)]
    assert value_of(candidates, 2) > value_of(candidates, 1)


def test_a_turn_without_tokens_is_estimated_from_its_cosine() -> None:
    candidates = [turn(1, turn=TurnEvidence(), cosine=0.8), turn(2, turn=TurnEvidence())]
    assert value_of(candidates, 1) > value_of(candidates, 2)


def test_candidates_that_are_no_turns_are_left_to_the_other_formula() -> None:
    ranking = TurnRanking([turn(1), Candidate(id=2, cosine=0.9)], Question())
    assert 1 in ranking
    assert 2 not in ranking


def test_a_turn_without_words_or_closeness_has_no_score() -> None:
    only = TurnRanking([turn(1, cosine=0.1)], Question(gains=(1.0,)))
    assert only.score(1) == 0.0


def test_equal_turns_share_the_score() -> None:
    two = TurnRanking([turn(1, cosine=0.6), turn(2, cosine=0.6)], Question())
    assert two.score(1) == two.score(2)
    assert two.score(1) <= 0.5


def test_more_terms_than_an_integer_has_bits_are_cut_off() -> None:
    many = Question(gains=(1.0,) * 64)
    ranking = TurnRanking([turn(1, terms=(1 << 64) - 1), turn(2)], many)
    assert ranking.features(1)["cover"] == 1.0
    assert ranking.features(2)["cover"] == 0.0

"""Labels of turns, and questions without the names of speakers."""

import pytest

from store.ranking.turns import (
    HAS_NUMBER,
    HAS_TIME,
    Turn,
    asked_traits,
    names_of,
    traits_of,
    turn_of,
    without_names,
)


@pytest.mark.parametrize(
    ("text", "in_session", "turn"),
    [
        ("[1:56 pm on 8 May, 2023] Caroline: Hey Mel!", False, Turn("caroline", "Hey Mel!")),
        ("Caroline: Hey Mel!", True, Turn("caroline", "Hey Mel!")),
        ("Ana Maria: we moved", True, Turn("ana maria", "we moved")),
        ("user: what is new?", True, Turn("user", "what is new?")),
        ("Caroline: Hey Mel!", False, Turn("", "Caroline: Hey Mel!")),
        ("TODO: write tests", True, Turn("", "TODO: write tests")),
        ("Root Cause: a leak", True, Turn("", "Root Cause: a leak")),
        ("the port is: 80", True, Turn("", "the port is: 80")),
        ("see https://example.org", True, Turn("", "see https://example.org")),
        ("[draft] no label here", True, Turn("", "[draft] no label here")),
        ("Ana: ", True, Turn("", "Ana: ")),
    ],
)
def test_a_label_is_separated_only_if_it_names_a_speaker(
    text: str, in_session: bool, turn: Turn
) -> None:
    assert turn_of(text, in_session=in_session) == turn


def test_names_are_left_out_of_a_question_with_their_possessive() -> None:
    names = names_of(["caroline", "ana maria"])
    assert without_names("What is Caroline's job?", names) == "What is job?"
    assert without_names("Did Ana Maria’s dog bark?", names) == "Did dog bark?"


def test_a_question_of_names_and_stop_words_stays_whole() -> None:
    assert without_names("Who is Caroline?", names_of(["caroline"])) == "Who is Caroline?"


def test_roles_are_no_names() -> None:
    assert names_of(["user", "assistant"]) == frozenset()


def test_traits_tell_times_and_numbers() -> None:
    assert traits_of("we met last week") == HAS_TIME
    assert traits_of("I have three dogs") == HAS_NUMBER
    assert traits_of("hello there") == 0
    assert asked_traits("When did they meet?") == HAS_TIME
    assert asked_traits("How many dogs are there?") == HAS_NUMBER
    assert asked_traits("Where is the dog?") == 0

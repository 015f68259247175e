"""Keywords of a question."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from daemon.dialects.awareness.language import keywords


def test_the_documented_example_question_gives_exact_keywords() -> None:
    question = (
        'authentication bug in "login flow", JWT token handling in auth.py,'
        " session_cookies, getUser() and OAuth2 since v1.2.3 #auth"
    )
    assert keywords.keywords_of(question) == "login flow auth.py JWT getUser session_cookies"
    found = keywords.keywords_of(question, keywords.TEXT_LIMIT)
    for term in ("login flow", "auth.py", "JWT", "session_cookies", "getUser", "OAuth2", "v1.2.3"):
        assert term in found


@pytest.mark.parametrize(
    ("question", "terms"),
    [
        ("What does the spec say about token expiry?", "expiry token spec"),
        ("When did Caroline go to the LGBTQ support group?", "LGBTQ Caroline support group"),
        ("Tell me how we should be doing our deployments", "deployments"),
        ("Why did we move from Redis to Postgres for sessions?", "Postgres Redis sessions move"),
        ("what was that about", "about what that was"),
    ],
)
def test_keywords_omit_stop_words(question: str, terms: str) -> None:
    assert keywords.keywords_of(question) == terms


def test_a_long_question_has_five_keywords() -> None:
    question = "which migrations of the billing database locked customers out during deployments"
    assert len(keywords.keywords_of(question).split()) == 5


def test_short_proper_names_are_keywords() -> None:
    assert keywords.keywords_of("who is the employer of Ana").split()[0] == "Ana"


@given(st.text(max_size=400))
@example("/0")  # a path that contains a number
def test_keywords_of_any_question_are_non_empty_and_occur_in_it(question: str) -> None:
    found = keywords.keywords_of(question)
    assert found or not question
    assert all(word in question for word in found.split()), "every keyword occurs in the question"

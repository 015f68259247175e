"""Estimate of the tokens of a text."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.tools.token_estimate import end_within, estimate

SAMPLES: list[tuple[str, int]] = [
    # The counts of Claude 2's published vocabulary.
    ("User works at Google as a software engineer", 8),
    (json.dumps({"id": "550e8400-e29b-41d4-a716-446655440000", "type": "world"}), 32),
    ("Der Benutzer bevorzugt Python gegenüber JavaScript", 13),
    ("用户更喜欢使用Python进行后端开发,而不是JavaScript。", 18),
]


@pytest.mark.parametrize(("text", "tokens"), SAMPLES)
def test_an_estimate_is_close_to_a_published_vocabulary(text: str, tokens: Any) -> None:
    assert 0.8 * tokens <= estimate(text) <= 2.2 * tokens


@given(st.text())
def test_an_estimate_is_positive_and_grows_with_the_text(text: str) -> None:
    assert (estimate(text) > 0) == bool(text)
    assert estimate(text + " word") >= estimate(text)


@given(st.text(max_size=60).map(lambda text: text * 500), st.integers(1, 5_000))
def test_a_count_with_a_budget_stops_only_above_the_budget(text: str, budget: int) -> None:
    whole = estimate(text)
    assert (estimate(text, budget) > budget) == (whole > budget)
    assert estimate(text, whole) == whole


@given(st.text(max_size=60).map(lambda text: text * 500), st.integers(1, 5_000))
def test_the_longest_part_within_a_budget_fits_it(text: str, budget: int) -> None:
    end = end_within(text, 0, budget)
    assert estimate(text[:end]) <= budget
    assert end == len(text) or estimate(text[: end + 1]) >= budget

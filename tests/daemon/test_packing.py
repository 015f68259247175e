"""Packing facts into a token budget, and counting tokens."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.dialects.hindsight import Fact, pack
from daemon.tools.token_estimate import estimate
from store.model import Hit, Item


def hit(text: str, number: int = 0, snippet: str = "") -> Hit:
    item = Item(
        rowid=number + 1,
        id=f"fact-{number}",
        kind="memory",
        text=text,
        context="tests",
        occurred_at=0,
        created_at=0,
        updated_at=0,
    )
    return Hit(item=item, score=0.5, snippet=snippet)


def cost(fact: Fact) -> int:
    return estimate(msgspec.json.encode(fact).decode())


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=300).filter(
    lambda text: bool(text.strip())
)


@given(st.lists(texts, min_size=1, max_size=12), st.integers(1, 2000))
def test_packing_is_greedy_within_the_budget_and_never_empty(
    contents: list[str], budget: int
) -> None:
    hits = [hit(text, number) for number, text in enumerate(contents)]

    packed = pack(hits, budget)

    assert packed
    order = [fact.id for fact in packed]
    assert order == sorted(order, key=lambda id: int(id.removeprefix("fact-")))
    whole = {f"fact-{number}": text for number, text in enumerate(contents)}
    if any(cost(pack([each], 10**6)[0]) <= budget for each in hits):
        assert sum(cost(fact) for fact in packed) <= budget
        assert all(fact.text == whole[fact.id] for fact in packed)
        left = budget
        for each in hits:  # a skipped fact did not fit at its position
            price = cost(pack([each], 10**6)[0])
            if each.item.id in order:
                left -= price
            else:
                assert price > left
    else:
        (only,) = packed
        assert only.id == "fact-0"
        assert only.text.strip("…")


@given(texts, st.integers(1, 400))
def test_a_shortened_fact_is_a_passage_of_it(text: str, budget: int) -> None:
    (fact,) = pack([hit(text)], budget)

    if fact.text != text:
        assert fact.text.removeprefix("…").removesuffix("…") in text


def test_a_megabyte_is_shortened_quickly_around_the_match() -> None:
    telling = "the treasure is under the oak"
    text = "filler words everywhere. " * 20_000 + telling + " and more filler" * 20_000
    (fact,) = pack([hit(text, snippet=telling)], 120)

    assert telling in fact.text
    assert fact.text.startswith("…") and fact.text.endswith("…")


def test_an_empty_list_packs_to_nothing() -> None:
    assert pack([], 4096) == []


SAMPLES: list[tuple[str, int]] = [
    # Token counts with the published vocabulary of Claude 2.
    ("User works at Google as a software engineer", 8),
    (json.dumps({"id": "550e8400-e29b-41d4-a716-446655440000", "type": "world"}), 32),
    ("Der Benutzer bevorzugt Python gegenüber JavaScript", 13),
    ("用户更喜欢使用Python进行后端开发,而不是JavaScript。", 18),
]


@pytest.mark.parametrize(("text", "tokens"), SAMPLES)
def test_an_estimate_is_never_much_too_low(text: str, tokens: Any) -> None:
    assert 0.8 * tokens <= estimate(text) <= 2.2 * tokens


@given(st.text())
def test_an_estimate_is_positive_and_grows_with_the_text(text: str) -> None:
    assert (estimate(text) > 0) == bool(text)
    assert estimate(text + " word") >= estimate(text)

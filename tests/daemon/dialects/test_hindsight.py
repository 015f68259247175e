"""Packing of facts into a token budget."""

import msgspec
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
        for each in hits:  # a skipped fact did not fit at its turn
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
def test_a_cut_fact_is_a_passage_of_the_fact(text: str, budget: int) -> None:
    (fact,) = pack([hit(text)], budget)

    if fact.text != text:
        assert fact.text.removeprefix("…").removesuffix("…") in text


def test_a_megabyte_is_cut_around_the_matching_passage() -> None:
    telling = "the treasure is under the oak"
    text = "filler words everywhere. " * 20_000 + telling + " and more filler" * 20_000
    (fact,) = pack([hit(text, snippet=telling)], 120)

    assert telling in fact.text
    assert fact.text.startswith("…") and fact.text.endswith("…")


def test_no_hits_pack_to_no_facts() -> None:
    assert pack([], 4096) == []

"""Hindsight's promises beyond the tables: examples, isolation, budgets (seeds 000 and 001)."""

import json
import secrets
from collections.abc import Callable

import pytest

from tests.contracts.client import Client
from tests.contracts.conftest import Join
from tests.contracts.tables.hindsight import EXAMPLES, STORED, UNKNOWN_BANK


def fresh() -> str:
    return f"user_{secrets.token_hex(6)}"


@pytest.mark.parametrize(("put", "search"), EXAMPLES, ids=["000", "001", "001-put"])
def test_the_documented_example_is_answered_as_documented(
    client: Client, put: dict[str, str], search: dict[str, str]
) -> None:
    bank = fresh()
    assert client.call("hindsight_put", bank_id=bank, **put).text == STORED

    (fact,) = client.call("hindsight_search", bank_id=bank, **search).json["results"]

    assert fact.pop("id")
    assert fact == {
        "text": put["content"],
        "type": "world",
        "context": put["context"],
        "event_date": None,
        "document_id": None,
    }


def test_an_unknown_bank_is_the_documented_string_and_an_error(client: Client) -> None:
    name, told = UNKNOWN_BANK
    answer = client.call("hindsight_search", bank_id=name, query="anything")

    assert answer.text == told
    assert answer.result is not None and answer.result["isError"] is True


@pytest.fixture
def one(clients: Callable[[str, str], Client]) -> Client:
    return clients("unix", "2025-11-25")


def test_a_search_that_found_no_bank_did_not_make_one(one: Client) -> None:
    bank = fresh()
    for _ in range(2):
        assert "not found" in one.call("hindsight_search", bank_id=bank, query="x").text


def test_a_fact_is_kept_verbatim(one: Client) -> None:
    bank = fresh()
    content = "  Zoë said: “naïve”\r\n\tcafé — 東京 🧠 \u200d end  "
    one.call("hindsight_put", bank_id=bank, content=content, context="quotes")

    (fact,) = one.call("hindsight_search", bank_id=bank, query="Zoë naïve").json["results"]

    assert fact["text"] == content


def test_the_same_fact_twice_is_one_fact(one: Client) -> None:
    bank = fresh()
    for explanation in ("first", "again", ""):
        one.call(
            "hindsight_put",
            bank_id=bank,
            content="Likes tea",
            context="taste",
            explanation=explanation,
        )
    one.call("hindsight_put", bank_id=bank, content="Likes tea", context="another category")

    facts = one.call("hindsight_search", bank_id=bank, query="Likes tea").json["results"]

    assert sorted(fact["context"] for fact in facts) == ["another category", "taste"]


def test_a_put_is_found_by_the_next_search_and_survives_the_connection(join: Join) -> None:
    bank = fresh()
    first = join("bridged")
    first.call("hindsight_put", bank_id=bank, content="Allergic to peanuts", context="health")
    first.close()
    second = join()

    found = second.call("hindsight_search", bank_id=bank, query="peanuts").json["results"]

    assert [fact["text"] for fact in found] == ["Allergic to peanuts"]


def test_users_never_see_each_others_facts(one: Client) -> None:
    alice, bob = fresh(), fresh()
    one.call("hindsight_put", bank_id=alice, content="Alice's PIN is 4711", context="secrets")
    one.call("hindsight_put", bank_id=bob, content="Bob likes the number 4711", context="taste")

    seen = one.call("hindsight_search", bank_id=bob, query="4711 PIN secrets Alice").text

    assert "Alice's PIN" not in seen and "Bob likes" in seen


def test_bank_names_are_neither_trimmed_nor_folded(one: Client) -> None:
    name = fresh()
    one.call("hindsight_put", bank_id=name, content="Exactly here", context="tests")
    for other in (name.upper(), f" {name}", f"{name} ", f"{name}/", f"../{name}"):
        assert "not found" in one.call("hindsight_search", bank_id=other, query="Exactly").text


def test_a_budget_passes_over_what_does_not_fit_and_takes_what_does(one: Client) -> None:
    bank = fresh()
    long = "The blue parrot speaks. " + "It says many other things as well. " * 200
    one.call("hindsight_put", bank_id=bank, content=long, context="parrots")
    one.call("hindsight_put", bank_id=bank, content="The parrot is blue.", context="parrots")

    found = one.call(
        "hindsight_search", bank_id=bank, query="blue parrot speaks", max_tokens=200
    ).json["results"]

    assert [fact["text"] for fact in found] == ["The parrot is blue."]


def test_a_long_best_hit_is_cut_rather_than_left_out(one: Client) -> None:
    bank = fresh()
    long = "Nothing of note here. " * 300 + "The vault opens at dawn. " + "More of nothing. " * 300
    one.call("hindsight_put", bank_id=bank, content=long, context="vaults")

    for budget in (1, 60, 100, 1000):
        answer = one.call(
            "hindsight_search", bank_id=bank, query="when does the vault open", max_tokens=budget
        )
        (fact,) = answer.json["results"]
        assert fact["text"].strip("…")
        assert fact["text"].strip("…") in long
        if budget >= 100:
            assert "vault" in fact["text"]
        assert len(fact["text"]) <= max(16, budget * 16)


@pytest.mark.parametrize("budget", [200, 500, 1000, 4096])
def test_answers_stay_within_the_budget(one: Client, budget: int) -> None:
    from daemon.tools.token_estimate import estimate

    bank = fresh()
    for number in range(60):
        one.call(
            "hindsight_put",
            bank_id=bank,
            content=f"Fact {number} about sailing: " + "wind and water " * (number % 30),
            context="sailing",
        )
    found = one.call(
        "hindsight_search", bank_id=bank, query="sailing wind", max_tokens=budget
    ).json["results"]

    assert found
    cost = sum(estimate(json.dumps(fact, separators=(",", ":"))) for fact in found)
    assert cost <= budget
    smallest = min(estimate(json.dumps(fact, separators=(",", ":"))) for fact in found)
    assert len(found) == 60 or cost + smallest > budget * 0.7


def test_an_argument_nobody_documented_is_refused_by_name(one: Client) -> None:
    answer = one.call("hindsight_search", bank_id="x", query="y", max_token=5)

    assert answer.text == "Error: max_token: unknown field"

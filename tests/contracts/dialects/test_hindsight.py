"""Hindsight: the documented examples, isolation of banks, and token budgets."""

import json
import secrets
from collections.abc import Callable

import pytest

from tests.contracts.client import Client, OpenClient
from tests.contracts.tables.hindsight import EXAMPLES, STORED, UNKNOWN_BANK


def new_bank() -> str:
    return f"user_{secrets.token_hex(6)}"


@pytest.mark.parametrize(
    ("put", "search"), EXAMPLES, ids=["first-page", "second-page", "second-page-put"]
)
def test_the_documented_example_gives_the_documented_result(
    client: Client, put: dict[str, str], search: dict[str, str]
) -> None:
    bank = new_bank()
    assert client.call("hindsight_put", bank_id=bank, **put).text == STORED

    (fact,) = client.call("hindsight_search", bank_id=bank, **search).json["results"]

    assert fact.pop("id")
    assert fact.pop("event_date").startswith("20")
    assert fact == {
        "text": put["content"],
        "type": "world",
        "context": put["context"],
        "document_id": None,
    }


def test_searching_an_unknown_bank_fails_with_the_documented_message(client: Client) -> None:
    name, message = UNKNOWN_BANK
    answer = client.call("hindsight_search", bank_id=name, query="anything")

    assert answer.text == message
    assert answer.result is not None and answer.result["isError"] is True


@pytest.fixture
def unix_client(clients: Callable[[str, str], Client]) -> Client:
    return clients("unix", "2025-11-25")


def test_searching_an_unknown_bank_does_not_create_it(unix_client: Client) -> None:
    bank = new_bank()
    for _ in range(2):
        assert "not found" in unix_client.call("hindsight_search", bank_id=bank, query="x").text


def test_a_fact_is_stored_verbatim(unix_client: Client) -> None:
    bank = new_bank()
    content = "  Zoë said: “naïve”\r\n\tcafé — 東京 🧠 \u200d end  "
    unix_client.call("hindsight_put", bank_id=bank, content=content, context="quotes")

    (fact,) = unix_client.call("hindsight_search", bank_id=bank, query="Zoë naïve").json["results"]

    assert fact["text"] == content


def test_putting_the_same_fact_twice_stores_it_once(unix_client: Client) -> None:
    bank = new_bank()
    for explanation in ("first", "again", ""):
        unix_client.call(
            "hindsight_put",
            bank_id=bank,
            content="Likes tea",
            context="taste",
            explanation=explanation,
        )
    unix_client.call("hindsight_put", bank_id=bank, content="Likes tea", context="another category")

    facts = unix_client.call("hindsight_search", bank_id=bank, query="Likes tea").json["results"]

    assert sorted(fact["context"] for fact in facts) == ["another category", "taste"]


def test_a_put_is_found_by_the_next_search_and_survives_the_connection(
    open_client: OpenClient,
) -> None:
    bank = new_bank()
    first = open_client("bridged")
    first.call("hindsight_put", bank_id=bank, content="Allergic to peanuts", context="health")
    first.close()
    second = open_client()

    found = second.call("hindsight_search", bank_id=bank, query="peanuts").json["results"]

    assert [fact["text"] for fact in found] == ["Allergic to peanuts"]


def test_users_never_see_each_others_facts(unix_client: Client) -> None:
    alice, bob = new_bank(), new_bank()
    unix_client.call(
        "hindsight_put", bank_id=alice, content="Alice's PIN is 4711", context="secrets"
    )
    unix_client.call(
        "hindsight_put", bank_id=bob, content="Bob likes the number 4711", context="taste"
    )

    seen = unix_client.call("hindsight_search", bank_id=bob, query="4711 PIN secrets Alice").text

    assert "Alice's PIN" not in seen and "Bob likes" in seen


def test_bank_names_are_neither_trimmed_nor_case_folded(unix_client: Client) -> None:
    name = new_bank()
    unix_client.call("hindsight_put", bank_id=name, content="Exactly here", context="tests")
    for other in (name.upper(), f" {name}", f"{name} ", f"{name}/", f"../{name}"):
        assert (
            "not found" in unix_client.call("hindsight_search", bank_id=other, query="Exactly").text
        )


def test_a_fact_over_the_token_budget_is_skipped_and_a_shorter_one_returned(
    unix_client: Client,
) -> None:
    bank = new_bank()
    long = "The blue parrot speaks. " + "It says many other things as well. " * 200
    unix_client.call("hindsight_put", bank_id=bank, content=long, context="parrots")
    unix_client.call(
        "hindsight_put", bank_id=bank, content="The parrot is blue.", context="parrots"
    )

    found = unix_client.call(
        "hindsight_search", bank_id=bank, query="blue parrot speaks", max_tokens=200
    ).json["results"]

    assert [fact["text"] for fact in found] == ["The parrot is blue."]


def test_a_best_hit_longer_than_the_token_budget_is_cut_not_omitted(unix_client: Client) -> None:
    bank = new_bank()
    long = "Nothing of note here. " * 300 + "The vault opens at dawn. " + "More of nothing. " * 300
    unix_client.call("hindsight_put", bank_id=bank, content=long, context="vaults")

    for budget in (1, 60, 100, 1000):
        answer = unix_client.call(
            "hindsight_search", bank_id=bank, query="when does the vault open", max_tokens=budget
        )
        (fact,) = answer.json["results"]
        assert fact["text"].strip("…")
        assert fact["text"].strip("…") in long
        if budget >= 100:
            assert "vault" in fact["text"]
        assert len(fact["text"]) <= max(16, budget * 16)


@pytest.mark.parametrize("budget", [200, 500, 1000, 4096])
def test_results_stay_within_the_token_budget(unix_client: Client, budget: int) -> None:
    from daemon.tools.token_estimate import estimate

    bank = new_bank()
    for number in range(60):
        unix_client.call(
            "hindsight_put",
            bank_id=bank,
            content=f"Fact {number} about sailing: " + "wind and water " * (number % 30),
            context="sailing",
        )
    found = unix_client.call(
        "hindsight_search", bank_id=bank, query="sailing wind", max_tokens=budget
    ).json["results"]

    assert found
    cost = sum(estimate(json.dumps(fact, separators=(",", ":"))) for fact in found)
    assert cost <= budget
    smallest = min(estimate(json.dumps(fact, separators=(",", ":"))) for fact in found)
    assert len(found) == 60 or cost + smallest > budget * 0.7


def test_an_unknown_argument_is_rejected_by_name(unix_client: Client) -> None:
    answer = unix_client.call("hindsight_search", bank_id="x", query="y", max_token=5)

    assert answer.text == "Error: max_token: unknown field"

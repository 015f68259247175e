"""All dialects share the memories of a bank, and no bank sees the memories of another."""

import re
import secrets
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.contracts.client import Client, OpenClient

RECALL_SEARCH = "mcp__claude-recall__search"


def put_by_hindsight(client: Client, bank: str, text: str) -> None:
    assert not client.call("hindsight_put", bank_id=bank, content=text, context="doors").is_error


def put_by_recall(client: Client, bank: str, text: str) -> None:
    assert not client.call("store_memory", content=text, metadata={"n": 1}).is_error


def found_by_hindsight(client: Client, bank: str, query: str) -> list[str]:
    answer = client.call("hindsight_search", bank_id=bank, query=query)
    return [fact["text"] for fact in answer.json["results"]]


def found_by_recall(client: Client, bank: str, query: str) -> list[str]:
    answer = client.call(RECALL_SEARCH, query=query, threshold=0)
    return [result["content"] for result in answer.json["results"]]


def found_by_harness(client: Client, bank: str, query: str) -> list[str]:
    rows = client.call("search", query=query, mode="hybrid").json["results"]
    return [client.call("get", id=row["id"]).json["body"] for row in rows]


PUTS: dict[str, Callable[[Client, str, str], None]] = {
    "hindsight": put_by_hindsight,
    "recall": put_by_recall,
}
FINDS: dict[str, Callable[[Client, str, str], list[str]]] = {
    "hindsight": found_by_hindsight,
    "recall": found_by_recall,
    "harness": found_by_harness,
}


@pytest.mark.parametrize("find", FINDS)
@pytest.mark.parametrize("put", PUTS)
def test_a_memory_stored_by_one_dialect_is_found_by_another(
    open_client: OpenClient, transport: str, put: str, find: str
) -> None:
    bank = f"doors-{secrets.token_hex(4)}"
    client = open_client("bridged" if transport == "embedded" else transport, bank=bank)
    text = "The green door of the lighthouse squeaks."
    PUTS[put](client, bank, text)

    assert text in FINDS[find](client, bank, "lighthouse door")


def test_recall_shows_the_dialect_that_stored_a_memory(open_client: OpenClient) -> None:
    bank = f"doors-{secrets.token_hex(4)}"
    client = open_client(bank=bank)
    put_by_hindsight(client, bank, "Came in by the front.")

    (memory,) = client.call("retrieve_memory").json["memories"]

    assert memory["metadata"] == {
        "kind": "memory",
        "dialect": "hindsight",
        "source": "hindsight",
        "context": "doors",
    }
    assert memory["sessionId"].startswith("session_")


def without_ids_and_times(value: Any) -> Any:
    """Remove ids, times and sizes, which differ between banks with equal contents."""
    if isinstance(value, dict):
        hidden = (
            "id",
            "source_id",
            "timestamp",
            "event_date",
            "updated_at",
            "lastMemoryTimestamp",
            "sessionStartTime",
            "databaseSize",
            "sessionId",
        )
        return {
            name: without_ids_and_times(member)
            for name, member in value.items()
            if name not in hidden
        }
    if isinstance(value, list):
        return [without_ids_and_times(member) for member in value]
    return value


SENTENCES = (
    "The deploy script needs AWS_PROFILE to be set before it runs.",
    "User prefers Python over JavaScript for backend development.",
    "Database migrations run on Tuesdays after the backup.",
    "The backup of the database is kept for thirty days.",
    "JWT tokens expire after fifteen minutes.",
    "Rotate the signing key of the tokens every month.",
)
QUERIES = ("deploy script", "database backup", "how long do tokens live", "JavaScript", "nothing")


def answers(client: Client, bank: str) -> Any:
    return [
        [
            without_ids_and_times(client.call("hindsight_search", bank_id=bank, query=query).json),
            without_ids_and_times(client.call(RECALL_SEARCH, query=query, threshold=0).json),
            without_ids_and_times(client.call("search", query=query, mode="hybrid").json),
            without_ids_and_times(client.call("search", query=query).json),
        ]
        for query in QUERIES
    ] + [
        without_ids_and_times(client.call("get_stats").json),
        without_ids_and_times(client.call("retrieve_memory", limit=50).json),
        without_ids_and_times(client.call("sources").json),
    ]


def stable_answers(client: Client, bank: str) -> Any:
    """Wait for three equal answers in a row, which means that every vector has been computed.

    A stored text is found by keywords at once. Its vector is computed later and changes scores.
    """
    deadline = time.monotonic() + 20
    last = [answers(client, bank) for _ in range(3)]
    while not last[0] == last[1] == last[2]:
        assert time.monotonic() < deadline, "the answers were still changing after 20 s"
        last = [*last[1:], answers(client, bank)]
    return last[-1]


def test_results_of_one_bank_do_not_depend_on_another_bank(open_client: OpenClient) -> None:
    alone, crowded = f"alone-{secrets.token_hex(4)}", f"crowded-{secrets.token_hex(4)}"
    neighbour = open_client(bank=f"neighbour-{secrets.token_hex(4)}")
    first, second = open_client(bank=alone), open_client(bank=crowded)
    for text in SENTENCES:
        put_by_recall(first, alone, text)
        put_by_hindsight(first, alone, text)
    before = stable_answers(first, alone)

    for text in SENTENCES:
        for variation in range(15):
            put_by_recall(neighbour, "", f"{text} Variation {variation}.")
        put_by_recall(neighbour, "", text)
    for text in SENTENCES:
        put_by_recall(second, crowded, text)
        put_by_hindsight(second, crowded, text)

    assert stable_answers(second, crowded) == before
    assert stable_answers(first, alone) == before


def test_every_limit_returns_a_prefix_of_the_recent_memories(open_client: OpenClient) -> None:
    client = open_client()
    for number in range(25):
        client.call("store_memory", content=f"page {number}")

    seen = [memory["id"] for memory in client.call("retrieve_memory", limit=100).json["memories"]]

    assert len(seen) == len(set(seen)) == 25
    for limit in (1, 7, 24, 25, 26):
        page = client.call("retrieve_memory", limit=limit).json["memories"]
        assert [memory["id"] for memory in page] == seen[:limit]


def test_every_stored_memory_is_found_by_every_dialect(open_client: OpenClient) -> None:
    bank = f"kept-{secrets.token_hex(4)}"
    client = open_client(bank=bank)
    words = [f"word{secrets.token_hex(5)}" for _ in range(30)]
    for number, word in enumerate(words):
        put = PUTS["recall" if number % 2 else "hindsight"]
        put(client, bank, f"{word} stands alone")

    for word in words:
        for find in FINDS.values():
            assert any(word in text for text in find(client, bank, word)), word
    assert client.call("get_stats").json["totalMemories"] == len(words)


def test_the_dialects_option_selects_the_listed_tools(daemon: Any) -> None:
    for chosen, expected in (
        ("hindsight", {"hindsight"}),
        ("harness,hindsight", {"hindsight", "harness"}),
        ("-recall", {"hindsight", "harness", "awareness"}),
    ):
        client = Client("bridged", "2025-11-25", daemon, f"--dialects={chosen}")
        names = client.tools()
        client.close()
        assert {dialect_of(name) for name in names} <= expected
        assert expected - {"awareness"} <= {dialect_of(name) for name in names}
        assert client is not None


def dialect_of(tool: str) -> str:
    if tool.startswith("mcp__claude-recall__"):
        return "recall"
    found = re.match(r"_*(hindsight|awareness)_", tool)
    return found[1] if found else "harness"


def test_an_unknown_dialect_is_rejected_by_name(daemon: Any) -> None:
    for command in (("stdio",), ("stdio", "--embedded"), ("serve",)):
        done = daemon.run(*command, "--dialects", "hindsight,telepathy")
        assert done.returncode != 0
        assert "telepathy" in done.stderr and "hindsight" in done.stderr


def test_the_source_filter_and_source_counts_agree_with_search_results(
    open_client: OpenClient,
) -> None:
    bank = f"doors-{secrets.token_hex(4)}"
    client = open_client(bank=bank)
    put_by_hindsight(client, bank, "Lighthouse one: the lamp is green.")
    put_by_recall(client, bank, "Lighthouse two: the stairs are steep.")
    insights = {
        "knowledge_cards": [
            {"category": "decision", "title": "Lighthouse lens", "summary": "Fresnel lens it is."}
        ],
        "action_items": [{"title": "Lighthouse painting", "description": "Paint the lighthouse."}],
        "turn_brief": "We spoke about the lighthouse lens.",
    }
    for given in (
        {"action": "remember", "text": "Lighthouse three: the door squeaks."},
        {"action": "remember", "text": "Lighthouse four: keys under the mat.", "source": "cursor"},
        {"action": "ingest", "content": [{"text": "Lighthouse five: built in 1871."}]},
        {"action": "submit_insights", "insights": insights},
    ):
        assert not client.call("awareness_record", memory_id=bank, **given).is_error

    rows = client.call("search", query="lighthouse", limit=50).json["results"]
    shown: dict[str, set[str]] = {}
    for row in rows:
        shown.setdefault(row["source"], set()).add(row["id"])
    assert set(shown) == {"hindsight", "recall", "awareness", "cursor"}
    assert len(shown["awareness"]) >= 4
    for source, ids in shown.items():
        filtered = client.call("search", query="lighthouse", limit=50, source=source)
        assert {row["id"] for row in filtered.json["results"]} == ids
    counts = {s["name"]: s["doc_count"] for s in client.call("sources").json["sources"]}
    assert counts == {source: len(ids) for source, ids in shown.items()}

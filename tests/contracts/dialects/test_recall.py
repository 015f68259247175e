"""Claude Recall: sessions, scores, statistics and errors."""

import re
import secrets
from collections.abc import Callable

import pytest

from tests.contracts.client import Client, Home, OpenClient
from tests.contracts.tables.model import Tool, check_fields
from tests.contracts.tables.recall import HEALTH, PREFIX

STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z")


def test_the_documented_examples_give_the_documented_results(client: Client) -> None:
    word = secrets.token_hex(4)
    stored = client.call(f"{PREFIX}store_memory", content=f"Memory content {word}", metadata={})
    assert re.fullmatch(r"memory_\d+_[0-9a-z]+", stored.json["id"])
    assert stored.json == {
        "id": stored.json["id"],
        "success": True,
        "message": "Memory stored successfully",
    }
    id = stored.json["id"]

    found = client.call(f"{PREFIX}search", query=f"Memory content {word}", limit=1, threshold=0.7)
    (result,) = found.json["results"]
    assert (result["id"], result["content"], result["metadata"]) == (
        id,
        f"Memory content {word}",
        {},
    )
    assert STAMP.fullmatch(result["timestamp"])
    assert 0.7 <= result["score"] <= 1
    assert (found.json["total"], found.json["query"]) == (1, f"Memory content {word}")

    recent = client.call(f"{PREFIX}retrieve_memory", limit=1).json
    by_id = client.call(f"{PREFIX}retrieve_memory", id=id).json
    assert recent == by_id
    assert by_id["total"] == 1
    assert by_id["memories"][0]["id"] == id
    assert by_id["memories"][0]["sessionId"].startswith("session_")

    stats = client.call(f"{PREFIX}get_stats").json
    assert stats["lastMemoryTimestamp"] == result["timestamp"]
    assert STAMP.fullmatch(stats["sessionStartTime"])
    assert re.fullmatch(r"\d+(\.\d)? [KM]?B", stats["databaseSize"])

    kept = stats["sessionMemories"]
    assert kept >= 1
    cleared = client.call(f"{PREFIX}clear_context", confirm=True).json
    undo = cleared.pop("undo")
    assert f"recalld undo {undo} --bank" in cleared.pop("hint")
    assert cleared == {
        "success": True,
        "message": "Context cleared successfully",
        "memoriesCleared": kept,
    }


@pytest.mark.parametrize("name", ["store_memory", "retrieve_memory", "get_stats", "clear_context"])
def test_tools_can_be_called_by_their_short_names(client: Client, name: str) -> None:
    arguments = {"content": "by its short name"} if name == "store_memory" else {}
    assert not client.call_with(name, arguments).is_error


def test_the_short_name_search_means_recall_when_harness_is_disabled(daemon: Home) -> None:
    client = Client("bridged", "2025-11-25", daemon, "--dialects", "recall", "--bank", "short")
    assert set(client.call("search", query="x").json) == {
        "results",
        "total",
        "query",
        "belowThreshold",
    }
    client.close()


def test_health_has_the_documented_fields_and_counts_tools(client: Client) -> None:
    health = client.request("health/check")["result"]
    health.pop("resultType", None)
    health.pop("_meta", None)
    health.pop("pendingVectors", None)  # an addition, present while vectors are computed
    table = Tool(name="health/check", parameters=(), result=HEALTH, arguments={})

    assert check_fields(health, table) == ([], [])
    assert (health["status"], health["database"]) == ("healthy", "connected")
    assert health["toolsRegistered"] == len(client.tools())


@pytest.fixture
def unix_client(open_client: OpenClient) -> Client:
    return open_client()


def test_statistics_of_an_empty_bank_are_zeros(unix_client: Client) -> None:
    stats = unix_client.call("get_stats").json
    assert stats.pop("sessionStartTime")
    assert stats == {
        "totalMemories": 0,
        "sessionMemories": 0,
        "memoryTypes": {},
        "lastMemoryTimestamp": None,
        "databaseSize": "0 B",
    }
    assert unix_client.call("retrieve_memory").json == {"memories": [], "total": 0}
    assert unix_client.call(f"{PREFIX}search", query="x").json["results"] == []
    assert unix_client.call("clear_context", confirm=True).json["memoriesCleared"] == 0


def test_statistics_count_memories_by_type_and_session(open_client: OpenClient) -> None:
    bank = f"stats-{secrets.token_hex(4)}"
    first, second = open_client("unix", bank=bank), open_client("bridged", bank=bank)
    for number in range(3):
        first.call("store_memory", content=f"code note {number}", metadata={"type": "code"})
    first.call("store_memory", content="no type at all")
    second.call("store_memory", content="chat", metadata={"type": "conversation"})
    second.call("store_memory", content="odd type", metadata={"type": 7})
    second.call("hindsight_put", bank_id=bank, content="a fact", context="facts")

    stats = first.call("get_stats").json

    assert stats["totalMemories"] == 7
    assert stats["memoryTypes"] == {"code": 3, "conversation": 1, "general": 3}
    assert sum(stats["memoryTypes"].values()) == stats["totalMemories"]
    assert stats["sessionMemories"] == 4
    assert second.call("get_stats").json["sessionMemories"] == 2
    assert second.call("get_stats").json["sessionStartTime"] >= stats["sessionStartTime"]


def test_clear_context_deletes_only_the_memories_of_its_session(open_client: OpenClient) -> None:
    bank = f"clear-{secrets.token_hex(4)}"
    mine, theirs = open_client("unix", bank=bank), open_client("unix", bank=bank)
    for number in range(3):
        mine.call("store_memory", content=f"mine {number}")
    mine.call("store_memory", content="said by both")
    theirs.call("store_memory", content="said by both")
    theirs.call("store_memory", content="theirs")
    mine.call("hindsight_put", bank_id=bank, content="a user's fact", context="facts")

    assert mine.call("clear_context").json["success"] is False
    assert mine.call("clear_context", confirm=False).json["memoriesCleared"] == 0
    assert mine.call("get_stats").json["sessionMemories"] == 4

    assert mine.call("clear_context", confirm=True).json["memoriesCleared"] == 4
    assert mine.call("clear_context", confirm=True).json["memoriesCleared"] == 0

    left = [memory["content"] for memory in theirs.call("retrieve_memory").json["memories"]]
    assert sorted(left) == ["a user's fact", "said by both", "theirs"]
    found = mine.call(f"{PREFIX}search", query="mine", threshold=0).text
    assert "mine 1" not in found


def test_storing_the_same_memory_twice_in_a_session_stores_it_once(unix_client: Client) -> None:
    ids = {
        unix_client.call("store_memory", content="twice", metadata={"a": 1, "b": [2]}).json["id"]
        for _ in range(3)
    }
    other = unix_client.call("store_memory", content="twice", metadata={"a": 2}).json["id"]

    assert len(ids) == 1 and other not in ids
    assert unix_client.call("get_stats").json["totalMemories"] == 2


def test_a_cleared_memory_can_be_stored_again(unix_client: Client) -> None:
    first = unix_client.call("store_memory", content="come and go").json["id"]
    unix_client.call("clear_context", confirm=True)
    second = unix_client.call("store_memory", content="come and go").json["id"]

    assert first != second
    assert unix_client.call("retrieve_memory", id=first).json == {"memories": [], "total": 0}
    assert unix_client.call("retrieve_memory", id=second).json["total"] == 1


def test_search_returns_equal_memories_of_two_sessions_once(open_client: OpenClient) -> None:
    bank = f"equal-{secrets.token_hex(4)}"
    first, second = open_client("unix", bank=bank), open_client("unix", bank=bank)
    for other in ("bananas ripen in paper bags", "the deploy waits for Friday"):
        first.call("store_memory", content=other)
    first.call("store_memory", content="tests run with scripts/test")
    newest = second.call("store_memory", content="tests run with scripts/test").json["id"]

    results = first.call(f"{PREFIX}search", query="how do tests run", threshold=0).json["results"]

    ids = [result["id"] for result in results if result["content"].startswith("tests run")]
    assert ids == [newest]


def test_results_below_the_threshold_are_omitted_and_counted(unix_client: Client) -> None:
    for text in (
        "The deploy script needs AWS_PROFILE to be set",
        "Bananas ripen faster in a paper bag",
        "The deploy of the website happens on Fridays",
    ):
        unix_client.call("store_memory", content=text)
    query = "deploy script AWS_PROFILE"
    everything = unix_client.call(f"{PREFIX}search", query=query, threshold=0).json
    usual = unix_client.call(f"{PREFIX}search", query=query).json
    strict = unix_client.call(f"{PREFIX}search", query=query, threshold=1).json

    assert usual["results"] == [r for r in everything["results"] if r["score"] >= 0.7]
    assert usual["results"][0]["content"].startswith("The deploy script")
    assert usual["total"] + usual["belowThreshold"] >= everything["total"]
    assert strict["results"] == [] and strict["belowThreshold"] >= 1
    count = strict["belowThreshold"]
    assert strict["hint"].startswith(
        f"{count} memories score below the threshold of 1, the best 0."
    )
    assert strict["hint"].endswith("; a lower threshold shows them")
    assert "hint" not in usual and "hint" not in everything
    assert "hint" not in unix_client.call(f"{PREFIX}search", query="zzqx vvkj", threshold=0).json
    scores = [result["score"] for result in everything["results"]]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


def test_recent_memories_are_newest_first_and_obey_the_limit(unix_client: Client) -> None:
    for number in range(15):
        unix_client.call("store_memory", content=f"note {number}")

    def contents(**arguments: int | float) -> list[str]:
        found = unix_client.call_with("retrieve_memory", arguments).json
        assert found["total"] == len(found["memories"])
        return [memory["content"] for memory in found["memories"]]

    everything = [f"note {number}" for number in reversed(range(15))]
    assert contents() == everything[:10]
    assert contents(limit=3) == contents(limit=3.0) == everything[:3]
    assert contents(limit=1e9) == everything


def test_metadata_round_trips_and_never_overrides_the_content(unix_client: Client) -> None:
    metadata = {
        "content": "not this",
        "id": "nor this",
        "nested": {"list": [1, 2.5, None, True, "é"]},
        "type": "code",
    }
    id = unix_client.call("store_memory", content="the content", metadata=metadata).json["id"]

    (memory,) = unix_client.call("retrieve_memory", id=id).json["memories"]

    assert (memory["id"], memory["content"], memory["metadata"]) == (id, "the content", metadata)


def test_a_session_survives_a_daemon_restart() -> None:
    home = Home()
    try:
        client = Client("bridged", "2025-11-25", home, "--bank", "long")
        id = client.call("store_memory", content="before the restart").json["id"]
        before = client.call("get_stats").json
        session = client.call("retrieve_memory", id=id).json["memories"][0]["sessionId"]

        assert home.run("stop").returncode == 0

        after = client.call("get_stats").json
        assert after["sessionMemories"] == 1
        assert after["sessionStartTime"] == before["sessionStartTime"]
        again = client.call("store_memory", content="after the restart").json["id"]
        (memory,) = client.call("retrieve_memory", id=again).json["memories"]
        assert memory["sessionId"] == session
        assert client.call("clear_context", confirm=True).json["memoriesCleared"] == 2
        client.close()
    finally:
        home.close()


def test_exceeding_the_rate_limit_gives_the_documented_error_code() -> None:
    home = Home({"RECALLD_RATE_LIMIT": "", "CLAUDE_RECALL_RATE_LIMIT": "5"})
    try:
        client = Client("embedded", "2024-11-05", home)
        answers = [client.call("get_stats") for _ in range(6)]
        assert [answer.is_error for answer in answers] == [False] * 5 + [True]
        error = answers[-1].error
        assert error is not None
        assert error["code"] == -32001
        assert error["message"].startswith("Rate limit exceeded")
        assert error["data"]["details"]
        client.close()
    finally:
        home.close()


def test_unknown_arguments_are_ignored_as_the_documented_schema_allows(
    clients: Callable[[str, str], Client],
) -> None:
    client = clients("unix", "2025-11-25")
    assert not client.call("get_stats", sessionId="x").is_error
    assert not client.call("store_memory", content="x", sessionId="y").is_error

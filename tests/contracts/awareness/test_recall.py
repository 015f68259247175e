"""`awareness_recall`: modes, scopes, filters and thresholds."""

import json

from tests.contracts.awareness.calls import recall, record, store_sample_memories
from tests.contracts.client import Client
from tests.contracts.tables.awareness import RECALL_MODES


def test_the_five_recall_modes_return_different_parts(memory: Client) -> None:
    store_sample_memories(memory)
    found = {
        mode: recall(memory, "how does the cache work?", recall_mode=mode) for mode in RECALL_MODES
    }

    assert {mode: answer["recall_mode"] for mode, answer in found.items()} == {
        mode: mode for mode in RECALL_MODES
    }
    structured = ("verified_cards", "unverified_cards", "recent_days", "open_tasks", "risks")
    for mode in ("hybrid", "structured"):
        assert all(part in found[mode] for part in structured), mode
        assert [card["title"] for card in found[mode]["verified_cards"]] == ["Cache in Redis"]
    for mode in ("precise", "session"):
        assert not any(part in found[mode] for part in structured), mode
    assert found["structured"]["results"] == []
    assert found["hybrid"]["results"] and found["precise"]["results"]
    whole = next(
        r for r in found["session"]["results"] if r["metadata"].get("session_id") == "monday"
    )
    assert "weather" in whole["content"] and whole["metadata"]["event_count"] == 3
    assert not any("weather" in r["content"] for r in found["precise"]["results"][:1])


def test_auto_mode_adds_structure_only_when_search_results_are_weak(memory: Client) -> None:
    store_sample_memories(memory)

    weak = recall(memory, "zzzqqqxxyy", recall_mode="auto")
    assert weak["supplemented"] and "open_tasks" in weak
    strong = recall(
        memory, "Decision: the cache lives in Redis because workers share it.", recall_mode="auto"
    )
    assert "supplemented" not in strong and "open_tasks" not in strong


def test_each_scope_searches_only_its_own_kinds(memory: Client) -> None:
    store_sample_memories(memory)
    kinds = {
        scope: {
            r["metadata"]["kind"]
            for r in recall(memory, "cache", scope=scope, recall_mode="precise", limit=30)[
                "results"
            ]
        }
        for scope in ("timeline", "knowledge", "insights", "all")
    }
    assert kinds["timeline"] == {"event"}
    assert kinds["knowledge"] == {"chunk"}
    assert kinds["insights"] == {"narrative"}
    # The summary of the session repeats the events, which are results themselves.
    assert kinds["all"] == {"event", "chunk", "card", "task"}


def test_multi_level_and_cluster_expand_add_context(memory: Client) -> None:
    store_sample_memories(memory)
    record(memory, action="remember", text="The cache of the build is a folder.", session_id="tue")

    plain = recall(memory, "where does the cache live?", limit=1)
    wide = recall(
        memory, "where does the cache live?", limit=1, multi_level=True, cluster_expand=True
    )

    assert "levels" not in plain and "clusters" not in plain
    assert wide["levels"]["sessions"][0]["session_id"]
    assert wide["levels"]["days"][0]["count"] >= 3
    found = {result["metadata"]["id"] for result in wide["results"]}
    members = [member["id"] for cluster in wide["clusters"] for member in cluster["members"]]
    assert members and not found & set(members) and len(members) == len(set(members))


def test_filters_are_applied_before_the_limit(memory: Client) -> None:
    for i in range(40):
        record(memory, action="remember", text=f"cache note {i}", user_id="ana", session_id="a")
    record(
        memory,
        action="remember",
        text="cache note of ben",
        user_id="ben",
        session_id="b",
        agent_role="reviewer_agent",
        metadata={"ticket": 42, "area": "cache"},
    )

    for narrow in (
        {"user_id": "ben"},
        {"session_id": "b"},
        {"agent_role": "reviewer_agent"},
        {"metadata_filter": {"ticket": 42}},
        {"metadata_filter": json.dumps({"area": "cache", "ticket": 42})},
    ):
        found = recall(memory, "cache note", recall_mode="precise", limit=1, **narrow)
        assert [r["content"] for r in found["results"]] == ["cache note of ben"], narrow
    nothing = recall(memory, "cache note", recall_mode="precise", metadata_filter={"ticket": "42"})
    assert nothing["results"] == []


def test_cards_below_the_confidence_threshold_are_omitted(memory: Client) -> None:
    cards = [
        {"category": "insight", "title": f"Queue {word}", "summary": word, "confidence": sure}
        for word, sure in (("batching", 0.9), ("priorities", 0.3))
    ]
    record(memory, action="submit_insights", content={"knowledge_cards": cards})

    for mode in ("structured", "hybrid"):
        found = recall(memory, "queue", recall_mode=mode, confidence_threshold=0.5)
        assert [card["title"] for card in found["unverified_cards"]] == ["Queue batching"]


def test_keywords_are_extracted_from_the_question_by_default(memory: Client) -> None:
    question = "authentication bug in auth.py, JWT and session_cookies"
    found = recall(memory, question)
    assert set(found["keyword_query"].split()) >= {"auth.py", "JWT", "session_cookies"}
    assert recall(memory, question, keyword_query="OAuth2")["keyword_query"] == "OAuth2"


def test_a_question_without_matches_gets_no_results(memory: Client) -> None:
    store_sample_memories(memory)
    assert recall(memory, "zzzqqqxxyy", recall_mode="precise")["results"] == []


def test_a_limit_above_the_maximum_is_capped(memory: Client) -> None:
    record(memory, action="remember_batch", steps=[f"cache fact number {i}" for i in range(40)])
    assert len(recall(memory, "cache fact", limit=1000, recall_mode="precise")["results"]) == 30

"""`awareness_lookup`: lists of tasks, knowledge, risks and events without a search."""

import pytest

from tests.contracts.awareness.calls import lookup, record, refusal, store_sample_memories
from tests.contracts.client import Client
from tests.contracts.tables.awareness import LOOKUP_TYPES


@pytest.mark.parametrize("type", [t for t in LOOKUP_TYPES if t != "session_history"])
def test_every_type_of_lookup_works_on_an_empty_memory(memory: Client, type: str) -> None:
    assert lookup(memory, type)["memory_id"]


def test_session_history_needs_a_session(memory: Client) -> None:
    message = refusal(memory, "awareness_lookup", type="session_history")
    assert message == "session_id: is required for type='session_history'"


def test_an_unknown_memory_is_an_error_not_an_empty_result(memory: Client) -> None:
    for tool, arguments in (
        ("awareness_lookup", {"type": "tasks"}),
        ("awareness_recall", {"semantic_query": "x"}),
    ):
        message = refusal(memory, tool, memory_id="mem_misspelt", **arguments)
        assert message == "Memory 'mem_misspelt' not found."


def test_knowledge_is_filtered_by_query_before_the_limit(memory: Client) -> None:
    words = ["alpha", "beta", "gamma", "delta", "epsilon"]
    cards = [
        {"category": "insight", "title": f"On {word}", "summary": f"{word} is unlike the others"}
        for word in words
    ]
    record(memory, action="submit_insights", content={"knowledge_cards": cards})

    found = lookup(memory, "knowledge", query="ALPHA unlike", limit=1)

    assert (found["total"], [card["title"] for card in found["cards"]]) == (1, ["On alpha"])


def test_tasks_are_filtered_and_ordered(memory: Client) -> None:
    items = [
        {"title": "Sweep the yard", "priority": "low"},
        {"title": "Mend the roof", "priority": "high"},
        {"title": "Feed the cat", "priority": "medium", "status": "in_progress"},
        {"title": "Buy paint", "status": "completed"},
    ]
    record(memory, action="submit_insights", content={"action_items": items})

    open_ones = lookup(memory, "tasks")
    assert [task["title"] for task in open_ones["tasks"]] == [
        "Feed the cat",
        "Mend the roof",
        "Sweep the yard",
    ]
    assert (open_ones["total"], open_ones["in_progress"], open_ones["pending"]) == (3, 1, 2)
    assert [t["title"] for t in lookup(memory, "tasks", priority="high")["tasks"]] == [
        "Mend the roof"
    ]
    assert [t["title"] for t in lookup(memory, "tasks", status="completed")["tasks"]] == [
        "Buy paint"
    ]


def test_a_handoff_is_a_compact_briefing(memory: Client) -> None:
    store_sample_memories(memory)
    briefing = lookup(memory, "handoff", query="the cache work")

    assert briefing["briefing_for"] == "the cache work"
    assert briefing["recent_progress"][0][:3] == "202"
    assert [task["title"] for task in briefing["open_tasks"]] == ["Monitor cache evictions"]
    assert [card["title"] for card in briefing["key_knowledge"]] == ["Cache in Redis"]
    assert 100 <= briefing["token_estimate"] < 1000


@pytest.mark.parametrize("type", ["tasks", "knowledge", "risks", "timeline", "session_history"])
def test_paging_returns_every_item_exactly_once(memory: Client, type: str) -> None:
    letters = "abcdefghijklmnopqrstuvw"
    record(
        memory, action="remember_batch", steps=[f"event {c * 3}" for c in letters], session_id="w"
    )
    record(
        memory,
        action="submit_insights",
        content={
            "knowledge_cards": [
                {"category": "insight", "title": c * 4, "summary": c * 5} for c in letters
            ],
            "risks": [{"title": c * 4} for c in letters],
            "action_items": [{"title": c * 4} for c in letters],
        },
    )
    more = {"session_id": "w"} if type == "session_history" else {}
    seen: list[str] = []
    offset: int | None = 0
    while offset is not None:
        page = lookup(memory, type, limit=5, offset=offset, **more)
        (items,) = (value for value in page.values() if isinstance(value, list))
        seen += [item["id"] for item in items]
        offset = page.get("next_offset")

    assert len(seen) == len(set(seen)) == len(letters)

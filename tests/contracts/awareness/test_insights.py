"""`awareness_record` with `submit_insights`: storing, merging and verifying cards."""

import json
from typing import Any

import pytest

from tests.contracts.awareness.calls import lookup, recall, record
from tests.contracts.client import Client
from tests.contracts.tables.awareness import CATEGORIES, GOOD_EXAMPLES


@pytest.mark.parametrize("category", CATEGORIES)
def test_cards_of_every_category_are_stored_and_can_be_listed(
    memory: Client, category: str
) -> None:
    card = {"category": category, "title": "A thing", "summary": f"Something about {category}."}
    record(memory, action="submit_insights", content={"knowledge_cards": [card]})

    found = lookup(memory, "knowledge", category=category)

    assert [(c["category"], c["title"]) for c in found["cards"]] == [(category, "A thing")]


def test_duplicate_insights_are_merged_and_changed_ones_superseded(memory: Client) -> None:
    def submit(summary: str, **more: Any) -> Any:
        card = {
            "category": "personal_preference",
            "title": "Editor",
            "summary": summary,
            **more,
        }
        return record(memory, action="submit_insights", content={"knowledge_cards": [card]})

    first = submit("The user edits with vim.")
    twice = submit("The user edits with vim.")
    changed = submit("The user has moved to zed, for good.")

    assert (first["cards_created"], twice["cards_skipped_dup"], changed["cards_updated"]) == (
        1,
        1,
        1,
    )
    assert twice["cards"][0]["id"] == first["cards"][0]["id"]
    assert changed["cards"][0]["replaces"] == first["cards"][0]["id"]
    now = lookup(memory, "knowledge")
    assert [card["summary"] for card in now["cards"]] == ["The user has moved to zed, for good."]
    before = lookup(memory, "knowledge", status="superseded")
    assert [card["summary"] for card in before["cards"]] == ["The user edits with vim."]
    assert before["cards"][0]["superseded_by"] == changed["cards"][0]["id"]


def test_a_card_can_name_the_card_it_supersedes(memory: Client) -> None:
    old = {"category": "decision", "title": "Use REST", "summary": "The API is REST."}
    id = record(memory, action="submit_insights", content={"knowledge_cards": [old]})["cards"][0]
    new = {
        "category": "decision",
        "title": "Move everything to gRPC",
        "summary": "Streaming was needed.",
        "supersedes": id["id"],
    }
    ghost = {**new, "title": "Other", "summary": "Unrelated words", "supersedes": "kc_ghost"}

    sent = record(memory, action="submit_insights", content={"knowledge_cards": [new, ghost]})

    assert (sent["cards_updated"], sent["cards_created"]) == (1, 1)
    assert sent["corrected"][0]["where"] == "knowledge_cards[1].supersedes"


def test_a_card_is_verified_only_by_evidence_found_in_recorded_events(memory: Client) -> None:
    record(memory, action="remember", text=GOOD_EXAMPLES[1])
    cards = [
        {
            "category": "problem_solution",
            "title": "Leak in the worker",
            "summary": "Connections were not closed; a finally block closes them.",
            "evidence": [{"snippet": "unclosed DB connections"}],
        },
        {
            "category": "pitfall",
            "title": "Workers crash on Mondays",
            "summary": "They are said to.",
            "evidence": [{"snippet": "crashes every Monday morning"}],
        },
    ]
    record(memory, action="submit_insights", content={"knowledge_cards": cards})

    found = recall(memory, "worker problems", recall_mode="structured")

    assert [card["title"] for card in found["verified_cards"]] == ["Leak in the worker"]
    assert [card["title"] for card in found["unverified_cards"]] == ["Workers crash on Mondays"]


@pytest.mark.parametrize(
    "wrap",
    [
        lambda insights: {"content": insights},
        lambda insights: {"content": json.dumps(insights)},
        lambda insights: {"content": "```json\n" + json.dumps(insights) + "\n```"},
        lambda insights: {"content": {"insights": insights}},
        lambda insights: {"insights": insights},
    ],
)
def test_insights_are_accepted_as_object_json_fenced_json_or_nested(
    memory: Client, wrap: Any
) -> None:
    insights = {"risks": [{"title": "Disk fills up", "level": "critical", "mitigation": "Alerts"}]}
    sent = record(memory, action="submit_insights", **wrap(insights))

    assert sent["risks_created"] == 1
    (risk,) = lookup(memory, "risks", level="high")["risks"]
    assert (risk["title"], risk["mitigation"], risk["status"]) == (
        "Disk fills up",
        "Alerts",
        "active",
    )


def test_invalid_parts_of_insights_are_reported_and_the_rest_stored(memory: Client) -> None:
    content = {
        "knowledge_cards": [
            {"category": "gossip", "title": "T", "summary": "S", "confidence": 7},
            {"category": "decision"},
            "words",
        ],
        "completed_tasks": [{"task_id": "task_ghost"}],
        "entities": [{"name": "X"}],
        "turn_brief": "We talked about categories.",
    }
    sent = record(memory, action="submit_insights", content=content)

    assert sent["cards_created"] == 1
    assert [skip["where"] for skip in sent["skipped"]] == [
        "knowledge_cards[1]",
        "knowledge_cards[2]",
        "completed_tasks[0]",
        "entities",
    ]
    assert [c["where"] for c in sent["corrected"]] == [
        "knowledge_cards[0].category",
        "knowledge_cards[0].confidence",
    ]
    (card,) = lookup(memory, "knowledge", category="key_point")["cards"]
    assert "gossip" in card["tags"]
    assert [e["event_type"] for e in lookup(memory, "timeline")["events"]] == ["turn_brief"]

"""`awareness_record`: events, histories, documents and tasks."""

import json
from typing import Any

import pytest

from tests.contracts.awareness.calls import lookup, recall, record, refusal
from tests.contracts.client import Client
from tests.contracts.tables.awareness import BAD_EXAMPLES, CATEGORIES, GOOD_EXAMPLES, STEPS


@pytest.mark.parametrize("text", GOOD_EXAMPLES)
def test_the_documents_good_examples_get_an_extraction_instruction(
    memory: Client, text: str
) -> None:
    kept = record(memory, action="remember", text=text)

    assert kept["event"]["content"] == text
    assert len(kept["_extraction_instruction"].encode()) < 2048
    assert all(category in kept["_extraction_instruction"] for category in CATEGORIES)

    again = record(memory, action="remember", text=text)
    assert again["result"] == {
        "accepted": 1,
        "written": 0,
        "failed": 0,
        "duplicates": 1,
        "status": "duplicate",
    }
    assert again["event"]["id"] == kept["event"]["id"]
    assert "_extraction_instruction" not in again


@pytest.mark.parametrize("text", BAD_EXAMPLES)
def test_the_documents_bad_examples_are_stored_without_an_instruction(
    memory: Client, text: str
) -> None:
    kept = record(memory, action="remember", text=text)

    assert kept["result"]["written"] == 1
    assert "_extraction_instruction" not in kept
    assert [event["content"] for event in lookup(memory, "timeline")["events"]] == [text]


def test_the_documented_batch_gets_the_documented_statuses(memory: Client) -> None:
    kept = record(memory, action="remember_batch", steps=list(STEPS))

    assert [step["status"] for step in kept["events"]] == ["resolved", "noted", "noted", "open"]
    opened = lookup(memory, "timeline", status="open")
    assert [event["content"] for event in opened["events"]] == [STEPS[3]["text"]]


def test_invalid_steps_are_listed_with_their_reason(memory: Client) -> None:
    kept = record(memory, action="remember_batch", steps=["one", 2, {"text": ""}, {"note": "x"}])

    assert kept["accepted_steps"] == 1
    assert kept["result"]["failed"] == 3
    assert {tuple(s["indexes"]): s["reason"] for s in kept["skipped"]} == {
        (1,): "neither a text nor an object",
        (2, 3): "no text under text, content, message, body, output, input",
    }


def test_steps_can_be_json_text_and_extra_fields_become_metadata(memory: Client) -> None:
    steps = json.dumps([{"text": "Built", "role": "tool", "branch": "main"}])
    record(memory, action="remember_batch", steps=steps, metadata_defaults={"team": "core"})

    (event,) = lookup(memory, "timeline")["events"]
    assert (event["actor"], event["metadata"]) == ("tool", {"team": "core", "branch": "main"})


def test_an_argument_that_the_action_does_not_use_is_rejected(memory: Client) -> None:
    message = refusal(
        memory, "awareness_record", action="remember", text="a", steps=[{"text": "b"}]
    )
    assert message.startswith("steps: ")
    assert lookup(memory, "timeline")["total"] == 0


def test_backfill_parses_transcripts_and_stops_at_max_events(memory: Client) -> None:
    history = "User: Use tabs.\nplease\n\nAssistant: Done.\nUser: yes\nAssistant: ok\nUser: yes"
    kept = record(memory, action="backfill", history=history, session_id="old")

    assert (kept["parsed_events"], kept["ingested_events"], kept["truncated"]) == (5, 5, False)
    events = lookup(memory, "session_history", session_id="old")["events"]
    assert [(event["actor"], event["content"]) for event in events] == [
        ("user", "Use tabs.\nplease"),
        ("assistant", "Done."),
        ("user", "yes"),
        ("assistant", "ok"),
        ("user", "yes"),
    ]
    again = record(memory, action="backfill", history=history, session_id="old")
    assert again["result"]["duplicates"] == 5

    capped = record(
        memory, action="backfill", history=[f"line {i}" for i in range(9)], max_events=4
    )
    assert (capped["ingested_events"], capped["truncated"], capped["next_event"]) == (4, True, 4)


@pytest.mark.parametrize(
    "history",
    [
        [{"role": "user", "content": "hello there"}],
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "hello there"}]}]},
        '{"role": "user", "content": "hello there"}\n{"role": "assistant", "content": ""}',
        {"events": [{"actor": "user", "text": "hello there"}]},
        '[{"message": {"role": "user", "content": "hello there"}}]',
    ],
)
def test_backfill_accepts_common_history_formats(memory: Client, history: Any) -> None:
    record(memory, action="backfill", history=history)
    (event,) = lookup(memory, "timeline")["events"]
    assert (event["actor"], event["content"]) == ("user", "hello there")


def test_ingested_knowledge_is_a_document_and_not_a_timeline_event(memory: Client) -> None:
    spec = "# Auth spec\n\nTokens expire after 15 minutes.\n\n## Refresh\n\nRefresh needs a cookie."
    ingest: dict[str, Any] = {
        "action": "ingest",
        "content": {"title": "Auth spec", "text": spec, "id": "spec-1"},
        "content_scope": "knowledge",
        "source": "specs",
    }
    kept = record(memory, **ingest)
    assert kept["documents"][0]["outcome"] == "created"
    assert lookup(memory, "timeline")["total"] == 0

    for scope, expected in (("knowledge", True), ("all", True), ("timeline", False)):
        found = recall(memory, "when do tokens expire?", scope=scope, recall_mode="precise")
        assert any("15 minutes" in r["content"] for r in found["results"]) is expected, scope
    got = memory.call("get", id=kept["documents"][0]["id"]).json
    assert got["body"] == spec

    same = record(memory, **ingest)
    assert same["documents"][0]["outcome"] == "unchanged"


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        ("a note", ["a note"]),
        (["one", {"text": "two"}], ["one", "two"]),
        ({"text": "alone"}, ["alone"]),
        ('{"any": "json file"}', ['{"any": "json file"}']),
        ({"a": 1, "b": [2]}, ['{"a":1,"b":[2]}']),
    ],
)
def test_ingest_accepts_a_string_an_array_or_an_object(
    memory: Client, content: Any, texts: list[str]
) -> None:
    record(memory, action="ingest", content=content)
    events = lookup(memory, "timeline")["events"]
    assert sorted(event["content"] for event in events) == sorted(texts)


def test_a_task_is_updated_by_its_id(memory: Client) -> None:
    record(
        memory,
        action="submit_insights",
        content={"action_items": [{"title": "Add rate limiting to login endpoint"}]},
    )
    (task,) = lookup(memory, "tasks")["tasks"]

    done = record(memory, action="update_task", task_id=task["id"], status="completed")

    assert (done["id"], done["status"]) == (task["id"], "completed")
    assert lookup(memory, "tasks")["tasks"] == []
    assert lookup(memory, "tasks", include_completed=True)["total"] == 1
    message = refusal(
        memory, "awareness_record", action="update_task", task_id="task_no", status="completed"
    )
    assert "task_no" in message
    message = refusal(
        memory, "awareness_record", action="update_task", task_id=task["id"], status="banana"
    )
    assert message == "status: must be one of pending, in_progress, completed"


def test_a_text_about_finished_work_does_not_complete_a_task(memory: Client) -> None:
    record(
        memory, action="submit_insights", content={"action_items": [{"title": "Write load tests"}]}
    )
    record(memory, action="remember", text="We abandoned nothing; the load tests are done, almost")
    (task,) = lookup(memory, "tasks")["tasks"]
    assert task["status"] == "pending"

    named = {"completed_tasks": [{"task_id": task["id"], "reason": "They run in CI."}]}
    assert record(memory, action="submit_insights", content=named)["tasks_completed"] == 1
    assert lookup(memory, "tasks", status="done")["tasks"][0]["id"] == task["id"]


def test_a_history_with_one_invalid_entry_stores_nothing(
    memory: Client,
) -> None:
    history = [{"role": "user", "content": f"turn {n} of the talk"} for n in range(700)]
    history[650]["content"] = "too long " * 200_000

    message = refusal(memory, "awareness_record", action="backfill", history=history)

    assert message.startswith("history[650]: ")
    assert lookup(memory, "timeline")["events"] == []

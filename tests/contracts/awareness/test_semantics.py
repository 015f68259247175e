"""Open work, preferences, shared cards, profiles, installed skills and questions about a time."""

from datetime import UTC, datetime, timedelta
from typing import Any

from tests.contracts.awareness.calls import lookup, recall, record, wait_for_vectors
from tests.contracts.client import Client, Home, connect
from tests.contracts.tables.awareness import STEPS

TODO = "Add rate limiting to login endpoint"


def titles(entries: list[dict[str, Any]]) -> list[str]:
    return [entry["title"] for entry in entries]


def open_work(client: Client) -> dict[str, list[str]]:
    """The titles of open tasks in each place that shows them."""
    return {
        "init": titles(client.call("awareness_init").json["context"]["open_tasks"]),
        "lookup": titles(lookup(client, "tasks")["tasks"]),
        "handoff": titles(lookup(client, "handoff")["open_tasks"]),
        "recall": titles(recall(client, "login")["open_tasks"]),
    }


def test_an_open_event_is_a_task_everywhere_until_it_is_resolved(memory: Client) -> None:
    record(memory, action="remember_batch", steps=list(STEPS))
    record(memory, action="remember", text="BLOCKED: the certificate of the mail host expired")
    expected = ["the certificate of the mail host expired", TODO]
    assert open_work(memory) == dict.fromkeys(("init", "lookup", "handoff", "recall"), expected)
    (day,) = memory.call("awareness_init").json["context"]["recent_days"]
    assert TODO in day["narrative"] and "certificate" in day["narrative"]
    (task,) = (task for task in lookup(memory, "tasks")["tasks"] if task["title"] == TODO)

    begun = record(memory, action="update_task", task_id=task["id"], status="in_progress")
    assert begun["status"] == "in_progress"
    listed = lookup(memory, "tasks")
    assert (listed["total"], listed["in_progress"], listed["pending"]) == (2, 1, 1)
    assert titles(listed["tasks"]) == [TODO, expected[0]]
    assert titles(lookup(memory, "tasks", status="in_progress")["tasks"]) == [TODO]

    record(memory, action="update_task", task_id=task["id"], status="completed")
    left = [expected[0]]
    assert open_work(memory) == dict.fromkeys(("init", "lookup", "handoff", "recall"), left)


def test_an_open_event_and_an_equal_task_are_shown_once_and_closed_together(
    memory: Client,
) -> None:
    record(memory, action="remember_batch", steps=list(STEPS))
    record(memory, action="submit_insights", content={"action_items": [{"title": TODO}]})
    (task,) = lookup(memory, "tasks")["tasks"]
    assert task["id"].startswith("task_") and task["title"] == TODO

    content = {"completed_tasks": [{"task_id": task["id"]}]}
    record(memory, action="submit_insights", content=content)

    assert open_work(memory) == {place: [] for place in open_work(memory)}


def test_an_open_event_can_be_reported_as_completed_task(memory: Client) -> None:
    event = record(memory, action="remember", text=f"TODO: {TODO}")["event"]
    content = {"completed_tasks": [{"task_id": event["id"], "reason": "merged"}]}

    done = record(memory, action="submit_insights", content=content)

    assert (done["tasks_completed"], done["skipped"]) == (1, [])
    assert lookup(memory, "tasks")["total"] == 0


def test_other_events_are_no_tasks(memory: Client) -> None:
    event = record(memory, action="remember", text="The TODO app got a dark theme")["event"]
    assert lookup(memory, "tasks")["total"] == 0
    answer = memory.call(
        "awareness_record", action="update_task", task_id=event["id"], status="completed"
    )
    assert answer.is_error and "not found" in answer.text


def test_a_stated_preference_is_available_at_the_next_init(memory: Client) -> None:
    record(memory, action="remember", text="The user prefers pnpm over npm for all projects")
    record(memory, action="remember", text="Fixed the build of the pnpm workspace")

    (card,) = memory.call("awareness_init").json["context"]["knowledge_cards"]
    assert (card["category"], card["summary"]) == (
        "personal_preference",
        "The user prefers pnpm over npm for all projects",
    )

    insight = {
        "category": "personal_preference",
        "title": "Package manager",
        "summary": "Use pnpm, not npm.",
        "evidence": [{"snippet": "The user prefers pnpm over npm"}],
    }
    record(memory, action="submit_insights", content={"knowledge_cards": [insight]})
    (card,) = memory.call("awareness_init").json["context"]["knowledge_cards"]
    assert card["title"] == "Package manager"


def test_init_for_a_user_keeps_what_belongs_to_no_user(memory: Client) -> None:
    for user in ("", "ana", "ben"):
        card = {"category": "key_point", "title": f"Of {user or 'all'}", "summary": f"x{user}y z"}
        record(memory, action="submit_insights", user_id=user, content={"knowledge_cards": [card]})

    for kind in ("init", "context"):
        seen = (
            memory.call("awareness_init", user_id="ana").json["context"]
            if kind == "init"
            else lookup(memory, "context", user_id="ana")
        )
        assert set(titles(seen["knowledge_cards"])) == {"Of all", "Of ana"}, kind


def test_a_handoff_names_the_risks(memory: Client) -> None:
    risk = {"title": "Disk fills up", "level": "high", "mitigation": "alert at 80 %"}
    record(memory, action="submit_insights", content={"risks": [risk]})
    assert lookup(memory, "handoff")["risks"] == [risk]


def test_profiles_are_listed_created_changed_and_deleted(memory: Client) -> None:
    def send(**entry: Any) -> Any:
        return record(memory, action="submit_insights", content={"agent_profiles": [entry]})

    def stored() -> list[dict[str, Any]]:
        listed = lookup(memory, "context")["agent_profiles"]
        assert listed == memory.call("awareness_init").json["agent_profiles"]
        return [each for each in listed if each.get("origin") == "stored"]

    assert send(agent_role="chef", when_to_use="Before dinner.", identity="You cook.")[
        "profiles_stored"
    ]
    assert [each["agent_role"] for each in stored()] == ["chef"]

    send(agent_role="chef", title="Head Chef")
    prompt = memory.call("awareness_get_agent_prompt", agent_role="chef").json
    assert prompt["title"] == "Head Chef" and "You cook." in prompt["system_prompt"]

    assert send(agent_role="chef", delete=True)["profiles_deleted"] == 1
    assert stored() == []
    again = send(agent_role="chef", delete=True)
    assert again["skipped"][0]["reason"] == "agent_role: no stored profile 'chef' in this memory"
    built_in = send(agent_role="reviewer_agent", delete=True)
    assert "is a built-in role" in built_in["skipped"][0]["reason"]
    assert send(agent_role="x", delete="yes")["skipped"][0]["reason"].startswith("delete:")


def test_skills_of_installed_memories_are_delivered() -> None:
    home = Home({"RECALLD_SKILL_BANKS": "team, absent"})
    try:
        client = connect(home, "embedded")
        for bank, title in (("team", "Release"), ("other", "Bake"), ("", "Own")):
            skill = {"title": title, "summary": f"How to {title}", "methods": ["one"]}
            record(client, action="submit_insights", memory_id=bank, content={"skills": [skill]})
        skills = client.call("awareness_init").json["active_skills"]
        assert [(skill["title"], skill.get("memory_id")) for skill in skills] == [
            ("Own", None),
            ("Release", "team"),
        ]
        client.close()
    finally:
        home.close()


def test_evidence_that_no_event_contains_never_verifies_a_card(memory: Client) -> None:
    for session in ("monday", "tuesday"):
        card = {
            "category": "key_point",
            "title": "Moon",
            "summary": "The moon is made of cheese.",
            "evidence": [{"snippet": f"seen with our own eyes on {session}"}],
        }
        record(
            memory,
            action="submit_insights",
            session_id=session,
            content={"knowledge_cards": [card]},
        )
    (card,) = lookup(memory, "knowledge")["cards"]
    assert (card["evidence_count"], card["verified"]) == (2, False)


def test_what_happened_last_week_returns_the_events_of_last_week_first(memory: Client) -> None:
    now = datetime.now(UTC)
    monday = (now - timedelta(days=now.weekday() + 7)).replace(hour=9, minute=0)
    history = [
        {"text": "Chose the queue library", "timestamp": (monday - timedelta(days=3)).isoformat()},
        {"text": "Moved the cache to Redis", "timestamp": monday.isoformat()},
        {"text": "The build broke on ARM", "timestamp": (monday + timedelta(days=2)).isoformat()},
        {"text": "Talked about last week", "timestamp": now.isoformat()},
        {"text": "What happened? Nothing", "timestamp": now.isoformat()},
    ]
    record(memory, action="backfill", history=history, generate_summary=False)
    wait_for_vectors(memory)

    found = recall(memory, "What happened last week?", scope="timeline")["results"]

    assert [each["content"] for each in found[:2]] == [
        "The build broke on ARM",
        "Moved the cache to Redis",
    ]


def test_no_text_is_shown_three_times(memory: Client) -> None:
    session = "aw-cursor-20261116044001-3f9a1c52d07b"
    record(memory, action="remember_batch", session_id=session, steps=list(STEPS))
    wait_for_vectors(memory)

    found = recall(memory, "Chose bcrypt over argon2 for password hashing", limit=30)

    chosen = [each for each in found["results"] if "bcrypt" in each["content"]]
    assert len(chosen) == 1
    assert "narrative" not in {each["metadata"]["kind"] for each in found["results"]}


def test_a_session_summary_is_not_found_by_its_session_id(memory: Client) -> None:
    session = "aw-cursor-20261116044001-3f9a1c52d07b"
    record(memory, action="remember_batch", session_id=session, steps=list(STEPS))
    found = recall(memory, "aw-cursor-20261116044001", scope="insights", recall_mode="precise")
    assert found["results"] == []
    (last,) = memory.call("awareness_init").json["context"]["last_sessions"]
    assert last["session_id"] == session

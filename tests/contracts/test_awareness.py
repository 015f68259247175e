"""Awareness's promises beyond the tables: examples, workflows, modes, filters (seed 002)."""

import json
import time
from typing import Any

import pytest

from tests.contracts.awareness import (
    BAD_EXAMPLES,
    CATEGORIES,
    END_MARKER,
    GOOD_EXAMPLES,
    IDES,
    LOOKUP_TYPES,
    RECALL_MODES,
    START_MARKER,
    STEPS,
)
from tests.contracts.conftest import connect
from tests.contracts.wire import REVISIONS, Client, Home


@pytest.fixture
def memory(daemon: Home) -> Any:
    """A client on the socket whose default memory is new."""
    client = connect(daemon, "unix")
    yield client
    client.close()


def record(client: Client, **arguments: Any) -> Any:
    answer = client.call("awareness_record", **arguments)
    assert not answer.is_error, answer
    return answer.json


def lookup(client: Client, type: str, **arguments: Any) -> Any:
    answer = client.call("awareness_lookup", type=type, **arguments)
    assert not answer.is_error, answer
    return answer.json


def recall(client: Client, question: str, **arguments: Any) -> Any:
    answer = client.call("awareness_recall", semantic_query=question, **arguments)
    assert not answer.is_error, answer
    return answer.json


def settle(client: Client) -> None:
    """Wait until what was written has its vectors: until then scores may still move."""
    deadline = time.monotonic() + 20
    while "degraded" in recall(client, "anything"):
        assert time.monotonic() < deadline, "the vectors never came"


def timeless(value: Any) -> Any:
    """An answer without what passing time changes: when it was made, and how fresh things are."""
    if isinstance(value, list):
        return [timeless(member) for member in value]
    if isinstance(value, dict):
        return {
            name: timeless(member)
            for name, member in value.items()
            if name not in ("generated_at", "score", "session_id")
        }
    return value


def said_no(client: Client, tool: str, **arguments: Any) -> str:
    answer = client.call(tool, **arguments)
    assert answer.is_error and answer.result is not None, answer
    assert answer.result["structuredContent"] == json.loads(answer.text)
    return str(json.loads(answer.text)["error"])


# --- workflows --------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_five_steps_of_the_workflow_end_to_end(daemon: Home, revision: str) -> None:
    client = connect(daemon, "bridged", revision)
    try:
        # 1. awareness_init(source="claude-code")
        begun = client.call("awareness_init", source="claude-code").json
        session = begun["session_id"]
        assert begun["context"]["recent_days"] == []

        # 2. awareness_recall(semantic_query=..., keyword_query=...): nothing yet, and no error
        nothing = recall(
            client,
            "authentication bug in login flow, JWT token handling, session management, and OAuth",
            keyword_query="auth.py JWT session_cookies OAuth2 login",
        )
        assert nothing["results"] == []

        # 3. awareness_record(action="remember", text=...)
        kept = record(client, action="remember", text=GOOD_EXAMPLES[0], session_id=session)
        assert kept["event"]["content"] == GOOD_EXAMPLES[0]
        assert kept["event"]["session_id"] == session
        assert kept["result"]["written"] == 1

        # 4. If _extraction_instruction returned: process, submit_insights
        assert "submit_insights" in kept["_extraction_instruction"]
        submitted = record(
            client,
            action="submit_insights",
            session_id=session,
            content={
                "knowledge_cards": [
                    {
                        "category": "decision",
                        "title": "Session cookies instead of JWT",
                        "summary": "Auth uses session cookies because refreshing is simpler.",
                        "evidence": [{"snippet": "Switched auth from JWT to session cookies"}],
                    }
                ]
            },
        )
        assert submitted["cards_created"] == 1

        # 5. awareness_record(action="remember_batch", steps=[...])
        batch = record(client, action="remember_batch", steps=list(STEPS), session_id=session)
        assert batch["accepted_steps"] == 4
        assert batch["summary"]

        again = client.call("awareness_init", source="claude-code").json
        assert again["session_id"] != session
        assert again["context"]["recent_days"][0]["count"] == 5
        assert [c["title"] for c in again["context"]["knowledge_cards"]] == [
            "Session cookies instead of JWT"
        ]
        found = recall(client, "why did we leave JWT?", keyword_query="JWT cookies")
        assert any(r["content"] == GOOD_EXAMPLES[0] for r in found["results"])
        assert [c["title"] for c in found["verified_cards"]] == ["Session cookies instead of JWT"]
    finally:
        client.close()


@pytest.mark.parametrize("revision", REVISIONS)
def test_spawning_a_sub_agent_end_to_end(daemon: Home, revision: str) -> None:
    client = connect(daemon, "unix", revision)
    try:
        profiles = client.call("awareness_init").json["agent_profiles"]
        assert all(set(each) == {"agent_role", "title", "when_to_use"} for each in profiles)
        roles = [each["agent_role"] for each in profiles]
        assert {"developer_agent", "reviewer_agent"} <= set(roles)

        prompt = client.call("awareness_get_agent_prompt", agent_role="developer_agent").json
        assert prompt["activation_prompt"].startswith("# Developer Agent\n")
        assert "\n## Memory Integration\n" in prompt["activation_prompt"]
        assert 'agent_role="developer_agent"' in prompt["activation_prompt"]

        record(
            client, action="remember", text="Parser rewritten by hand", agent_role="developer_agent"
        )
        record(client, action="remember", text="Parser reviewed twice", agent_role="reviewer_agent")
        mine = recall(client, "parser", agent_role="developer_agent", recall_mode="precise")
        assert [r["content"] for r in mine["results"]] == ["Parser rewritten by hand"]
    finally:
        client.close()


def test_a_memory_survives_its_daemon(tmp_path: Any) -> None:
    home = Home()
    try:
        first = connect(home, "embedded", bank="kept")
        session = first.call("awareness_init").json["session_id"]
        record(first, action="remember", text=GOOD_EXAMPLES[1], session_id=session)
        first.close()

        second = connect(home, "embedded", bank="kept")
        history = lookup(second, "session_history", session_id=session)
        second.close()
        assert [event["content"] for event in history["events"]] == [GOOD_EXAMPLES[1]]
    finally:
        home.close()


# --- awareness_init ---------------------------------------------------------------------------


@pytest.mark.parametrize(("source", "ide", "rules_file", "strategy"), IDES)
def test_every_recognised_source_gets_the_rules_of_its_ide(
    memory: Client, source: str, ide: str, rules_file: str, strategy: str
) -> None:
    rules = memory.call("awareness_init", source=source).json["setup_hints"]["ide_rules"]

    assert (rules["ide"], rules["rules_file"], rules["strategy"]) == (ide, rules_file, strategy)
    assert (rules["start_marker"], rules["end_marker"]) == (START_MARKER, END_MARKER)
    assert rules["conflict_policy"] == "error_on_invalid_markers"
    assert rules["instruction"].startswith(f"Sync the Awareness managed block in '{rules_file}'")
    content = rules["rules_content"]
    assert content.count(START_MARKER) == content.count(END_MARKER) == 1
    assert content.endswith(END_MARKER + "\n")
    assert content.startswith("---\n" if strategy == "managed_file" else START_MARKER)
    for tool in ("awareness_init", "awareness_recall", "awareness_record", "awareness_lookup"):
        assert tool in content
    assert f'awareness_init(source="{ide}")' in content


@pytest.mark.parametrize("source", ["", "emacs", "my claude clone"])
def test_an_unknown_source_gets_no_hints(memory: Client, source: str) -> None:
    assert "setup_hints" not in memory.call("awareness_init", source=source).json


@pytest.mark.parametrize("capabilities", ["", "file_write,local_dir", "none"])
def test_capabilities_are_advisory(memory: Client, capabilities: str) -> None:
    begun = memory.call("awareness_init", source="cursor", client_capabilities=capabilities).json
    assert begun["setup_hints"]["ide_rules"]["ide"] == "cursor"


def test_init_limits_what_it_tells(memory: Client) -> None:
    insights = {
        "knowledge_cards": [
            {"category": "key_point", "title": f"Fact {w}", "summary": f"About {w} alone"}
            for w in ("apples", "bridges", "clouds")
        ],
        "action_items": [{"title": f"Paint {w}"} for w in ("doors", "walls", "floors")],
    }
    record(memory, action="submit_insights", content=insights)
    record(memory, action="remember", text="An old thing", metadata={"a": 1})

    few = memory.call("awareness_init", max_cards=1, max_tasks=2).json["context"]
    assert (len(few["knowledge_cards"]), len(few["open_tasks"])) == (1, 2)
    none = memory.call("awareness_init", max_cards=0, max_tasks=0).json["context"]
    assert (none["knowledge_cards"], none["open_tasks"]) == ([], [])


def test_days_look_back_and_no_further(memory: Client) -> None:
    now = memory.call("awareness_init").json["context"]["generated_at"]
    old = f"{int(now[:4]) - 1}{now[4:]}"
    record(
        memory,
        action="backfill",
        history=[{"text": "Long ago", "timestamp": old}, {"text": "Just now", "timestamp": now}],
    )

    days = memory.call("awareness_init", days=90).json["context"]["recent_days"]

    assert [(day["date"], day["narrative"], day["count"]) for day in days] == [
        (now[:10], "Just now.", 1)
    ]


def test_skills_come_with_the_session_and_without_a_search(memory: Client) -> None:
    skill = {
        "category": "skill",
        "title": "Release",
        "summary": "Release only from a green main.",
        "methods": ["run the checks", {"step": 2, "description": "tag"}, "push"],
    }
    assert "active_skills" not in memory.call("awareness_init").json
    record(memory, action="submit_insights", content={"knowledge_cards": [skill]})

    (active,) = memory.call("awareness_init").json["active_skills"]

    assert active == {
        "title": "Release",
        "summary": "Release only from a green main.",
        "methods": ["run the checks", "tag", "push"],
    }


# --- awareness_get_agent_prompt ---------------------------------------------------------------


def test_the_three_documented_errors_of_agent_prompts(memory: Client) -> None:
    tool = "awareness_get_agent_prompt"
    begun = memory.call("awareness_init").json
    assert said_no(memory, tool, agent_role="") == "agent_role is required."
    assert (
        said_no(memory, tool, agent_role="chef")
        == f"Agent role 'chef' not found in memory {begun['memory_id']}."
    )
    home = Home({"RECALLD_API_KEY": "aw_secret"})
    try:
        locked = connect(home, "embedded")
        for wrong in ({}, {"api_key": ""}, {"api_key": "aw_wrong"}):
            told = said_no(locked, tool, agent_role="developer_agent", **wrong)
            assert told.startswith("Authentication required")
        right = locked.call(tool, agent_role="developer_agent", api_key="aw_secret")
        assert not right.is_error
        locked.close()
    finally:
        home.close()


def test_a_memory_may_have_roles_of_its_own(memory: Client) -> None:
    profile = {
        "agent_role": "chef",
        "when_to_use": "Before dinner.",
        "identity": "You cook.",
        "critical_rules": ["Taste everything."],
    }
    record(memory, action="submit_insights", content={"agent_profiles": [profile]})

    listed = memory.call("awareness_init").json["agent_profiles"]
    prompt = memory.call("awareness_get_agent_prompt", agent_role="chef").json

    chef = {"agent_role": "chef", "title": "Chef", "when_to_use": "Before dinner."}
    assert chef in listed
    assert prompt["activation_prompt"].startswith("# Chef\n\nYou cook.")
    assert "Taste everything." in prompt["system_prompt"]


# --- awareness_record -------------------------------------------------------------------------


@pytest.mark.parametrize("text", GOOD_EXAMPLES)
def test_the_good_examples_are_worth_extracting_from(memory: Client, text: str) -> None:
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
def test_the_bad_examples_are_kept_all_the_same(memory: Client, text: str) -> None:
    kept = record(memory, action="remember", text=text)

    assert kept["result"]["written"] == 1
    assert "_extraction_instruction" not in kept
    assert [event["content"] for event in lookup(memory, "timeline")["events"]] == [text]


def test_the_documented_batch_has_the_documented_statuses(memory: Client) -> None:
    kept = record(memory, action="remember_batch", steps=list(STEPS))

    assert [step["status"] for step in kept["events"]] == ["resolved", "noted", "noted", "open"]
    opened = lookup(memory, "timeline", status="open")
    assert [event["content"] for event in opened["events"]] == [STEPS[3]["text"]]


def test_steps_that_cannot_be_kept_are_listed_with_their_reason(memory: Client) -> None:
    kept = record(memory, action="remember_batch", steps=["one", 2, {"text": ""}, {"note": "x"}])

    assert kept["accepted_steps"] == 1
    assert kept["result"]["failed"] == 3
    assert {tuple(s["indexes"]): s["reason"] for s in kept["skipped"]} == {
        (1,): "neither a text nor an object",
        (2, 3): "no text under text, content, message, body, output, input",
    }


def test_steps_may_be_json_text_and_keep_what_has_no_field(memory: Client) -> None:
    steps = json.dumps([{"text": "Built", "role": "tool", "branch": "main"}])
    record(memory, action="remember_batch", steps=steps, metadata_defaults={"team": "core"})

    (event,) = lookup(memory, "timeline")["events"]
    assert (event["actor"], event["metadata"]) == ("tool", {"team": "core", "branch": "main"})


def test_a_payload_that_the_action_does_not_use_is_not_dropped(memory: Client) -> None:
    told = said_no(memory, "awareness_record", action="remember", text="a", steps=[{"text": "b"}])
    assert told.startswith("steps: ")
    assert lookup(memory, "timeline")["total"] == 0


def test_backfill_reads_transcripts_and_stops_at_its_cap(memory: Client) -> None:
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
def test_backfill_reads_the_shapes_histories_come_in(memory: Client, history: Any) -> None:
    record(memory, action="backfill", history=history)
    (event,) = lookup(memory, "timeline")["events"]
    assert (event["actor"], event["content"]) == ("user", "hello there")


def test_a_long_import_says_how_far_it_is(memory: Client) -> None:
    memory.send(
        {
            "jsonrpc": "2.0",
            "id": "long",
            "method": "tools/call",
            "params": {
                "name": "awareness_record",
                "arguments": {"action": "backfill", "history": [f"turn {i}" for i in range(500)]},
                "_meta": {"progressToken": "p"},
            },
        }
    )
    steps: list[float] = []
    while (message := json.loads(memory.line())).get("id") != "long":
        assert message["method"] == "notifications/progress"
        assert message["params"]["progressToken"] == "p"
        assert message["params"]["total"] == 500
        steps.append(message["params"]["progress"])
    assert len(steps) >= 2 and steps == sorted(steps)


def test_ingested_knowledge_is_a_document_and_not_a_timeline_event(memory: Client) -> None:
    spec = "# Auth spec\n\nTokens expire after 15 minutes.\n\n## Refresh\n\nRefresh needs a cookie."
    kept = record(
        memory,
        action="ingest",
        content={"title": "Auth spec", "text": spec, "id": "spec-1"},
        content_scope="knowledge",
        source="specs",
    )
    assert kept["documents"][0]["outcome"] == "created"
    assert lookup(memory, "timeline")["total"] == 0

    for scope, expected in (("knowledge", True), ("all", True), ("timeline", False)):
        found = recall(memory, "when do tokens expire?", scope=scope, recall_mode="precise")
        assert any("15 minutes" in r["content"] for r in found["results"]) is expected, scope
    got = memory.call("get", id=kept["documents"][0]["id"]).json
    assert got["body"] == spec

    same = record(
        memory,
        action="ingest",
        content={"title": "Auth spec", "text": spec, "id": "spec-1"},
        content_scope="knowledge",
        source="specs",
    )
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
def test_ingest_takes_a_string_an_array_or_an_object(
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
    told = said_no(
        memory, "awareness_record", action="update_task", task_id="task_no", status="completed"
    )
    assert "task_no" in told
    told = said_no(
        memory, "awareness_record", action="update_task", task_id=task["id"], status="banana"
    )
    assert told == "status: must be one of pending, in_progress, completed"


@pytest.mark.parametrize("category", CATEGORIES)
def test_every_category_is_kept_and_can_be_asked_for(memory: Client, category: str) -> None:
    card = {"category": category, "title": "A thing", "summary": f"Something about {category}."}
    record(memory, action="submit_insights", content={"knowledge_cards": [card]})

    found = lookup(memory, "knowledge", category=category)

    assert [(c["category"], c["title"]) for c in found["cards"]] == [(category, "A thing")]


def test_insights_are_deduplicated_and_superseded_with_history(memory: Client) -> None:
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


def test_a_card_may_name_the_one_it_replaces(memory: Client) -> None:
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


def test_only_what_was_really_said_verifies_a_card(memory: Client) -> None:
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
def test_insights_may_come_in_any_wrapping(memory: Client, wrap: Any) -> None:
    insights = {"risks": [{"title": "Disk fills up", "level": "critical", "mitigation": "Alerts"}]}
    sent = record(memory, action="submit_insights", **wrap(insights))

    assert sent["risks_created"] == 1
    (risk,) = lookup(memory, "risks", level="high")["risks"]
    assert (risk["title"], risk["mitigation"], risk["status"]) == (
        "Disk fills up",
        "Alerts",
        "active",
    )


def test_what_insights_cannot_hold_is_said_and_the_rest_is_kept(memory: Client) -> None:
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


def test_a_text_about_finished_work_closes_no_task(memory: Client) -> None:
    record(
        memory, action="submit_insights", content={"action_items": [{"title": "Write load tests"}]}
    )
    record(memory, action="remember", text="We abandoned nothing; the load tests are done, almost")
    (task,) = lookup(memory, "tasks")["tasks"]
    assert task["status"] == "pending"

    named = {"completed_tasks": [{"task_id": task["id"], "reason": "They run in CI."}]}
    assert record(memory, action="submit_insights", content=named)["tasks_completed"] == 1
    assert lookup(memory, "tasks", status="done")["tasks"][0]["id"] == task["id"]


# --- awareness_recall -------------------------------------------------------------------------


def tell_a_story(client: Client) -> None:
    record(
        client,
        action="remember_batch",
        session_id="monday",
        steps=[
            "Decision: the cache lives in Redis because workers share it.",
            "The weather was mentioned in passing.",
            "Ran the benchmark: cache hits 97 percent.",
        ],
    )
    record(
        client,
        action="ingest",
        content_scope="knowledge",
        content={"title": "Cache manual", "text": "# Cache\n\nEviction is LRU with 1 GB of room."},
    )
    record(
        client,
        action="submit_insights",
        session_id="monday",
        content={
            "knowledge_cards": [
                {
                    "category": "decision",
                    "title": "Cache in Redis",
                    "summary": "The cache is Redis, shared by all workers.",
                    "confidence": 0.9,
                    "evidence": ["the cache lives in Redis"],
                }
            ],
            "action_items": [{"title": "Monitor cache evictions"}],
        },
    )


def test_the_five_modes_really_differ(memory: Client) -> None:
    tell_a_story(memory)
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


def test_auto_adds_structure_only_when_the_answers_are_weak(memory: Client) -> None:
    tell_a_story(memory)

    weak = recall(memory, "zzzqqqxxyy", recall_mode="auto")
    assert weak["supplemented"] and "open_tasks" in weak
    strong = recall(
        memory, "Decision: the cache lives in Redis because workers share it.", recall_mode="auto"
    )
    assert "supplemented" not in strong and "open_tasks" not in strong


def test_scopes_search_their_own_layer(memory: Client) -> None:
    tell_a_story(memory)
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
    assert kinds["all"] >= {"event", "chunk", "narrative", "card", "task"}


def test_multi_level_and_cluster_expand_add_context(memory: Client) -> None:
    tell_a_story(memory)
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


def test_filters_hold_before_the_limit(memory: Client) -> None:
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


def test_a_confidence_threshold_leaves_out_unsure_cards(memory: Client) -> None:
    cards = [
        {"category": "insight", "title": f"Queue {word}", "summary": word, "confidence": sure}
        for word, sure in (("batching", 0.9), ("priorities", 0.3))
    ]
    record(memory, action="submit_insights", content={"knowledge_cards": cards})

    for mode in ("structured", "hybrid"):
        found = recall(memory, "queue", recall_mode=mode, confidence_threshold=0.5)
        assert [card["title"] for card in found["unverified_cards"]] == ["Queue batching"]


def test_keywords_are_taken_from_the_question_when_none_are_given(memory: Client) -> None:
    question = "authentication bug in auth.py, JWT and session_cookies"
    found = recall(memory, question)
    assert set(found["keyword_query"].split()) >= {"auth.py", "JWT", "session_cookies"}
    assert recall(memory, question, keyword_query="OAuth2")["keyword_query"] == "OAuth2"


def test_a_question_about_nothing_gets_no_results(memory: Client) -> None:
    tell_a_story(memory)
    assert recall(memory, "zzzqqqxxyy", recall_mode="precise")["results"] == []


def test_more_than_the_most_is_the_most(memory: Client) -> None:
    record(memory, action="remember_batch", steps=[f"cache fact number {i}" for i in range(40)])
    assert len(recall(memory, "cache fact", limit=1000, recall_mode="precise")["results"]) == 30


# --- awareness_lookup -------------------------------------------------------------------------


@pytest.mark.parametrize("type", [t for t in LOOKUP_TYPES if t != "session_history"])
def test_every_type_of_lookup_works_on_an_empty_memory(memory: Client, type: str) -> None:
    assert lookup(memory, type)["memory_id"]


def test_session_history_needs_a_session(memory: Client) -> None:
    told = said_no(memory, "awareness_lookup", type="session_history")
    assert told == "session_id: is required for type='session_history'"


def test_an_unknown_memory_is_an_error_and_not_an_empty_answer(memory: Client) -> None:
    for tool, arguments in (
        ("awareness_lookup", {"type": "tasks"}),
        ("awareness_recall", {"semantic_query": "x"}),
    ):
        told = said_no(memory, tool, memory_id="mem_misspelt", **arguments)
        assert told == "Memory 'mem_misspelt' not found."


def test_knowledge_is_filtered_by_words_before_it_is_cut(memory: Client) -> None:
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
    tell_a_story(memory)
    briefing = lookup(memory, "handoff", query="the cache work")

    assert briefing["briefing_for"] == "the cache work"
    assert briefing["recent_progress"][0][:3] == "202"
    assert [task["title"] for task in briefing["open_tasks"]] == ["Monitor cache evictions"]
    assert [card["title"] for card in briefing["key_knowledge"]] == ["Cache in Redis"]
    assert 100 <= briefing["token_estimate"] < 1000


@pytest.mark.parametrize("type", ["tasks", "knowledge", "risks", "timeline", "session_history"])
def test_a_walk_through_the_pages_meets_everything_once(memory: Client, type: str) -> None:
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


# --- one memory, four doors -------------------------------------------------------------------


def test_what_the_other_doors_keep_is_found_here_and_back(memory: Client) -> None:
    bank = memory.call("awareness_init").json["memory_id"]
    memory.call("hindsight_put", bank_id=bank, content="Ana plays the oboe", context="hobbies")
    record(memory, action="remember", text="Ben plays the bassoon")

    here = recall(memory, "who plays the oboe?", recall_mode="precise", limit=1)
    there = memory.call("hindsight_search", bank_id=bank, query="who plays the bassoon?").json

    (result,) = here["results"]
    assert (result["content"], result["metadata"]["dialect"]) == ("Ana plays the oboe", "hindsight")
    assert any(fact["text"] == "Ben plays the bassoon" for fact in there["results"])
    contents = {event["content"] for event in lookup(memory, "timeline")["events"]}
    assert contents == {"Ana plays the oboe", "Ben plays the bassoon"}


def test_memories_do_not_leak_into_each_other(daemon: Home) -> None:
    one, other = connect(daemon, "unix"), connect(daemon, "unix")
    try:
        tell_a_story(one)
        settle(one)
        alone = [timeless(recall(one, "cache", recall_mode=mode)) for mode in RECALL_MODES]
        for i in range(50):
            record(other, action="remember", text=f"Decision: the cache lives in Redis {i}.")
        tell_a_story(other)
        beside = [timeless(recall(one, "cache", recall_mode=mode)) for mode in RECALL_MODES]
        assert alone == beside
    finally:
        one.close()
        other.close()


@pytest.mark.parametrize(
    ("tool", "arguments", "defaults"),
    [
        (
            "awareness_recall",
            {"semantic_query": "cache"},
            {
                "keyword_query": "",
                "memory_id": "",
                "scope": "all",
                "limit": 6,
                "recall_mode": "hybrid",
                "confidence_threshold": None,
                "user_id": "",
                "agent_role": "",
                "session_id": "",
                "multi_level": False,
                "cluster_expand": False,
                "metadata_filter": None,
            },
        ),
        (
            "awareness_lookup",
            {"type": "tasks"},
            {
                "memory_id": "",
                "days": 7,
                "max_cards": 20,
                "max_tasks": 20,
                "query": "",
                "category": "",
                "status": "",
                "priority": "",
                "include_completed": False,
                "level": "",
                "session_id": "",
                "limit": 50,
                "offset": 0,
                "user_id": "",
                "agent_role": "",
            },
        ),
        (
            "awareness_init",
            {},
            {
                "memory_id": "",
                "source": "",
                "days": 7,
                "max_cards": 20,
                "max_tasks": 20,
                "user_id": "",
                "agent_role": "",
                "client_capabilities": "",
            },
        ),
    ],
)
def test_an_absent_argument_means_its_documented_default(
    memory: Client, tool: str, arguments: dict[str, Any], defaults: dict[str, Any]
) -> None:
    tell_a_story(memory)

    def answer(**given: Any) -> Any:
        return timeless(memory.call(tool, **arguments, **given).json)

    settle(memory)
    absent = answer()
    for name, default in defaults.items():
        assert answer(**{name: default}) == absent, name
    assert answer(**defaults) == absent

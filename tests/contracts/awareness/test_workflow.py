"""Awareness end to end: the documented workflow, sub-agents, restarts and other dialects."""

from typing import Any

import pytest

from tests.contracts.awareness.calls import (
    lookup,
    recall,
    record,
    store_sample_memories,
    wait_for_vectors,
    without_timestamps,
)
from tests.contracts.client import REVISIONS, Client, Home, connect
from tests.contracts.tables.awareness import GOOD_EXAMPLES, RECALL_MODES, STEPS


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


def test_a_memory_survives_a_restart_of_the_server(tmp_path: Any) -> None:
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


def test_awareness_and_hindsight_find_each_others_memories(memory: Client) -> None:
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


def test_results_of_one_memory_do_not_depend_on_another(daemon: Home) -> None:
    one, other = connect(daemon, "unix"), connect(daemon, "unix")
    try:
        store_sample_memories(one)
        wait_for_vectors(one)
        alone = [
            without_timestamps(recall(one, "cache", recall_mode=mode)) for mode in RECALL_MODES
        ]
        for i in range(50):
            record(other, action="remember", text=f"Decision: the cache lives in Redis {i}.")
        store_sample_memories(other)
        beside = [
            without_timestamps(recall(one, "cache", recall_mode=mode)) for mode in RECALL_MODES
        ]
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
    store_sample_memories(memory)

    def answer(**given: Any) -> Any:
        return without_timestamps(memory.call(tool, **arguments, **given).json)

    wait_for_vectors(memory)
    absent = answer()
    for name, default in defaults.items():
        assert answer(**{name: default}) == absent, name
    assert answer(**defaults) == absent

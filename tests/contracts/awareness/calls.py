"""Awareness as its tests speak it: a call a verb, answers as JSON, and a story to ask about."""

import json
import time
from typing import Any

from tests.contracts.client import Client


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

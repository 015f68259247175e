"""Helpers to call the Awareness tools, and sample memories to search."""

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


def wait_for_vectors(client: Client) -> None:
    """Wait until every stored text has a vector. Until then scores may change."""
    deadline = time.monotonic() + 20
    while "degraded" in recall(client, "anything"):
        assert time.monotonic() < deadline, "the vectors were not computed in 20 s"


def without_timestamps(value: Any) -> Any:
    """Remove the fields that change with time or from call to call."""
    if isinstance(value, list):
        return [without_timestamps(member) for member in value]
    if isinstance(value, dict):
        return {
            name: without_timestamps(member)
            for name, member in value.items()
            if name not in ("generated_at", "score", "session_id")
        }
    return value


def refusal(client: Client, tool: str, **arguments: Any) -> str:
    answer = client.call(tool, **arguments)
    assert answer.is_error and answer.result is not None, answer
    assert answer.result["structuredContent"] == json.loads(answer.text)
    return str(json.loads(answer.text)["error"])


def store_sample_memories(client: Client) -> None:
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

"""The tables of the Claude Recall document (its MCP API reference)."""

import json
from collections.abc import Mapping
from typing import Any, Final

from tests.contracts.client import Answer, Client
from tests.contracts.tables.model import Dialect, Parameter, Tool

PREFIX: Final = "mcp__claude-recall__"

#: The five input schemas, copied verbatim.
SCHEMAS: Final[dict[str, dict[str, Any]]] = {
    "store_memory": {
        "type": "object",
        "properties": {
            "content": {"type": "string", "description": "Memory content to store"},
            "metadata": {"type": "object", "description": "Optional metadata for the memory"},
        },
        "required": ["content"],
    },
    "search": {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "Search query"},
            "limit": {"type": "number", "description": "Maximum number of results", "default": 10},
            "threshold": {
                "type": "number",
                "description": "Minimum similarity score (0-1)",
                "default": 0.7,
            },
        },
        "required": ["query"],
    },
    "retrieve_memory": {
        "type": "object",
        "properties": {
            "id": {"type": "string", "description": "Memory ID to retrieve"},
            "limit": {
                "type": "number",
                "description": "Number of recent memories to retrieve",
                "default": 10,
            },
        },
    },
    "get_stats": {"type": "object", "properties": {}},
    "clear_context": {
        "type": "object",
        "properties": {
            "confirm": {
                "type": "boolean",
                "description": "Confirmation required to clear context",
            }
        },
    },
}

#: "Common Error Codes".
CODES: Final = {
    -32700: "Parse error",
    -32600: "Invalid request",
    -32601: "Method not found",
    -32602: "Invalid params",
    -32603: "Internal error",
    -32000: "Tool not found",
    -32001: "Rate limit exceeded",
    -32002: "Database error",
}

#: "Health Check", Method: health/check.
HEALTH: Final = {
    "status": "string",
    "version": "string",
    "uptime": "integer",
    "memory": "object",
    "memory.heapUsed": "integer",
    "memory.heapTotal": "integer",
    "memory.external": "integer",
    "memory.rss": "integer",
    "sessions": "object",
    "sessions.total": "integer",
    "sessions.active": "integer",
    "toolsRegistered": "integer",
    "database": "string",
    "rateLimiter": "object",
    "rateLimiter.requestsPerMinute": "integer",
    "rateLimiter.currentRequests": "integer",
}


def _prepare(client: Client) -> Mapping[str, Any] | None:
    stored = client.call(f"{PREFIX}store_memory", content="Memory content", metadata={}).json
    assert stored["success"] is True
    return None


def _refusal_message(answer: Answer) -> str:
    """Return the details of the JSON-RPC error object that the result contains as text."""
    assert answer.is_error
    error = json.loads(answer.text)
    assert error["code"] == -32602
    assert error["message"].startswith(CODES[-32602])
    return str(error["data"]["details"])


def _snapshot(client: Client) -> Any:
    stats = client.call(f"{PREFIX}get_stats").json
    del stats["databaseSize"]
    return stats


DIALECT: Final = Dialect(
    name="recall",
    tools=(
        Tool(
            name=f"{PREFIX}store_memory",
            parameters=(
                Parameter("content", "string", required=True, bad=("", " ", "x" * 1_048_577)),
                Parameter("metadata", "object", bad=({"big": "x" * 70_000}, {"n": 2**70})),
            ),
            result={"id": "string", "success": "boolean", "message": "string"},
            arguments={"content": "Memory content", "metadata": {}},
        ),
        Tool(
            name=f"{PREFIX}search",
            parameters=(
                Parameter("query", "string", required=True, bad=("", "  ")),
                Parameter("limit", "number", default=10, bad=(0, -1, 1.5)),
                Parameter("threshold", "number", default=0.7, bad=(-0.1, 1.1)),
            ),
            result={
                "results": "array",
                "results[]": "object",
                "results[].id": "string",
                "results[].content": "string",
                "results[].metadata": "object",
                "results[].timestamp": "string",
                "results[].score": "number",
                "total": "integer",
                "query": "string",
            },
            additional=frozenset({"belowThreshold", "hint"}),
            arguments={"query": "Memory content", "threshold": 0},
            prepare=_prepare,
            read_only=True,
        ),
        Tool(
            name=f"{PREFIX}retrieve_memory",
            parameters=(
                Parameter("id", "string", bad=("",)),
                Parameter("limit", "number", default=10, bad=(0, -1, 2.5)),
            ),
            result={
                "memories": "array",
                "memories[]": "object",
                "memories[].id": "string",
                "memories[].content": "string",
                "memories[].metadata": "object",
                "memories[].timestamp": "string",
                "memories[].sessionId": "string",
                "total": "integer",
            },
            arguments={},
            prepare=_prepare,
            read_only=True,
        ),
        Tool(
            name=f"{PREFIX}get_stats",
            parameters=(),
            result={
                "totalMemories": "integer",
                "sessionMemories": "integer",
                "memoryTypes": "object",
                "lastMemoryTimestamp": "string",
                "sessionStartTime": "string",
                "databaseSize": "string",
            },
            arguments={},
            prepare=_prepare,
            read_only=True,
        ),
        Tool(
            name=f"{PREFIX}clear_context",
            parameters=(Parameter("confirm", "boolean"),),
            result={"success": "boolean", "message": "string", "memoriesCleared": "integer"},
            arguments={"confirm": True},
            prepare=_prepare,
            additional=frozenset({"undo", "hint"}),
        ),
    ),
    refusal_message=_refusal_message,
    snapshot=_snapshot,
)

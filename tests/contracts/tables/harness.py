"""The tables of the Context Harness document (its MCP server page)."""

import json
from collections.abc import Mapping
from typing import Any, Final

from tests.contracts.client import Answer, Client
from tests.contracts.tables.model import Dialect, Parameter, Tool


def _prepare(client: Client) -> Mapping[str, Any] | None:
    stored = client.call("store_memory", content="JWT tokens are signed with authentication keys")
    return {"id": stored.json["id"]}


def _add(client: Client) -> Mapping[str, Any] | None:
    added = client.call("add_document", source_id="docs/old.md", body="an old document")
    return {"id": added.json["id"]}


def _refusal_message(answer: Answer) -> str:
    assert answer.is_error
    error = json.loads(answer.text)["error"]
    assert error["code"] == "bad_request"
    return str(error["message"])


def _snapshot(client: Client) -> Any:
    return client.call("sources").json


DIALECT: Final = Dialect(
    name="harness",
    tools=(
        Tool(
            name="search",
            parameters=(
                Parameter("query", "string", required=True, bad=("", "  ")),
                Parameter(
                    "mode",
                    "string",
                    default="keyword",
                    enum=("keyword", "semantic", "hybrid"),
                    bad=("fuzzy", "KEYWORD", ""),
                ),
                Parameter("limit", "integer", bad=(0, -1, 1.5)),
                Parameter("source", "string", bad=("",)),
            ),
            result={
                "results": "array",
                "results[]": "object",
                "results[].id": "string",
                "results[].source": "string",
                "results[].source_id": "string",
                "results[].title": "string",
                "results[].score": "number",
                "results[].snippet": "string",
                "results[].source_url": "string|null",
            },
            arguments={"query": "authentication", "mode": "hybrid", "limit": 10},
            prepare=lambda client: _prepare(client) and None,
            read_only=True,
        ),
        Tool(
            name="get",
            parameters=(Parameter("id", "string", required=True, bad=("",)),),
            result={
                "id": "string",
                "source": "string",
                "source_id": "string",
                "title": "string",
                "body": "string",
                "source_url": "string|null",
                "updated_at": "string",
            },
            arguments={"id": ""},
            prepare=_prepare,
            read_only=True,
        ),
        Tool(
            name="sources",
            parameters=(),
            result={
                "sources": "array",
                "sources[]": "object",
                "sources[].name": "string",
                "sources[].configured": "boolean",
                "sources[].healthy": "boolean",
                "sources[].doc_count": "integer",
            },
            arguments={},
            prepare=lambda client: _prepare(client) and None,
            additional=frozenset(("last_sync", "last_error", "withheld_deletions")),
            read_only=True,
        ),
        # Not in the document: without them a client of Context Harness alone could store nothing.
        Tool(
            name="add_document",
            parameters=(
                Parameter("source_id", "string", required=True, bad=("",)),
                Parameter("body", "string", required=True, bad=("", "  ")),
                Parameter("source", "string", default="harness", bad=("",)),
                Parameter("title", "string", default=""),
                Parameter("source_url", "string"),
            ),
            result={"id": "string", "outcome": "string", "chunks": "integer"},
            arguments={"source_id": "docs/auth.md", "body": "JWT tokens are signed"},
        ),
        Tool(
            name="remove_document",
            parameters=(Parameter("id", "string", required=True, bad=("",)),),
            result={"id": "string", "removed": "boolean"},
            arguments={"id": ""},
            prepare=_add,
        ),
    ),
    refusal_message=_refusal_message,
    snapshot=_snapshot,
)

"""The tables of recalld's own dialect; docs/dialects.md documents the same."""

import secrets
from collections.abc import Mapping
from typing import Any, Final

from tests.contracts.client import Answer, Client
from tests.contracts.tables.model import Dialect, Parameter, Tool

TEXT: Final = ("", " \t\n", "x" * (1_048_576 + 1))
TAGS: Final = ([1], [None], [""], ["  "], ["x" * 5_000])
MEMORIES: Final = {
    "memories": "array",
    "memories[]": "object",
    "memories[].id": "string",
    "memories[].text": "string",
    "memories[].date": "string",
    "memories[].source": "string",
    "memories[].tags": "array",
    "memories[].tags[]": "string",
}


def _store(client: Client) -> str:
    text = f"The release train leaves on Fridays, {secrets.token_hex(6)}"
    return str(client.call("remember", text=text, tags=["release"]).json["id"])


def _stored(client: Client) -> Mapping[str, Any]:
    _store(client)
    return {}


def _by_id(client: Client) -> Mapping[str, Any]:
    return {"id": _store(client)}


def _by_ids(client: Client) -> Mapping[str, Any]:
    return {"ids": [_store(client)]}


def _refusal_message(answer: Answer) -> str:
    assert answer.is_error
    assert answer.text.startswith("Error: ")
    return answer.text.removeprefix("Error: ")


DIALECT: Final = Dialect(
    name="native",
    tools=(
        Tool(
            name="remember",
            parameters=(
                Parameter("text", "string", required=True, bad=TEXT),
                Parameter("tags", "array", bad=TAGS),
            ),
            result={"id": "string", "bank": "string", "known": "boolean"},
            arguments={"text": "A fact.", "tags": ["tests"]},
        ),
        Tool(
            name="recall",
            parameters=(
                Parameter("query", "string", required=True, bad=("", "  ")),
                Parameter("limit", "integer", default=8, bad=(0, 101)),
                Parameter("tags", "array", bad=([1], [""])),
                Parameter("min_score", "number", default=0.1, bad=(-0.1, 1.1)),
            ),
            result={**MEMORIES, "memories[].score": "number"},
            arguments={"query": "release train", "tags": ["release"]},
            prepare=_stored,
            read_only=True,
        ),
        Tool(
            name="update",
            parameters=(
                Parameter("id", "string", required=True),
                Parameter("text", "string", bad=TEXT),
                Parameter("tags", "array", bad=TAGS),
            ),
            result={
                "id": "string",
                "text": "string",
                "date": "string",
                "source": "string",
                "tags": "array",
                "tags[]": "string",
            },
            arguments={"text": "The release train leaves on Mondays.", "tags": ["release"]},
            prepare=_by_id,
        ),
        Tool(
            name="forget",
            parameters=(
                Parameter("ids", "array", bad=([], [1])),
                Parameter("undo", "string", bad=("both ids and a token",)),
            ),
            result={"forgotten": "integer", "undo": "string", "undo_until": "string"},
            arguments={},
            prepare=_by_ids,
        ),
        Tool(
            name="recent",
            parameters=(
                Parameter("limit", "integer", default=10, bad=(0, 101)),
                Parameter("tags", "array", bad=([1], [""])),
            ),
            result=MEMORIES,
            arguments={"tags": ["release"]},
            prepare=_stored,
            read_only=True,
        ),
    ),
    refusal_message=_refusal_message,
    has_output_schemas=False,
    snapshot=lambda client: client.call("recent", limit=100).text,
)

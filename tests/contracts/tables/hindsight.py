"""The tables of Hindsight's two MCP pages."""

import secrets
from collections.abc import Mapping
from typing import Any, Final

from tests.contracts.client import Answer, Client
from tests.contracts.tables.model import Dialect, Parameter, Tool

#: "hindsight_put", both pages' parameter tables.
PUT: Final = (
    Parameter("bank_id", "string", required=True, bad=("", "x" * 257, "line\nbreak")),
    Parameter("content", "string", required=True, bad=("", " \t\n", "x" * (1_048_576 + 1))),
    Parameter("context", "string", required=True, bad=("", "x" * (1_048_576 + 1))),
    Parameter("explanation", "string"),
)
#: "hindsight_search", both pages' parameter tables.
SEARCH: Final = (
    Parameter("bank_id", "string", required=True, bad=("", "x" * 257, "line\nbreak")),
    Parameter("query", "string", required=True, bad=("", "  ")),
    Parameter("max_tokens", "integer", default=4096, bad=(0, -1)),
    Parameter("explanation", "string"),
)
#: The response of `hindsight_search`, the same on both pages.
RESULT: Final = {
    "results": "array",
    "results[]": "object",
    "results[].id": "string",
    "results[].text": "string",
    "results[].type": "string",
    "results[].context": "string|null",
    "results[].event_date": "string|null",
    "results[].document_id": "string|null",
}
STORED: Final = "Fact stored successfully"
#: (arguments of the put example, arguments of the search example)
EXAMPLES: Final = (
    (
        {
            "content": "User prefers Python over JavaScript for backend development",
            "context": "programming_preferences",
        },
        {"query": "What are the user's programming language preferences?"},
    ),
    (
        {
            "content": "User works at Google as a software engineer",
            "context": "work_history",
        },
        {"query": "What does the user do for work?"},
    ),
    (
        {"content": "User prefers Python for data analysis", "context": "programming_preferences"},
        {"query": "What are the user's programming language preferences?"},
    ),
)
UNKNOWN_BANK: Final = ("unknown-bank", "Error: Memory bank 'unknown-bank' not found")


def _prepare(client: Client) -> Mapping[str, Any]:
    bank = f"user_{secrets.token_hex(6)}"
    put, _ = EXAMPLES[0]
    assert client.call("hindsight_put", bank_id=bank, **put).text == STORED
    return {"bank_id": bank}


def _refusal_message(answer: Answer) -> str:
    assert answer.is_error
    assert answer.text.startswith("Error: ")
    return answer.text.removeprefix("Error: ")


def _snapshot(client: Client) -> Any:
    """Search the bank of the examples and a bank that must not exist."""
    return [
        client.call("hindsight_search", bank_id=bank, query="anything at all").text
        for bank in ("contract", "observed")
    ]


DIALECT: Final = Dialect(
    name="hindsight",
    tools=(
        Tool(
            name="hindsight_put",
            parameters=PUT,
            result=STORED,
            arguments={"bank_id": "observed", "content": "A fact.", "context": "tests"},
        ),
        Tool(
            name="hindsight_search",
            parameters=SEARCH,
            result=RESULT,
            arguments={"bank_id": "observed", "query": "programming"},
            prepare=_prepare,
            read_only=True,
        ),
    ),
    refusal_message=_refusal_message,
    snapshot=_snapshot,
)

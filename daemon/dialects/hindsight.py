"""Hindsight: facts about a person, kept verbatim and found again (seeds 000 and 001).

Every user has a bank; a put makes it, a search of one that nobody made is the documented error.
Search packs the best facts into a token budget: one that does not fit is passed over for the next,
and when not even the best one fits, its most telling passage is cut to size, so that a long fact
is never the reason for an empty answer.
"""

import uuid
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from daemon.tools.context import Context
from daemon.tools.dialect import Dialect
from daemon.tools.errors import ArgumentsRefused
from daemon.tools.specification import ToolSpec
from daemon.tools.token_estimate import estimate
from daemon.tools.toolkit import Toolkit, iso, provenance, words_of
from protocol.mcp import CallToolResult, error_result
from store.errors import BankNotFound
from store.model import Hit, Item, NewMemory, Query

NAME: Final = "hindsight"
STORED: Final = "Fact stored successfully"
#: A short fact as it is sent is about this many tokens: more than fit need not be looked for.
SHORT_FACT_TOKENS: Final = 80
MOST_HITS: Final = 100
#: No text says more than this many characters in one token (see `daemon.tools.token_estimate`).
CHARACTERS_A_TOKEN: Final = 16

_encoder: Final = msgspec.json.Encoder()

BankId = Annotated[
    str, Meta(min_length=1, max_length=256, description="Unique identifier for the user")
]


class PutArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    bank_id: BankId
    content: Annotated[str, Meta(min_length=1, description="The fact or memory to store")]
    context: Annotated[
        str, Meta(min_length=1, description="Category, e.g. personal_preferences, work_history")
    ]
    explanation: Annotated[str, Meta(description="Why this memory is being stored")] = ""


class SearchArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    bank_id: BankId
    query: Annotated[str, Meta(min_length=1, description="Natural language search query")]
    max_tokens: Annotated[int, Meta(ge=1, description="Maximum tokens for results")] = 4096
    explanation: Annotated[str, Meta(description="Why this search is being performed")] = ""


class Fact(Struct, frozen=True, kw_only=True):
    id: str
    text: str
    type: str
    context: str | None
    event_date: str | None
    document_id: str | None


class Facts(Struct, frozen=True, kw_only=True):
    results: list[Fact]


async def put(toolkit: Toolkit, arguments: PutArguments, context: Context) -> str:
    await toolkit.engine.put(
        arguments.bank_id,
        NewMemory(
            id=str(uuid.uuid4()),
            text=arguments.content,
            context=arguments.context,
            source=NAME,
            session=await context.session(),
            provenance=provenance(context, NAME, arguments.explanation),
        ),
    )
    return STORED


async def search(toolkit: Toolkit, arguments: SearchArguments, _context: Context) -> Facts:
    if not arguments.query.strip():
        raise ArgumentsRefused("query: must not be empty")
    limit = min(MOST_HITS, arguments.max_tokens // SHORT_FACT_TOKENS + 5)
    found = await toolkit.engine.search(
        Query(bank=arguments.bank_id, text=arguments.query, limit=limit)
    )
    return Facts(results=pack(found.hits, arguments.max_tokens))


def pack(hits: Sequence[Hit], budget: int) -> list[Fact]:
    """The best facts that fit into a token budget, counted as they are sent."""
    facts: list[Fact] = []
    left = budget
    for hit in hits:
        if len(hit.item.text) > left * CHARACTERS_A_TOKEN:
            continue
        fact = _fact(hit.item, words_of(hit.item))
        cost = _cost(fact)
        if cost <= left:
            facts.append(fact)
            left -= cost
    if not facts and hits:
        facts.append(_cut(hits[0], budget))
    return facts


def _fact(item: Item, text: str) -> Fact:
    # A fact has a date of its own only when somebody gave it one.
    is_dated = item.occurred_at != item.created_at
    return Fact(
        id=item.id,
        text=text,
        type="world",
        context=item.context or item.category,
        event_date=iso(item.occurred_at) if is_dated else None,
        document_id=item.document,
    )


def _cost(fact: Fact) -> int:
    return estimate(_encoder.encode(fact).decode())


def _cut(hit: Hit, budget: int) -> Fact:
    """As much of a fact as the budget holds, from its most telling passage on; a word at least."""
    text = words_of(hit.item)
    start = max(0, text.find(hit.snippet)) if hit.snippet else 0
    if not text[start:].strip():
        start = 0
    while text[start].isspace():  # no passage begins, or consists, of nothing
        start += 1
    room = max(1, budget - _cost(_fact(hit.item, "…")))
    low, high = 1, min(len(text) - start, room * CHARACTERS_A_TOKEN)
    while low < high:
        middle = (low + high + 1) // 2
        if estimate(text[start : start + middle]) <= room:
            low = middle
        else:
            high = middle - 1
    end = start + low
    if end < len(text):  # not in the middle of a word, when there is another
        end = max(text.rfind(" ", start + 1, end), text.rfind("\n", start + 1, end), -1)
        end = end if end > start else start + low
    passage = text[start:end].strip()
    before, after = "…" if start else "", "…" if end < len(text) else ""
    return _fact(hit.item, f"{before}{passage}{after}")


def _refuse(reason: str) -> CallToolResult:
    return error_result(f"Error: {reason}")


def _fail(failure: Exception) -> CallToolResult:
    if isinstance(failure, BankNotFound):
        return error_result(f"Error: Memory bank '{failure.bank}' not found")
    return error_result(f"Error: {failure}")


def tools(toolkit: Toolkit) -> list[ToolSpec]:
    return [
        ToolSpec(
            name="hindsight_put",
            title="Store a fact",
            description=(
                "Store information to a user's memory bank. Use when the user shares personal "
                "facts, preferences, interests, decisions, opinions or goals, when important "
                "events are mentioned, or work context is discussed. Use the same bank_id for "
                "the same user every time."
            ),
            arguments=PutArguments,
            run=partial(put, toolkit),
            idempotent=True,
            fields={"text": "content"},
        ),
        ToolSpec(
            name="hindsight_search",
            title="Search facts",
            description=(
                "Search a user's memory bank to provide personalized responses. Use at the start "
                "of a conversation, before making recommendations, and when the user asks about "
                "something they may have mentioned before."
            ),
            arguments=SearchArguments,
            output=Facts,
            run=partial(search, toolkit),
            read_only=True,
            fields={"text": "query"},
        ),
    ]


DIALECT: Final = Dialect(
    name=NAME,
    tools=tools,
    refuse=_refuse,
    fail=_fail,
    fields={"bank": "bank_id"},
)

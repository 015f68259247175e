"""Hindsight dialect: facts about people, stored verbatim and searched.

Every user has a bank. A put creates it; a search of a bank that does not exist returns the error of
the Hindsight document. Search packs the best facts into a token budget. A fact that does not fit is
skipped in favour of the next one. If not even the best fact fits, its best passage is cut to size,
so that a long fact never leads to an empty answer.
"""

import uuid
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Final

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from daemon.tools.answer_size import ANSWER_BYTES
from daemon.tools.context import Context
from daemon.tools.dialect import Dialect
from daemon.tools.errors import ArgumentsRefused
from daemon.tools.offload import offload
from daemon.tools.specification import ToolSpec
from daemon.tools.token_estimate import end_within, estimate
from daemon.tools.toolkit import Toolkit, full_text, iso, provenance
from protocol.mcp import CallToolResult, error_result
from store.errors import BankNotFound
from store.model import Hit, Item, NewMemory, Query

NAME: Final = "hindsight"
STORED: Final = "Fact stored successfully"
#: Size of a short fact in an answer; it bounds the number of facts worth searching for.
SHORT_FACT_TOKENS: Final = 80
MOST_HITS: Final = 100
#: A fact below this score, or below this share of the best score, is not about the question.
LEAST_SCORE: Final = 0.08
LEAST_SHARE: Final = 0.3
#: Facts found by words alone while vectors are being computed.
MOST_WORDS: Final = 5
PENDING: Final = "New facts are still being indexed; until then they are found by words only."
#: Characters before the first match that a cut passage begins with.
LEAD_CHARACTERS: Final = 40
#: Room for the JSON around the facts.
ENVELOPE_BYTES: Final = 64
#: The most characters that one token covers in ordinary text.
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
    #: Only while the answer may be incomplete.
    note: str | UnsetType = UNSET


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
        Query(bank=arguments.bank_id, text=arguments.query, limit=limit, min_score=LEAST_SCORE)
    )
    is_pending = "vectors-pending" in found.degraded
    if is_pending and not found.hits:
        # Scores are low without vectors, so the facts that share words are the best answer.
        words = Query(
            bank=arguments.bank_id, text=arguments.query, mode="keyword", limit=MOST_WORDS
        )
        found = await toolkit.engine.search(words)
    hits = _relevant(found.hits)
    work = partial(pack, hits, arguments.max_tokens, toolkit.answer_bytes)
    characters = sum(len(hit.item.text) for hit in hits)
    results = await offload(work, characters // 8)
    return Facts(results=results, note=PENDING if is_pending else UNSET)


def _relevant(hits: Sequence[Hit]) -> list[Hit]:
    """The hits that are not much worse than the best one."""
    return [hit for hit in hits if hit.score >= LEAST_SHARE * hits[0].score]


def pack(hits: Sequence[Hit], budget: int, answer_bytes: int = ANSWER_BYTES) -> list[Fact]:
    """The best facts that fit the token budget and the size of an answer, as they are sent.

    At most `answer_bytes` of JSON are counted, whether they fit or not, to bound the work.
    """
    facts: list[Fact] = []
    left = budget
    room = uncounted = answer_bytes - ENVELOPE_BYTES
    for hit in hits:
        if len(hit.item.text) > min(left * CHARACTERS_A_TOKEN, room, uncounted):
            continue
        fact = _fact(hit.item, full_text(hit.item))
        encoded = _encoder.encode(fact)
        if len(encoded) >= min(room, uncounted):
            continue
        uncounted -= len(encoded)
        cost = estimate(encoded.decode(), left)
        if cost <= left:
            facts.append(fact)
            left -= cost
            room -= len(encoded) + 1
    if not facts and hits:
        facts.append(_cut(hits[0], budget, answer_bytes))
    return facts


def _fact(item: Item, text: str) -> Fact:
    return Fact(
        id=item.id,
        text=text,
        type="world",
        context=item.context or item.category,
        event_date=iso(item.occurred_at),
        document_id=item.document,
    )


def _cost(fact: Fact) -> int:
    return estimate(_encoder.encode(fact).decode())


def _cut(hit: Hit, budget: int, answer_bytes: int) -> Fact:
    """As much of a fact as fits, from its best passage on, and at least one word."""
    text = full_text(hit.item)
    start = max(0, text.find(hit.snippet)) if hit.snippet else 0
    if hit.matches and hit.matches[0][0] > LEAD_CHARACTERS:
        near = start + hit.matches[0][0] - LEAD_CHARACTERS  # a small budget must reach the match
        space = text.find(" ", near, near + LEAD_CHARACTERS)
        start = near if space < 0 else space
    if not text[start:].strip():
        start = 0
    start += len(text) - start - len(text[start:].lstrip())
    room = max(1, budget - _cost(_fact(hit.item, "…")))
    # JSON takes up to six bytes for a character.
    most = start + min(room * CHARACTERS_A_TOKEN, answer_bytes // 8)
    longest = max(start + 1, end_within(text[:most], start, room))
    end = longest
    if end < len(text):  # cut between words if there is a word boundary
        end = max(text.rfind(" ", start + 1, end), text.rfind("\n", start + 1, end))
        end = end if end > start else longest
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
    instructions=(
        "Search with hindsight_search and store with hindsight_put. Use the same bank_id every "
        "time."
    ),
    refuse=_refuse,
    fail=_fail,
    fields={"bank": "bank_id"},
)

"""Native dialect: five small tools for agents that come from no other memory system.

`remember`, `recall`, `update`, `forget` and `recent` work on the connection's bank. Searches are
hybrid, and every result has an id, a date, a source and a score. The date of a memory is the date
of its last statement: an update, or remembering the same text again, makes it new. Among results
of nearly equal relevance the newer one comes first, because it may correct the older one.
"""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Final

from msgspec import UNSET, Meta, Struct, UnsetType

from daemon.tools.answer_size import fitting
from daemon.tools.context import Context
from daemon.tools.dialect import Dialect
from daemon.tools.errors import ArgumentsRefused
from daemon.tools.specification import ToolSpec
from daemon.tools.toolkit import Toolkit, full_text, iso, provenance
from protocol.mcp import CallToolResult, error_result
from store.errors import BankNotFound
from store.model import Filters, Found, Item, NewMemory, Query
from store.ranking.freshness import newer_first

NAME: Final = "native"
MOST: Final = 100
#: Results below this score are noise for most questions.
MIN_SCORE: Final = 0.1
SOURCE_LENGTH: Final = 100
#: Room for a note in an answer that is cut.
NOTE_BYTES: Final = 1024

#: UNSET instead of an empty default keeps the schemas short.
Tags = tuple[str, ...] | UnsetType
Limit = Annotated[int, Meta(ge=1, le=MOST)]


class RememberArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    text: str
    tags: Tags = UNSET


class RecallArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    query: str
    limit: Limit = 8
    tags: Annotated[tuple[str, ...], Meta(description="all must match")] | UnsetType = UNSET
    min_score: Annotated[float, Meta(ge=0, le=1)] = MIN_SCORE


class UpdateArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    id: str
    text: str | UnsetType = UNSET
    tags: Annotated[tuple[str, ...], Meta(description="replaces all")] | UnsetType = UNSET


class ForgetArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    ids: Tags = UNSET
    undo: Annotated[str, Meta(description="token of an earlier forget")] | UnsetType = UNSET


class RecentArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    limit: Limit = 10
    tags: Tags = UNSET


class Remembered(Struct, frozen=True, kw_only=True):
    """`known` tells that the same memory was stored before; its date is now the current one."""

    id: str
    bank: str
    known: bool


class Memory(Struct, frozen=True, kw_only=True, omit_defaults=True):
    id: str
    text: str
    date: str
    source: str
    tags: tuple[str, ...] = ()
    score: float | UnsetType = UNSET


class Memories(Struct, frozen=True, kw_only=True):
    """`note` says what was searched and what was left out, if anything was."""

    memories: list[Memory]
    note: str | UnsetType = UNSET


class ForgetResult(Struct, frozen=True, kw_only=True):
    forgotten: int
    undo: str | None
    undo_until: str


class UndoResult(Struct, frozen=True, kw_only=True):
    restored: int


async def remember(toolkit: Toolkit, arguments: RememberArguments, context: Context) -> Remembered:
    put = await toolkit.engine.put(
        context.bank,
        NewMemory(
            text=arguments.text,
            tags=_distinct(arguments.tags),
            source=_source(context),
            session=await context.session(),
            provenance=provenance(context, NAME),
        ),
    )
    if put.duplicate:
        await toolkit.engine.change(context.bank, put.id, occurred_at=toolkit.now())
    return Remembered(id=put.id, bank=context.bank, known=put.duplicate)


async def recall(toolkit: Toolkit, arguments: RecallArguments, context: Context) -> Memories:
    if not arguments.query.strip():
        raise ArgumentsRefused("query: must not be empty")
    tags = _distinct(arguments.tags)
    query = Query(
        bank=context.bank,
        text=arguments.query,
        limit=arguments.limit,
        filters=Filters(tags=tags),
        min_score=arguments.min_score,
        explain=True,
    )
    try:
        found = await toolkit.engine.search(query)
        count = 0 if found.hits else (await toolkit.engine.stats(context.bank)).items
    except BankNotFound:  # the first memory creates the bank
        found, count = Found(), 0
    note = _search_note(context.bank, found, count, tags, arguments.min_score)
    return _answer(toolkit, [_memory(hit.item, hit.score) for hit in newer_first(found.hits)], note)


async def update(toolkit: Toolkit, arguments: UpdateArguments, context: Context) -> Memory:
    text = None if arguments.text is UNSET else arguments.text
    tags = None if arguments.tags is UNSET else _distinct(arguments.tags)
    if text is None and tags is None:
        raise ArgumentsRefused("text: give a new text, new tags, or both")
    changed = await toolkit.engine.change(
        context.bank,
        arguments.id,
        text=text,
        tags=tags,
        occurred_at=None if text is None else toolkit.now(),
    )
    return _memory(changed)


async def forget(
    toolkit: Toolkit, arguments: ForgetArguments, context: Context
) -> ForgetResult | UndoResult:
    ids, undo = arguments.ids or (), arguments.undo or ""
    if ids and undo:
        raise ArgumentsRefused("undo: must not be combined with ids")
    if not ids and not undo:
        raise ArgumentsRefused("ids: name at least one, or give an undo token")
    if undo:
        return UndoResult(restored=await toolkit.engine.undo(context.bank, undo))
    gone = await toolkit.engine.forget(context.bank, ids)
    return ForgetResult(forgotten=gone.count, undo=gone.token, undo_until=iso(gone.undo_until))


def _forgets(arguments: ForgetArguments) -> bool:
    return bool(arguments.ids)


async def recent(toolkit: Toolkit, arguments: RecentArguments, context: Context) -> Memories:
    tags = _distinct(arguments.tags)
    try:
        page = await toolkit.engine.timeline(
            context.bank, kinds=(), filters=Filters(tags=tags), limit=arguments.limit
        )
        items = page.items
    except BankNotFound:
        items = ()
    note = "" if items else f"Bank {context.bank!r} has no memories{_tagged(tags)}."
    return _answer(toolkit, [_memory(item) for item in items], note)


# --- helpers ---------------------------------------------------------------------------------


def _distinct(tags: Tags) -> tuple[str, ...]:
    plain = tuple(dict.fromkeys(tag.strip() for tag in tags or ()))
    if "" in plain:
        raise ArgumentsRefused("tags: must not contain an empty tag")
    return plain


def _source(context: Context) -> str:
    """The name of the client, so that a shared memory shows which program stored an entry."""
    name = context.client.name.strip()[:SOURCE_LENGTH] if context.client is not None else ""
    return name or NAME


def _memory(item: Item, score: float | None = None) -> Memory:
    return Memory(
        id=item.id,
        text=full_text(item),
        date=iso(item.occurred_at),
        source=item.source or NAME,
        tags=item.tags,
        score=UNSET if score is None else round(score, 4),
    )


def _answer(toolkit: Toolkit, memories: list[Memory], note: str) -> Memories:
    shown = fitting(memories, toolkit.answer_bytes - NOTE_BYTES)
    if len(shown) < len(memories):
        missing = f"{len(memories) - len(shown)} more left out to keep the answer small."
        note = f"{note} {missing}".strip()
    return Memories(memories=shown, note=note or UNSET)


def _tagged(tags: Sequence[str]) -> str:
    return f" with {'the tag' if len(tags) == 1 else 'all tags'} {', '.join(tags)}" if tags else ""


def _search_note(bank: str, found: Found, count: int, tags: Sequence[str], min_score: float) -> str:
    """What was searched and what was withheld; empty if there are results and nothing is amiss."""
    parts: list[str] = []
    if not found.hits:
        how = "keywords only" if found.mode == "keyword" else "keywords and meaning"
        parts.append(
            f"No memory matched{_tagged(tags)}: bank {bank!r} ({count} entries) was searched by"
            f" {how}."
        )
    if not found.hits and found.below:
        parts.append(
            f"{found.below} with a score below {min_score:g} withheld; a lower min_score shows"
            " them."
        )
    if "vectors-pending" in found.degraded:
        parts.append("New entries are still being indexed; until then they match by keyword only.")
    elif "embedder-failed" in found.degraded or "model-missing" in found.degraded:
        parts.append("The embedding model is not available; only keywords were compared.")
    return " ".join(parts)


def _refuse(reason: str) -> CallToolResult:
    return error_result(f"Error: {reason}")


def _fail(failure: Exception) -> CallToolResult:
    if isinstance(failure, BankNotFound):
        return error_result(f"Error: nothing is stored in bank {failure.bank!r} yet")
    return error_result(f"Error: {failure}")


# --- the tools -------------------------------------------------------------------------------


def tools(toolkit: Toolkit) -> list[ToolSpec]:
    return [
        ToolSpec(
            name="remember",
            description="Store one fact, decision or preference, in a self-contained sentence.",
            arguments=RememberArguments,
            run=partial(remember, toolkit),
            idempotent=True,
        ),
        ToolSpec(
            name="recall",
            description="Search memories by meaning and keywords.",
            arguments=RecallArguments,
            run=partial(recall, toolkit),
            read_only=True,
            fields={"text": "query"},
        ),
        ToolSpec(
            name="update",
            description="Correct a memory's text or tags by id.",
            arguments=UpdateArguments,
            run=partial(update, toolkit),
            idempotent=True,
        ),
        ToolSpec(
            name="forget",
            description="Forget memories by id. The result has an undo token.",
            arguments=ForgetArguments,
            run=partial(forget, toolkit),
            destructive=True,
            would_destroy=_forgets,
        ),
        ToolSpec(
            name="recent",
            description="List the newest memories.",
            arguments=RecentArguments,
            run=partial(recent, toolkit),
            read_only=True,
        ),
    ]


DIALECT: Final = Dialect(
    name=NAME,
    tools=tools,
    instructions=(
        "Search with recall and store with remember. If a memory is outdated, update or forget it "
        "by its id."
    ),
    refuse=_refuse,
    fail=_fail,
    fields={"text": "text", "id": "id", "token": "undo"},
)

"""The Claude Recall tools as functions of typed arguments."""

import secrets
import shlex
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any, Final

import msgspec
from msgspec import UNSET

from daemon.dialects.recall.messages import (
    AnyArguments,
    ClearArguments,
    Cleared,
    Memories,
    Memory,
    MemoryStatistics,
    Result,
    Results,
    RetrieveArguments,
    SearchArguments,
    StoreArguments,
    Stored,
)
from daemon.dialects.recall.relevance import engine_score, shown_score
from daemon.tools.answer_size import fitting
from daemon.tools.context import Context
from daemon.tools.errors import ArgumentsRefused
from daemon.tools.toolkit import Toolkit, full_text, iso, provenance
from store.errors import BankNotFound, NotFound
from store.model import Filters, Forgotten, Found, Hit, Item, Kind, NewMemory, Query

NAME: Final = "recall"
PREFIX: Final = "mcp__claude-recall__"
MOST: Final = 1000
#: Room for a hint in an answer that is cut.
HINT_BYTES: Final = 256
#: Kinds that count as memories: everything callers store. A document counts once, not per chunk.
MEMORIES: Final[tuple[Kind, ...]] = ("memory", "event", "card", "task", "risk", "skill")

_canonical: Final = msgspec.json.Encoder(order="deterministic")


async def store_memory(toolkit: Toolkit, arguments: StoreArguments, context: Context) -> Stored:
    session = await context.session()
    put = await toolkit.engine.put(
        context.bank,
        NewMemory(
            id=f"memory_{toolkit.now()}_{secrets.token_hex(6)}",
            text=arguments.content,
            category=_type_of(arguments.metadata),
            metadata=arguments.metadata,
            source=NAME,
            session=session,
            key=_key(session, arguments),
            provenance=provenance(context, NAME),
        ),
    )
    return Stored(id=put.id)


async def search(toolkit: Toolkit, arguments: SearchArguments, context: Context) -> Results:
    limit = _whole(arguments.limit)
    if not arguments.query.strip():
        raise ArgumentsRefused("query: must not be empty")
    query = Query(
        bank=context.bank,
        text=arguments.query,
        limit=min(MOST, limit + 10),  # room for equal memories of other sessions
        min_score=engine_score(arguments.threshold),
    )
    try:
        found = await toolkit.engine.search(query)
    except BankNotFound:  # the first memory creates the default bank
        return Results(results=[], total=0, query=arguments.query, below_threshold=0)
    hits = _distinct(found.hits)[:limit]
    answer = Results(
        results=[],
        total=len(hits),
        query=arguments.query,
        below_threshold=found.below,
        hint=_hint(found, arguments.threshold, is_empty=not hits) or UNSET,
    )
    results = fitting(map(_result, hits), toolkit.answer_bytes - HINT_BYTES, answer)
    return msgspec.structs.replace(
        answer,
        results=results,
        total=len(results),
        hint=answer.hint if len(results) == len(hits) else _left_out(len(hits) - len(results)),
    )


async def retrieve_memory(
    toolkit: Toolkit, arguments: RetrieveArguments, context: Context
) -> Memories:
    limit = _whole(arguments.limit)
    try:
        if arguments.id is not UNSET:
            items: Iterable[Item] = [await toolkit.engine.get(context.bank, arguments.id)]
        else:
            page = await toolkit.engine.recent(context.bank, kinds=MEMORIES, limit=limit)
            items = page.items
    except (BankNotFound, NotFound):
        items = ()
    found = list(items)
    memories = fitting(map(_memory, found), toolkit.answer_bytes - HINT_BYTES)
    return Memories(
        memories=memories,
        total=len(memories),
        hint=UNSET if len(memories) == len(found) else _left_out(len(found) - len(memories)),
    )


async def get_stats(
    toolkit: Toolkit, _arguments: AnyArguments, context: Context
) -> MemoryStatistics:
    session = await context.session()
    known = await toolkit.engine.sessions.get(session)
    started = iso(known.created_at) if known is not None else None
    try:
        stats = await toolkit.engine.stats(context.bank)
        newest = await toolkit.engine.recent(context.bank, kinds=MEMORIES, limit=1)
        own = await toolkit.engine.recent(
            context.bank, kinds=("memory",), filters=_stored_in(session), limit=1
        )
    except BankNotFound:
        return MemoryStatistics(
            total_memories=0,
            session_memories=0,
            memory_types={},
            last_memory_timestamp=None,
            session_start_time=started,
            database_size=_size(0),
        )
    types = dict(stats.by_category)
    others = {kind: stats.by_kind.get(kind, 0) for kind in MEMORIES if kind != "memory"}
    for name, count in (*others.items(), ("document", stats.documents)):
        if count:
            types[name] = types.get(name, 0) + count
    return MemoryStatistics(
        total_memories=sum(types.values()),
        session_memories=own.total,
        memory_types=types,
        last_memory_timestamp=iso(newest.items[0].created_at) if newest.items else None,
        session_start_time=started,
        database_size=_size(stats.disk_bytes),
    )


def is_confirmed(arguments: ClearArguments) -> bool:
    return arguments.confirm


async def clear_context(toolkit: Toolkit, arguments: ClearArguments, context: Context) -> Cleared:
    if not arguments.confirm:
        return Cleared(
            success=False, message="Confirmation required to clear context", memories_cleared=0
        )
    session = await context.session()
    try:
        forgotten = await toolkit.engine.forget_where(
            context.bank, kinds=("memory",), filters=_stored_in(session)
        )
    except BankNotFound:
        forgotten = Forgotten(token=None, count=0, undo_until=0)
    token = forgotten.token
    return Cleared(
        success=True,
        message="Context cleared successfully",
        memories_cleared=forgotten.count,
        undo=token or UNSET,
        hint=UNSET if token is None else _undo_hint(token, context.bank, forgotten.undo_until),
    )


# --- helpers ---------------------------------------------------------------------------------


def _whole(amount: float) -> int:
    """A limit as a whole number; the document's schema allows any number."""
    if amount != int(amount):
        raise ArgumentsRefused("limit: must be a whole number")
    return min(MOST, int(amount))


def _undo_hint(token: str, bank: str, until: int) -> str:
    return (
        f"until {iso(until)} the user can restore them with:"
        f" recalld undo {token} --bank {shlex.quote(bank)}"
    )


def _hint(found: Found, threshold: float, *, is_empty: bool) -> str:
    """The reason of an empty answer, and the reason why results may be missing."""
    parts: list[str] = []
    if is_empty and found.below:
        count = "1 memory scores" if found.below == 1 else f"{found.below} memories score"
        best = shown_score(found.best_below or 0.0)
        parts.append(
            f"{count} below the threshold of {threshold:g}, the best {best:.2g};"
            " a lower threshold shows them"
        )
    if "vectors-pending" in found.degraded:
        parts.append("new memories are still being indexed and match by words only until then")
    return "; ".join(parts)


def _left_out(count: int) -> str:
    """The hint of an answer that was cut to `limits.answer_bytes`."""
    return f"{count} more left out to keep the answer small; ask with a smaller limit"


def _memory(item: Item) -> Memory:
    return Memory(
        id=item.id,
        content=full_text(item),
        metadata=_metadata(item),
        timestamp=iso(item.created_at),
        session_id=item.session,
    )


def _type_of(metadata: Mapping[str, Any]) -> str | None:
    named = metadata.get("type")
    return named if isinstance(named, str) and named.strip() else None


def _key(session: str, arguments: StoreArguments) -> str:
    """The key under which a memory is stored once per session."""
    key = _canonical.encode((session, arguments.content, arguments.metadata))
    return f"recall:{blake2b(key, digest_size=16).hexdigest()}"


def _stored_in(session: str) -> Filters:
    return Filters(session=session, sources=(NAME,), include_superseded=True)


def _distinct(hits: Iterable[Hit]) -> list[Hit]:
    """Equal memories once: the newest of them, at the position of the best."""
    kept: dict[tuple[str, str, bytes], Hit] = {}
    for hit in hits:
        key = (hit.item.kind, hit.item.text, _canonical.encode(hit.item.metadata))
        known = kept.get(key)
        if known is None or hit.item.rowid > known.item.rowid:
            kept[key] = hit
    return list(kept.values())


def _result(hit: Hit) -> Result:
    return Result(
        id=hit.item.id,
        content=full_text(hit.item),
        metadata=_metadata(hit.item),
        timestamp=iso(hit.item.created_at),
        score=round(shown_score(hit.score), 4),
    )


def _metadata(item: Item) -> dict[str, Any]:
    """The stored metadata; for items of other dialects also their origin."""
    own = dict(item.metadata)
    if item.provenance.dialect == NAME:
        return own
    origin = {
        "kind": item.kind,
        "dialect": item.provenance.dialect,
        "source": item.source,
        "context": item.context,
        "category": item.category,
        "status": item.status,
        "document": item.document,
    }
    return {**{name: value for name, value in origin.items() if value is not None}, **own}


def _size(count: int) -> str:
    """Bytes in a readable unit, such as `1.5 MB`."""
    size, units = float(count), ["B", "KB", "MB", "GB"]
    while size >= 1024 and len(units) > 1:
        size /= 1024
        units.pop(0)
    return f"{size:.0f} B" if units[0] == "B" else f"{size:.1f} {units[0]}"

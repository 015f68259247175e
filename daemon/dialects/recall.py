"""Claude Recall: what a coding session learns, kept and searched (seed 003).

The bank is the connection's default. Memories belong to the session that stored them: storing the
same twice in a session gives the same id, and `clear_context` takes back exactly what this session
stored (for a day the engine can undo it). So that two sessions that learned the same thing do not
fill an answer with it, search shows equal memories once, the newest.

This dialect says no by JSON-RPC error: -32602 for wrong arguments, -32002 for the database. Where
a revision wants a result instead, the result holds the same error object.
"""

import secrets
from collections.abc import Iterable, Mapping
from functools import partial
from hashlib import blake2b
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, field

from daemon.tools.context import Context
from daemon.tools.dialect import Dialect
from daemon.tools.errors import ArgumentsRefused
from daemon.tools.specification import NoArguments, ToolSpec
from daemon.tools.toolkit import Toolkit, iso, provenance, words_of
from protocol.errors import Fault, error_object
from protocol.mcp import CallToolResult, error_result
from store.errors import BankNotFound, NotFound
from store.model import Filters, Hit, Item, Kind, NewMemory, Query

NAME: Final = "recall"
PREFIX: Final = "mcp__claude-recall__"
MOST: Final = 1000
#: What counts as a memory here: all that somebody stored. Documents count once, not by chunk.
MEMORIES: Final[tuple[Kind, ...]] = ("memory", "event", "card", "task", "risk", "skill")

_encoder: Final = msgspec.json.Encoder()
_canonical: Final = msgspec.json.Encoder(order="deterministic")

Amount = Annotated[float, Meta(ge=1)]


class StoreArguments(Struct, frozen=True, kw_only=True):
    content: Annotated[str, Meta(min_length=1)]
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])


class SearchArguments(Struct, frozen=True, kw_only=True):
    query: Annotated[str, Meta(min_length=1)]
    limit: Amount = 10
    threshold: Annotated[float, Meta(ge=0, le=1)] = 0.7


class RetrieveArguments(Struct, frozen=True, kw_only=True):
    id: Annotated[str, Meta(min_length=1)] | UnsetType = UNSET
    limit: Amount = 10


class ClearArguments(Struct, frozen=True, kw_only=True):
    confirm: bool = False


class AnyArguments(NoArguments, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """None are needed; the document's schema allows others."""


class Stored(Struct, frozen=True, kw_only=True):
    id: str
    success: bool = True
    message: str = "Memory stored successfully"


class Result(Struct, frozen=True, kw_only=True):
    id: str
    content: str
    metadata: dict[str, Any]
    timestamp: str
    score: float


class Results(Struct, frozen=True, kw_only=True, rename="camel"):
    """`below_threshold` and `hint` are ours: how many answers a lower threshold would show."""

    results: list[Result]
    total: int
    query: str
    below_threshold: int
    hint: str | UnsetType = UNSET


class Memory(Struct, frozen=True, kw_only=True, rename="camel"):
    id: str
    content: str
    metadata: dict[str, Any]
    timestamp: str
    session_id: str | None


class Memories(Struct, frozen=True, kw_only=True):
    memories: list[Memory]
    total: int


class Statistics(Struct, frozen=True, kw_only=True, rename="camel"):
    total_memories: int
    session_memories: int
    memory_types: dict[str, int]
    last_memory_timestamp: str | None
    session_start_time: str | None
    database_size: str


class Cleared(Struct, frozen=True, kw_only=True, rename="camel"):
    success: bool
    message: str
    memories_cleared: int


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
        min_score=arguments.threshold,
    )
    try:
        found = await toolkit.engine.search(query)
    except BankNotFound:  # the default bank is made by the first memory
        return Results(results=[], total=0, query=arguments.query, below_threshold=0)
    results = [_result(hit) for hit in _distinct(found.hits)][:limit]
    return Results(
        results=results,
        total=len(results),
        query=arguments.query,
        below_threshold=found.below,
        hint=UNSET if results or not found.below else _hint(found.below, arguments.threshold),
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
    memories = [
        Memory(
            id=item.id,
            content=words_of(item),
            metadata=_metadata(item),
            timestamp=iso(item.created_at),
            session_id=item.session,
        )
        for item in items
    ]
    return Memories(memories=memories, total=len(memories))


async def get_stats(toolkit: Toolkit, _arguments: AnyArguments, context: Context) -> Statistics:
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
        return Statistics(
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
    return Statistics(
        total_memories=sum(types.values()),
        session_memories=own.total,
        memory_types=types,
        last_memory_timestamp=iso(newest.items[0].created_at) if newest.items else None,
        session_start_time=started,
        database_size=_size(stats.disk_bytes),
    )


def _is_confirmed(arguments: ClearArguments) -> bool:
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
        count = forgotten.count
    except BankNotFound:
        count = 0
    return Cleared(success=True, message="Context cleared successfully", memories_cleared=count)


# --- helpers ---------------------------------------------------------------------------------


def _whole(amount: float) -> int:
    """A limit: JSON knows one kind of number, a count of results knows whole ones."""
    if amount != int(amount):
        raise ArgumentsRefused("limit: must be a whole number")
    return min(MOST, int(amount))


def _hint(below: int, threshold: float) -> str:
    """For whoever sees an empty answer: there is something, less alike than was asked for."""
    found = "1 memory scores" if below == 1 else f"{below} memories score"
    return f"{found} below the threshold of {threshold:g}; a lower threshold shows them"


def _type_of(metadata: Mapping[str, Any]) -> str | None:
    named = metadata.get("type")
    return named if isinstance(named, str) and named.strip() else None


def _key(session: str, arguments: StoreArguments) -> str:
    """What makes a memory the same one within a session."""
    said = _canonical.encode((session, arguments.content, arguments.metadata))
    return f"recall:{blake2b(said, digest_size=16).hexdigest()}"


def _stored_in(session: str) -> Filters:
    return Filters(session=session, sources=(NAME,), include_superseded=True)


def _distinct(hits: Iterable[Hit]) -> list[Hit]:
    """Equal memories once, in the place of the best and as the newest of them."""
    kept: dict[bytes, Hit] = {}
    for hit in hits:
        said = _canonical.encode((hit.item.kind, hit.item.text, hit.item.metadata))
        known = kept.get(said)
        if known is None or hit.item.rowid > known.item.rowid:
            kept[said] = hit
    return list(kept.values())


def _result(hit: Hit) -> Result:
    return Result(
        id=hit.item.id,
        content=words_of(hit.item),
        metadata=_metadata(hit.item),
        timestamp=iso(hit.item.created_at),
        score=round(hit.score, 4),
    )


def _metadata(item: Item) -> dict[str, Any]:
    """As it was stored; of what came by another door, where it is from as well."""
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
    """Bytes as people say them: `1.5 MB`."""
    size, units = float(count), ["B", "KB", "MB", "GB"]
    while size >= 1024 and len(units) > 1:
        size /= 1024
        units.pop(0)
    return f"{size:.0f} B" if units[0] == "B" else f"{size:.1f} {units[0]}"


def _refuse(reason: str) -> CallToolResult:
    return error_result(_encoder.encode(error_object(Fault.INVALID_PARAMS, reason)).decode())


# --- the tools -------------------------------------------------------------------------------

#: The input schemas are the document's own, to the letter.
STORE_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "content": {"type": "string", "description": "Memory content to store"},
        "metadata": {"type": "object", "description": "Optional metadata for the memory"},
    },
    "required": ["content"],
}
SEARCH_SCHEMA: Final[dict[str, Any]] = {
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
}
RETRIEVE_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "description": "Memory ID to retrieve"},
        "limit": {
            "type": "number",
            "description": "Number of recent memories to retrieve",
            "default": 10,
        },
    },
}
STATS_SCHEMA: Final[dict[str, Any]] = {"type": "object", "properties": {}}
CLEAR_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "confirm": {"type": "boolean", "description": "Confirmation required to clear context"}
    },
}


def tools(toolkit: Toolkit) -> list[ToolSpec]:
    return [
        ToolSpec(
            name=f"{PREFIX}store_memory",
            aliases=("store_memory",),
            title="Store a memory",
            description="Stores a memory in the Claude Recall database.",
            arguments=StoreArguments,
            input_schema=STORE_SCHEMA,
            output=Stored,
            run=partial(store_memory, toolkit),
            idempotent=True,
            fields={"text": "content", "category": "metadata.type"},
        ),
        ToolSpec(
            name=f"{PREFIX}search",
            aliases=("search",),
            title="Search memories",
            description="Searches memories using natural language query.",
            arguments=SearchArguments,
            input_schema=SEARCH_SCHEMA,
            output=Results,
            run=partial(search, toolkit),
            read_only=True,
            fields={"text": "query"},
        ),
        ToolSpec(
            name=f"{PREFIX}retrieve_memory",
            aliases=("retrieve_memory",),
            title="Retrieve memories",
            description="Retrieves specific memories by ID or recent memories.",
            arguments=RetrieveArguments,
            input_schema=RETRIEVE_SCHEMA,
            output=Memories,
            run=partial(retrieve_memory, toolkit),
            read_only=True,
        ),
        ToolSpec(
            name=f"{PREFIX}get_stats",
            aliases=("get_stats",),
            title="Memory statistics",
            description="Returns memory usage statistics.",
            arguments=AnyArguments,
            input_schema=STATS_SCHEMA,
            output=Statistics,
            run=partial(get_stats, toolkit),
            read_only=True,
        ),
        ToolSpec(
            name=f"{PREFIX}clear_context",
            aliases=("clear_context",),
            title="Clear this session's memories",
            description="Clears session-specific context memories.",
            arguments=ClearArguments,
            input_schema=CLEAR_SCHEMA,
            output=Cleared,
            run=partial(clear_context, toolkit),
            destructive=True,
            would_destroy=_is_confirmed,
            idempotent=True,
        ),
    ]


DIALECT: Final = Dialect(
    name=NAME,
    tools=tools,
    refuse=_refuse,
)

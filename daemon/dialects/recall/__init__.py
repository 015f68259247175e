"""Claude Recall dialect: memories of coding sessions, stored and searched.

The bank is the connection's default. A memory belongs to the session that stored it: storing the
same memory twice in a session returns the same id, and `clear_context` forgets exactly the memories
of this session (the engine can undo that for a day). Several sessions may store the same memory;
search then shows the newest one only.

Refusals are JSON-RPC errors: -32602 for wrong arguments, -32002 for the database. In revisions that
require a result instead, the result holds the same error object.
"""

from functools import partial
from typing import Final

import msgspec

from daemon.dialects.recall import messages
from daemon.dialects.recall.operations import (
    NAME,
    PREFIX,
    clear_context,
    get_stats,
    is_confirmed,
    retrieve_memory,
    search,
    store_memory,
)
from daemon.tools.dialect import Dialect
from daemon.tools.specification import ToolSpec
from daemon.tools.toolkit import Toolkit
from protocol.errors import Fault, error_object
from protocol.mcp import CallToolResult, error_result

_encoder: Final = msgspec.json.Encoder()


def tools(toolkit: Toolkit) -> list[ToolSpec]:
    return [
        ToolSpec(
            name=f"{PREFIX}store_memory",
            aliases=("store_memory",),
            title="Store a memory",
            description="Stores a memory in the Claude Recall database.",
            arguments=messages.StoreArguments,
            input_schema=messages.STORE_SCHEMA,
            output=messages.Stored,
            run=partial(store_memory, toolkit),
            idempotent=True,
            fields={"text": "content", "category": "metadata.type"},
        ),
        ToolSpec(
            name=f"{PREFIX}search",
            aliases=("search",),
            title="Search memories",
            description="Searches memories using natural language query.",
            arguments=messages.SearchArguments,
            input_schema=messages.SEARCH_SCHEMA,
            output=messages.Results,
            run=partial(search, toolkit),
            read_only=True,
            fields={"text": "query"},
        ),
        ToolSpec(
            name=f"{PREFIX}retrieve_memory",
            aliases=("retrieve_memory",),
            title="Retrieve memories",
            description="Retrieves specific memories by ID or recent memories.",
            arguments=messages.RetrieveArguments,
            input_schema=messages.RETRIEVE_SCHEMA,
            output=messages.Memories,
            run=partial(retrieve_memory, toolkit),
            read_only=True,
        ),
        ToolSpec(
            name=f"{PREFIX}get_stats",
            aliases=("get_stats",),
            title="Memory statistics",
            description="Returns memory usage statistics.",
            arguments=messages.AnyArguments,
            input_schema=messages.STATS_SCHEMA,
            output=messages.MemoryStatistics,
            run=partial(get_stats, toolkit),
            read_only=True,
        ),
        ToolSpec(
            name=f"{PREFIX}clear_context",
            aliases=("clear_context",),
            title="Clear this session's memories",
            description="Clears session-specific context memories.",
            arguments=messages.ClearArguments,
            input_schema=messages.CLEAR_SCHEMA,
            output=messages.Cleared,
            run=partial(clear_context, toolkit),
            destructive=True,
            would_destroy=is_confirmed,
            idempotent=True,
        ),
    ]


def _refuse(reason: str) -> CallToolResult:
    return error_result(_encoder.encode(error_object(Fault.INVALID_PARAMS, reason)).decode())


DIALECT: Final = Dialect(
    name=NAME,
    tools=tools,
    instructions=(
        "Search with mcp__claude-recall__search (a lower threshold returns more) and store with "
        "mcp__claude-recall__store_memory."
    ),
    refuse=_refuse,
)

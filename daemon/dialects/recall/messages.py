"""Arguments, results and input schemas of the Claude Recall tools."""

from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, Struct, UnsetType, field

from daemon.tools.specification import NoArguments

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
    """No argument is needed; the schema of the Claude Recall document allows any."""


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
    """`below_threshold` and `hint` are additions: they report results that were left out."""

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
    """`hint` is an addition: it reports memories that were left out of a large answer."""

    memories: list[Memory]
    total: int
    hint: str | UnsetType = UNSET


class MemoryStatistics(Struct, frozen=True, kw_only=True, rename="camel"):
    total_memories: int
    session_memories: int
    memory_types: dict[str, int]
    last_memory_timestamp: str | None
    session_start_time: str | None
    database_size: str


class Cleared(Struct, frozen=True, kw_only=True, rename="camel"):
    """`undo` and `hint` are additions: a token that restores the memories, and how to use it."""

    success: bool
    message: str
    memories_cleared: int
    undo: str | UnsetType = UNSET
    hint: str | UnsetType = UNSET


#: The input schemas of the Claude Recall document, unchanged.
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

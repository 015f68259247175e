"""What the tools take: one Struct a tool, with the document's names and defaults.

A wrong JSON type is refused when the Struct is decoded. What only the tool can judge (a choice, a
range, an id) is refused by the tool, in the dialect's own words. Objects and lists may come as
JSON text: some clients serialise nested arguments.
"""

from typing import Any, Final, get_args

import msgspec
from msgspec import UNSET, Struct, UnsetType

from daemon.dialects.awareness.refusal import Refused
from store.model import SHORT_LIMIT

SCOPES: Final = ("all", "timeline", "knowledge", "insights")
RECALL_MODES: Final = ("hybrid", "auto", "precise", "session", "structured")
LOOKUP_TYPES: Final = (
    "context", "tasks", "knowledge", "risks", "session_history", "timeline", "handoff",
)  # fmt: skip
ACTIONS: Final = (
    "remember", "remember_batch", "backfill", "ingest", "update_task", "submit_insights",
)  # fmt: skip
CONTENT_SCOPES: Final = ("timeline", "knowledge")

Mapping = dict[str, Any] | str | None
Listing = list[Any] | str | None


class InitArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    memory_id: str = ""
    source: str = ""
    days: int = 7
    max_cards: int = 20
    max_tasks: int = 20
    user_id: str = ""
    agent_role: str = ""
    client_capabilities: str = ""


class PromptArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    agent_role: str
    memory_id: str = ""
    api_key: str = ""


class RecallArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    semantic_query: str
    keyword_query: str = ""
    memory_id: str = ""
    scope: str = "all"
    limit: int = 6
    recall_mode: str = "hybrid"
    confidence_threshold: float | None = None
    user_id: str = ""
    agent_role: str = ""
    session_id: str = ""
    multi_level: bool = False
    cluster_expand: bool = False
    metadata_filter: Mapping = None
    vector_weight: float | None = None
    full_text_weight: float | None = None


class LookupArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    type: str
    memory_id: str = ""
    days: int = 7
    max_cards: int = 20
    max_tasks: int = 20
    query: str = ""
    category: str = ""
    status: str = ""
    priority: str = ""
    include_completed: bool = False
    level: str = ""
    session_id: str = ""
    limit: int = 50
    offset: int = 0
    user_id: str = ""
    agent_role: str = ""


class RecordArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    action: str
    memory_id: str = ""
    session_id: str = ""
    text: str = ""
    steps: Listing = None
    history: Any = None
    content: Any = None
    content_scope: str = "timeline"
    task_id: str = ""
    status: str = ""
    source: str = ""
    actor: str = ""
    event_type: str = ""
    metadata: Mapping = None
    metadata_defaults: Mapping = None
    user_id: str = ""
    agent_role: str = ""
    generate_summary: bool = True
    max_events: int = 800
    #: A later spelling of `content` for submit_insights; not listed, but understood.
    insights: Any | UnsetType = UNSET


_NAMES: Final = {str: "string", int: "integer", bool: "boolean", float: "number"}
_LIST_SCHEMA: Final[dict[str, Any]] = {"type": "array", "items": {"type": "object"}}


def schema(
    arguments: type[Struct],
    *,
    choices: dict[str, tuple[str, ...]] | None = None,
    notes: dict[str, str] | None = None,
    hidden: tuple[str, ...] = (),
) -> dict[str, Any]:
    """A short input schema: a default is shown unless it is empty, a note only where it helps."""
    properties: dict[str, Any] = {}
    required: list[str] = []
    for field in msgspec.structs.fields(arguments):
        if field.name in hidden:
            continue
        shown = _type_schema(field.type)
        if choices and field.name in choices:
            shown["enum"] = list(choices[field.name])
        if field.required:
            required.append(field.name)
        elif field.default not in ("", None, UNSET):
            shown["default"] = field.default
        if notes and field.name in notes:
            shown["description"] = notes[field.name]
        properties[field.name] = shown
    found: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        found["required"] = required
    return found


def _type_schema(type_: Any) -> dict[str, Any]:
    """The schema of a field's type. Every array has items, which model APIs insist on."""
    if type_ is Any:
        return {"anyOf": [{"type": "string"}, {"type": "object"}, {**_LIST_SCHEMA}]}
    if type_ == Mapping:
        return {"type": "object"}
    if type_ == Listing:
        return {**_LIST_SCHEMA}
    parts = (type_, *get_args(type_))
    return {"type": next(_NAMES[part] for part in parts if part in _NAMES)}


# --- checks that tools share ------------------------------------------------------------------


def chosen(field: str, value: str, choices: tuple[str, ...]) -> str:
    """One of the choices, in any case; `Refused` names the field and the choices."""
    plain = value.strip().lower()
    if plain not in choices:
        raise Refused(f"{field}: must be one of {', '.join(choices)}")
    return plain


def labels(**given: str) -> None:
    """Names and ids that are kept: short enough to be names. The keyword is the argument."""
    for field, value in given.items():
        size = len(value.encode("utf-8", "replace"))
        if size > SHORT_LIMIT:
            raise Refused(f"{field}: is {size} bytes of UTF-8, the limit is {SHORT_LIMIT}")


def at_least(field: str, value: int, least: int, most: int | None = None) -> int:
    """The number; more than `most` means `most`, less than `least` is refused."""
    if value < least:
        raise Refused(f"{field}: must be at least {least}")
    return value if most is None else min(value, most)


def share(field: str, value: float | None) -> float | None:
    if value is not None and not 0.0 <= value <= 1.0:
        raise Refused(f"{field}: must be from 0.0 to 1.0")
    return value


def mapping(field: str, value: Mapping) -> dict[str, Any]:
    """An object, also when it came as JSON text; empty when there is none."""
    if value is None or value == "":
        return {}
    if isinstance(value, str):
        try:
            return msgspec.json.decode(value.encode("utf-8", "replace"), type=dict[str, Any])
        except msgspec.MsgspecError:
            raise Refused(f"{field}: must be an object") from None
    return value


def from_text(value: Any) -> Any:
    """What a JSON text says (fenced or not), or the value itself."""
    if not isinstance(value, str):
        return value
    plain = value.strip()
    if plain.startswith("```"):
        plain = plain.partition("\n")[2].rpartition("```")[0].strip()
    if plain[:1] not in ("{", "["):
        return value
    try:
        return msgspec.json.decode(plain.encode("utf-8", "replace"))
    except (msgspec.MsgspecError, RecursionError):
        return value

"""Drafts: events parsed from the formats that callers send (a text, a step, a chat message).

Callers and chat formats use different names for the same thing. Known members become fields of the
draft; other members stay in the event's metadata; an entry without text is skipped with a reason.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final, cast

from msgspec import Struct

from daemon.dialects.awareness.language import detection

TEXT_KEYS: Final = ("text", "content", "message", "body", "output", "input")
_ACTOR_KEYS: Final = ("actor", "role", "speaker")
_TYPE_KEYS: Final = ("event_type", "type")
_TIME_KEYS: Final = ("timestamp", "created_at", "time", "date", "ts")
_ACTORS: Final = {
    "human": "user", "ai": "assistant", "model": "assistant", "bot": "assistant",
    "agent": "assistant", "function": "tool", "developer": "system",
}  # fmt: skip
_SECONDS: Final = 100_000_000_000  # unix times below this are seconds, above it milliseconds


class Draft(Struct, frozen=True, kw_only=True):
    """A parsed event; labels that the caller did not give are None."""

    index: int
    text: str
    actor: str | None = None
    event_type: str | None = None
    status: str | None = None
    occurred_at: int | None = None
    title: str = ""
    source: str | None = None
    source_id: str | None = None
    url: str | None = None
    metadata: dict[str, Any] = {}


class Skipped(Struct, frozen=True, kw_only=True):
    """Entries that were not stored: the reason, their number and their indexes."""

    reason: str
    count: int
    indexes: list[int]


class ParsedDrafts(Struct, frozen=True, kw_only=True):
    """The parsed entries of a call, and the skipped ones."""

    drafts: list[Draft]
    skipped: list[Skipped]


def parse_drafts(entries: Sequence[Any]) -> ParsedDrafts:
    drafts: list[Draft] = []
    reasons: dict[str, list[int]] = {}
    for index, entry in enumerate(entries):
        read = draft_of(entry, index)
        if isinstance(read, Draft):
            drafts.append(read)
        else:
            reasons.setdefault(read, []).append(index)
    return ParsedDrafts(
        drafts=drafts,
        skipped=[
            Skipped(reason=reason, count=len(at), indexes=at) for reason, at in reasons.items()
        ],
    )


def draft_of(entry: Any, index: int = 0) -> Draft | str:
    """The draft of an entry, or the reason why it has none."""
    if isinstance(entry, str):
        return Draft(index=index, text=entry) if entry.strip() else "empty text"
    if not isinstance(entry, dict):
        return "neither a text nor an object"
    return _from_object(dict(cast("dict[str, Any]", entry)), index)


def _from_object(rest: dict[str, Any], index: int) -> Draft | str:
    inner = rest.get("message")
    if isinstance(inner, dict):  # {"type": …, "message": {"role": …, "content": …}}
        del rest["message"]
        rest = {**rest, **cast("dict[str, Any]", inner)}
    text = _take_text(rest)
    if text is None:
        return f"no text under {', '.join(TEXT_KEYS)}"
    if not text.strip():
        return "empty text"
    metadata = rest.pop("metadata", None)
    if metadata is not None and not isinstance(metadata, dict):
        metadata = {"metadata": metadata}
    actor = _take(rest, _ACTOR_KEYS, _actor)
    return Draft(
        index=index,
        text=text,
        actor=actor,
        event_type=_take(rest, _TYPE_KEYS, _label),
        status=_take(rest, ("status",), _status),
        occurred_at=_take(rest, _TIME_KEYS, time_of),
        title=_take(rest, ("title", "name"), _label) or "",
        source=_take(rest, ("source",), _label),
        source_id=_take(rest, ("source_id", "id", "path", "uri"), _label),
        url=_take(rest, ("url", "source_url"), _label),
        metadata={**rest, **cast("dict[str, Any]", metadata or {})},
    )


def flatten(value: Any) -> str | None:
    """The text of a message's content, which is a text or a list of blocks."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return _take_text(dict(cast("dict[str, Any]", value)))
    if isinstance(value, list):
        pieces = [flatten(block) for block in cast("list[Any]", value)]
        texts = [piece for piece in pieces if piece]
        return "\n".join(texts) if texts else None
    return None


def time_of(value: Any) -> int | None:
    """Unix milliseconds of an ISO 8601 time or a unix time; None for any other value."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return int(value * 1000 if abs(value) < _SECONDS else value)
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value.strip().replace("Z", "+00:00"))
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1000)


def _take_text(rest: dict[str, Any]) -> str | None:
    """Remove the first text from the object and return it."""
    for key in TEXT_KEYS:
        text = flatten(rest.get(key))
        if text is not None and text.strip():
            # Blocks without text (images, calls) stay in the object and so in the metadata.
            if isinstance(rest[key], str) or _is_all_text(rest[key]):
                del rest[key]
            return text
    return None


def _is_all_text(value: Any) -> bool:
    if not isinstance(value, list):
        return False
    return all(
        isinstance(block, str)
        or (isinstance(block, dict) and set(cast("dict[str, Any]", block)) <= {"type", "text"})
        for block in cast("list[Any]", value)
    )


def _take(rest: dict[str, Any], keys: Iterable[str], read: Any) -> Any:
    """Remove the first of these members that can be read, and return its value."""
    for key in keys:
        if key in rest:
            value = read(rest[key])
            if value is not None:
                del rest[key]
                return value
    return None


def _actor(value: Any) -> str | None:
    plain = value.strip().lower() if isinstance(value, str) else ""
    actor = _ACTORS.get(plain, plain)
    return actor if actor in detection.ACTORS else None


def _label(value: Any) -> str | None:
    return value if isinstance(value, str) and value.strip() and len(value) <= 1000 else None


def _status(value: Any) -> str | None:
    return value if value in ("open", "in_progress", "resolved", "noted") else None

"""Conversion of foreign values: times in any spelling, tags, texts and metadata."""

import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any, Final, cast

#: Numbers below these are seconds, milliseconds or microseconds since 1970. They mean the year 5138
#: at the earliest, in the smaller unit the year 1973 at the latest.
_SECONDS_BELOW: Final = 1e11
_MILLISECONDS_BELOW: Final = 1e14
_MICROSECONDS_BELOW: Final = 1e17
_EARLIEST: Final = -62_135_596_800_000
_LATEST: Final = 253_402_300_799_999


def milliseconds(value: Any) -> int | None:
    """The unix milliseconds of a number or an ISO 8601 text; None for anything else.

    A text without an offset is UTC.
    """
    if isinstance(value, str):
        return _from_text(value.strip())
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    size = abs(value)
    if size < _SECONDS_BELOW:
        value *= 1000
    elif size >= _MICROSECONDS_BELOW:
        value /= 1_000_000
    elif size >= _MILLISECONDS_BELOW:
        value /= 1000
    return _in_range(round(value))


def _from_text(text: str) -> int | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        pass
    else:
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return _in_range(round(moment.timestamp() * 1000))
    try:
        return milliseconds(float(text)) if len(text) < 32 else None
    except ValueError:
        return None


def _in_range(value: int) -> int | None:
    return value if _EARLIEST <= value <= _LATEST else None


def tags_of(value: Any) -> tuple[str, ...]:
    """Distinct tags from a list of texts, or from a text with commas."""
    if isinstance(value, str):
        parts: Iterable[Any] = value.split(",")
    elif isinstance(value, list | tuple):
        parts = cast("list[Any]", value)
    else:
        return ()
    texts = (part.strip() for part in parts if isinstance(part, str))
    return tuple(dict.fromkeys(text for text in texts if text))


def text_of(value: Any) -> str | None:
    """A text that is not blank; None for anything else."""
    return value if isinstance(value, str) and value.strip() else None


def share_of(value: Any) -> float | None:
    """A number from 0 to 1; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= 1 else None


def object_of(value: Any) -> dict[str, Any]:
    """A JSON object; an empty one for anything else."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def list_of(value: Any) -> list[Any]:
    """A JSON list; an empty one for anything else."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def objects_of(value: Any) -> list[dict[str, Any]]:
    """The JSON objects of a list; an empty list for anything else."""
    return [object_of(entry) for entry in list_of(value) if isinstance(entry, dict)]


def first_objects(value: Any, names: Iterable[str]) -> list[dict[str, Any]]:
    """The objects of a list, or of the first member of an object that is a list of some."""
    if isinstance(value, list):
        return objects_of(cast("list[Any]", value))
    for name in names:
        found = objects_of(object_of(value).get(name))
        if found:
            return found
    return []


def present(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The members that have a value: not null, not blank and not empty."""
    return {name: value for name, value in fields.items() if value not in (None, "", [], {}, ())}


def content_id(*parts: str) -> str:
    """An id for an entry that has none: the hash of its content."""
    return blake2b("\0".join(parts).encode("utf-8", "replace"), digest_size=16).hexdigest()


def short_id(text: str) -> str:
    """The text itself as an id, or its hash if it is long."""
    return text if len(text) <= 250 else content_id(text)

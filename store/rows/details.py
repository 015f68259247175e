"""The members of `details` that the engine itself reads, by kind of item.

Other members may be any JSON value. The engine reads these as lists of steps, as texts or as
counts, so a value of another type would break a later search.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from store.errors import InvalidInput
from store.model import Kind


class SearchedDetails(Struct):
    """The members that are indexed for every kind; see `items.searchable`."""

    methods: list[str] = []
    triggers: list[str] = []
    mitigation: str = ""


class CardDetails(SearchedDetails):
    supersedes: str | None = None


class TaskDetails(SearchedDetails):
    effort: str | None = None


class EventDetails(SearchedDetails):
    task_status: str = ""  # of an open event that is worked on as a task


class NarrativeDetails(SearchedDetails):
    count: int = 0


class ChunkDetails(SearchedDetails):
    start: int = 0
    end: int = 0


_TYPES: Final[dict[Kind, type[SearchedDetails]]] = {
    "card": CardDetails,
    "event": EventDetails,
    "task": TaskDetails,
    "narrative": NarrativeDetails,
    "chunk": ChunkDetails,
}


def check_details(kind: Kind, details: Mapping[str, Any]) -> None:
    """Refuse details that the engine could not read back."""
    if not details:
        return
    try:
        msgspec.convert(details, _TYPES.get(kind, SearchedDetails))
    except msgspec.ValidationError as error:
        raise InvalidInput("details", f"must have the types of this kind: {error}") from None

"""What only one kind of item has: the members of `details` that the engine itself reads.

Other members may be anything JSON can say. These are read back as steps, quotations or counts, so
a value of another type would be accepted today and break a search tomorrow.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from store.errors import InvalidInput
from store.model import Kind


class Searched(Struct):
    """Found by its words, whatever the kind; see `items.searchable`."""

    methods: list[str] = []
    triggers: list[str] = []
    mitigation: str = ""


class CardDetails(Searched):
    supersedes: str | None = None


class TaskDetails(Searched):
    effort: str | None = None


class NarrativeDetails(Searched):
    count: int = 0


class ChunkDetails(Searched):
    start: int = 0
    end: int = 0


_OF: Final[dict[Kind, type[Searched]]] = {
    "card": CardDetails,
    "task": TaskDetails,
    "narrative": NarrativeDetails,
    "chunk": ChunkDetails,
}


def check_details(kind: Kind, details: Mapping[str, Any]) -> None:
    """Refuse details that could not be read back."""
    if not details:
        return
    try:
        msgspec.convert(details, _OF.get(kind, Searched))
    except msgspec.ValidationError as error:
        raise InvalidInput("details", f"must be as this kind has them: {error}") from None

"""The values that a reader of a foreign program yields, and the description of a foreign kind."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

ItemKind = Literal["memory", "event", "card", "task", "risk", "narrative", "skill"]


class Memory(Struct, frozen=True, kw_only=True):
    """A memory of another program. Times are unix milliseconds."""

    original_id: str
    text: str
    kind: ItemKind = "memory"
    title: str = ""
    context: str | None = None
    category: str | None = None
    status: str | None = None
    level: str | None = None
    confidence: float | None = None
    session: str | None = None
    user: str | None = None
    role: str | None = None
    actor: str | None = None
    event_type: str | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = {}
    details: Mapping[str, Any] = {}
    created_at: int | None = None
    updated_at: int | None = None
    replaced_by: str | None = None  # the original id of the memory that supersedes this one


class ForeignDocument(Struct, frozen=True, kw_only=True):
    """A whole text of another program, which is found through its chunks."""

    original_id: str
    source: str
    source_id: str
    body: str
    title: str = ""
    author: str | None = None
    url: str | None = None
    content_type: str = "text/plain"
    metadata: Mapping[str, Any] = {}
    created_at: int | None = None
    updated_at: int | None = None


class Own(Struct, frozen=True, kw_only=True):
    """An item that recalld exported, with every column as it was."""

    record: dict[str, Any]


class Rejected(Struct, frozen=True, kw_only=True):
    """An entry that cannot be imported: its place or id, and the reason."""

    where: str
    reason: str


Found = Memory | ForeignDocument | Own | Rejected


class WrongKind(Exception):
    """The path does not hold the data of this kind; the message says what is missing."""


class ForeignKind(Struct, frozen=True, kw_only=True):
    """A kind of foreign data: how it is recognised, and how it is read.

    `missing` returns None if the path holds such data, otherwise what is missing, as in "it has no
    table `memories`". It reads little, because detection asks every kind.
    """

    name: str
    title: str  # the program, for messages
    missing: Callable[[Path], str | None]
    read: Callable[[Path], Iterator[Found]]
    #: The usual places of the data: paths relative to the home directory, best first.
    usual: tuple[str, ...] = ()
    #: Environment variables that name the place, with the path below it.
    variables: tuple[tuple[str, str], ...] = ()
    #: Whether the program's ids are unique everywhere, so that they become ids here.
    keeps_ids: bool = False
    #: Whether `--from` is not needed for this data. General formats fit too much.
    is_detected: bool = True

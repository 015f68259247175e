"""The interface of a connector: it lists the documents of one source and reads their content.

A connector decides nothing: the sync compares its listing with the ledger. Blocking work belongs
on a thread or in a child process, because these methods run on the event loop.

A listing must be honest about its completeness. A folder that cannot be listed is an `Unlisted`
entry; a source that cannot be reached raises `SourceUnavailable`. In both cases no document is
deleted. A file that is left out on purpose is a `Skipped` entry.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from daemon.sources.definition import Definition


class SourceUnavailable(Exception):
    """The source cannot be reached or read. The message is shown to the owner."""


class FileUnreadable(Exception):
    """One file cannot be read; the sync counts it and goes on."""


class FileVanished(Exception):
    """A file was deleted between its listing and its reading."""


class Listed(Struct, frozen=True, kw_only=True):
    """One document in the listing of a source.

    Equal versions mean equal content. With an empty version the content is always read and its
    digest is compared. If `text` is given, the listing has delivered the content already, `read`
    is not called, and the text is stored as it is.
    """

    source_id: str  # unique in the source, for example docs/auth.md
    version: str = ""
    size: int | None = None  # bytes
    text: str | None = None
    content_type: str = ""  # derived from the name if empty
    title: str = ""  # derived from the content if empty
    author: str | None = None
    url: str | None = None
    metadata: Mapping[str, Any] = {}
    created_at: int | None = None  # unix milliseconds
    updated_at: int | None = None
    #: Whether `updated_at` belongs to the content (a commit), so that a new date alone is a change.
    #: The time of a file does not: copying and checking out files changes it.
    is_dated: bool = False


class Skipped(Struct, frozen=True, kw_only=True):
    """A document that exists and is left out. If it was stored earlier, it is deleted."""

    source_id: str
    reason: str


class Unlisted(Struct, frozen=True, kw_only=True):
    """A part of the source that could not be listed: nothing may be deleted in this run."""

    source_id: str
    reason: str


Entry = Listed | Skipped | Unlisted


class Connector(Protocol):
    """One source during one run. `close` is always called."""

    @property
    def place(self) -> str:
        """The identity of the root, for example device and inode; empty if it has none.

        If it differs from that of the last run, deletions are withheld.
        """
        ...

    def entries(self, under: Sequence[str] = ()) -> AsyncGenerator[Entry]:
        """The documents of the source; with `under`, those at or below these paths."""
        ...

    async def read(self, listed: Listed) -> bytes:
        """The content of one document.

        Raises `FileVanished`, `FileUnreadable`, or `SourceUnavailable` to end the run.
        """
        ...

    async def close(self) -> None: ...


class ConnectorFactory(Protocol):
    """Opens the connector of a definition. `SourceUnavailable` if that is not possible."""

    async def __call__(self, definition: Definition, /) -> Connector: ...

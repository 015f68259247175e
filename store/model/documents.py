"""Documents: whole texts from other systems, which are found through their chunks."""

from collections.abc import Mapping
from typing import Any, Final, Literal

from msgspec import Struct

from store.model.items import TEXT_LIMIT, Provenance

DOCUMENT_LIMIT: Final = 16 * TEXT_LIMIT  # bytes of UTF-8 in a body


class NewDocument(Struct, frozen=True, kw_only=True):
    """A document to be stored and cut into chunks, identified by `source` and `source_id`."""

    source: str
    source_id: str
    body: str
    id: str | None = None
    title: str = ""
    author: str | None = None
    url: str | None = None
    content_type: str = "text/plain"
    metadata: Mapping[str, Any] = {}
    created_at: int | None = None
    updated_at: int | None = None
    session: str | None = None
    user: str | None = None
    role: str | None = None
    provenance: Provenance = Provenance()
    run: str | None = None  # the import run; `sweep_documents` deletes documents of other runs
    moved_from: str | None = None  # the former `source_id`; the document there keeps its id
    is_numbered: bool = False  # the lines of the body are those of a file, so chunks record them


class DocumentHeader(Struct, frozen=True, kw_only=True):
    """A stored document without its body. `updated_at` is the document's own date.

    `indexed_at` is the time at which the engine stored this version of it.
    """

    rowid: int
    id: str
    source: str
    source_id: str
    title: str
    author: str | None
    url: str | None
    content_type: str
    metadata: Mapping[str, Any]
    created_at: int
    updated_at: int
    indexed_at: int
    chunks: int
    run: str | None = None


class Document(DocumentHeader, frozen=True, kw_only=True):
    """A stored document with its body."""

    body: str


class Upserted(Struct, frozen=True, kw_only=True):
    """The result of putting a document: whether it was new, changed or unchanged."""

    id: str
    outcome: Literal["created", "updated", "unchanged"]
    chunks: int
    chunks_kept: int = 0


class SourceCount(Struct, frozen=True, kw_only=True):
    """The number of documents and chunks of one source."""

    source: str
    documents: int
    chunks: int
    indexed_at: int

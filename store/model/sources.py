"""The ledger of a document source: the files that it held when it was last compared."""

from typing import Final

from msgspec import Struct

from store.model.documents import NewDocument

#: The `run` of every document that a sync put. Other documents of the same source are left alone.
SYNC_RUN: Final = "sync"


class SourceFile(Struct, frozen=True, kw_only=True):
    """One file of a source, as it was when it was last read.

    Equal versions mean equal content. `ledger` identifies the definition of the source under which
    the file was seen. `document` is None if the file was not stored, for example because it could
    not be parsed.
    """

    source_id: str
    version: str
    digest: str  # of the file's bytes, in hexadecimal digits
    ledger: str
    document: str | None = None


class DocumentHead(Struct, frozen=True, kw_only=True):
    """The fields of a document that can change while its text stays the same."""

    author: str | None = None
    url: str | None = None
    updated_at: int | None = None


class SyncedFile(Struct, frozen=True, kw_only=True):
    """A file to be recorded, with its new document or its new head if there is one.

    If neither is given, the document stays as it is. `moved_from` is the former `source_id` of a
    file that was renamed; its document keeps its id.
    """

    file: SourceFile
    document: NewDocument | None = None
    head: DocumentHead | None = None
    moved_from: str | None = None
    #: Whether the file no longer has a document; an older one is deleted.
    is_unusable: bool = False


class SourceBatch(Struct, frozen=True, kw_only=True):
    """Changes of one source that are written in one transaction."""

    source: str
    files: tuple[SyncedFile, ...] = ()
    removed: tuple[str, ...] = ()  # the `source_id` of files that no longer exist


class SourceRecord(Struct, frozen=True, kw_only=True):
    """The record of a source in the catalogue: JSON texts that the engine does not interpret.

    `definition` is None if the source is defined elsewhere, in a configuration file.
    """

    name: str
    definition: str | None
    state: str

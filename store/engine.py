"""The engine's interface: all operations on banks, independent of the storage below.

`store.sqlite.engine.EmbeddedEngine` implements it. Every operation may raise `StoreError`. When an
operation returns, its effect is on stable storage.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from store.model import (
    AgentProfile,
    BackedUp,
    Bank,
    BankMap,
    BulkChange,
    Card,
    CardOutcome,
    Checked,
    Day,
    Document,
    DocumentHeader,
    EngineHealth,
    Erased,
    Exported,
    Facets,
    Filters,
    Forgotten,
    Found,
    GrowthDay,
    Imported,
    Item,
    Kind,
    Narrative,
    NewCard,
    NewDocument,
    NewMemory,
    NewNarrative,
    NewNotes,
    NewRisk,
    NewSkill,
    NewTask,
    NotesKept,
    Page,
    Put,
    Query,
    Recovered,
    Risk,
    SessionActivity,
    Skill,
    SourceBatch,
    SourceCount,
    SourceFile,
    SourceRecord,
    Stage,
    Stats,
    Task,
    Upserted,
)
from store.sessions import Sessions

#: Called with the number of finished steps and the total. The engine may call it on one of its
#: threads and before the commit. If the work is repeated, the count begins again.
Progress = Callable[[int, int], None]
ANY = Filters()


class SourceRecords(Protocol):
    """The records of document sources, by name; see `SourceRecord`."""

    async def all(self) -> list[SourceRecord]: ...
    async def save(self, name: str, *, definition: str | None, state: str) -> None:
        """Create or replace a record; committed on return."""
        ...

    async def remove(self, name: str) -> None: ...


class Engine(Protocol):
    """The operations of an engine. `bank` is always the name of a bank.

    Operations on an unknown bank raise `BankNotFound`, except those that put something: they create
    the bank.
    """

    @property
    def sessions(self) -> Sessions: ...

    # --- banks -----------------------------------------------------------------------------
    async def bank(self, name: str) -> Bank: ...
    async def banks(self) -> list[Bank]: ...
    async def create_bank(self, name: str, *, quota_bytes: int | None = None) -> Bank: ...
    async def rename_bank(self, name: str, new_name: str) -> Bank: ...
    async def set_quota(self, name: str, quota_bytes: int | None) -> Bank: ...
    async def delete_bank(self, name: str) -> None: ...

    # --- items -----------------------------------------------------------------------------
    async def put(self, bank: str, memory: NewMemory) -> Put:
        """Store a memory. Keyword search finds it when this returns."""
        ...

    async def put_many(
        self, bank: str, new: Sequence[NewMemory], *, progress: Progress | None = None
    ) -> list[Put]:
        """Store all of the memories or, on an error, none."""
        ...

    async def search(self, query: Query) -> Found: ...
    async def settle(self, bank: str, *, watch: Callable[[Stage], None] | None = None) -> None:
        """Wait until every vector is computed and every index is complete.

        `watch` is called after each batch of vectors and each part of the graph.
        """
        ...

    async def get(self, bank: str, id: str) -> Item: ...
    async def recent(
        self,
        bank: str,
        *,
        kinds: Sequence[Kind] = (),
        filters: Filters = ANY,
        limit: int = 20,
        offset: int = 0,
        before: int | None = None,
    ) -> Page:
        """Items in the order of their insertion, newest first.

        With `before`, a row number, the page begins with the next older item. Unlike an offset, it
        does not shift when items are added.
        """
        ...

    async def timeline(
        self,
        bank: str,
        *,
        kinds: Sequence[Kind] = ("event", "memory"),
        filters: Filters = ANY,
        limit: int = 50,
        offset: int = 0,
        newest_first: bool = True,
    ) -> Page:
        """Items in the order of their `occurred_at`."""
        ...

    async def change(
        self,
        bank: str,
        id: str,
        *,
        text: str | None = None,
        title: str | None = None,
        status: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        tags: Sequence[str] | None = None,
        occurred_at: int | None = None,
        expected_text: str | None = None,
    ) -> Item:
        """Change the given fields of an item; its id stays.

        With `expected_text`, raises `ItemChanged` if the item has another text.
        """
        ...

    async def forget(self, bank: str, ids: Sequence[str]) -> Forgotten:
        """Hide items from every operation. `undo` restores them for a limited time."""
        ...

    async def forget_where(
        self, bank: str, *, kinds: Sequence[Kind] = (), filters: Filters
    ) -> Forgotten: ...
    async def tag(
        self,
        bank: str,
        *,
        ids: Sequence[str] = (),
        kinds: Sequence[Kind] = (),
        filters: Filters | None = None,
        add: Sequence[str] = (),
        remove: Sequence[str] = (),
    ) -> BulkChange:
        """Add and remove tags of the items with these ids, or of those that pass the filters."""
        ...

    async def move(
        self,
        bank: str,
        to: str,
        *,
        ids: Sequence[str] = (),
        kinds: Sequence[Kind] = (),
        filters: Filters | None = None,
    ) -> BulkChange:
        """Move items to another bank, which is created if there is none. Their ids stay.

        Items whose id the other bank has already are skipped. Chunks move with no item: they belong
        to their document.
        """
        ...

    async def undo(self, bank: str, token: str) -> int:
        """Undo a forget, a move or a change of tags in the bank it began in."""
        ...

    async def erase(
        self,
        bank: str,
        ids: Sequence[str] = (),
        *,
        documents: Sequence[str] = (),
        reason: str = "asked for",
    ) -> Erased:
        """Remove every copy of these items, forgotten or not, from all files of the engine.

        A chunk is erased with its document: name the document, or all of its chunks.
        """
        ...

    async def erase_forgotten(self, bank: str, *, reason: str = "asked for") -> Erased: ...

    # --- summaries -------------------------------------------------------------------------
    async def facets(
        self, bank: str, *, kinds: Sequence[Kind] = (), filters: Filters = ANY
    ) -> Facets:
        """The most frequent kinds, sources, categories, tags, sessions and clients."""
        ...

    async def growth(self, bank: str, *, days: int = 90) -> list[GrowthDay]:
        """The items of each of the last days, also of days without items, oldest first."""
        ...

    async def map(self, bank: str, *, limit: int = 2_000) -> BankMap:
        """The newest items with vectors, placed by meaning; deterministic."""
        ...

    # --- documents -------------------------------------------------------------------------
    async def upsert_document(
        self, bank: str, document: NewDocument, *, progress: Progress | None = None
    ) -> Upserted: ...
    async def document(self, bank: str, id: str) -> Document: ...
    async def find_document(self, bank: str, source: str, source_id: str) -> Document | None: ...
    async def document_headers(self, bank: str, ids: Sequence[str]) -> list[DocumentHeader]:
        """The documents with these ids, without their bodies, in the order given.

        Unknown ids are left out.
        """
        ...

    async def documents(
        self, bank: str, *, source: str | None = None, limit: int = 50, offset: int = 0
    ) -> list[DocumentHeader]:
        """Documents without their bodies, most recently indexed first."""
        ...

    async def chunks(self, bank: str, document: str) -> list[Item]:
        """The chunks of a document, in their order."""
        ...

    async def delete_documents(self, bank: str, ids: Sequence[str]) -> int: ...
    async def sweep_documents(self, bank: str, source: str, run: str) -> int:
        """Delete the documents of a source that this import run did not put."""
        ...

    async def sources(self, bank: str) -> tuple[SourceCount, ...]: ...

    # --- ledgers of document sources -------------------------------------------------------
    @property
    def source_records(self) -> SourceRecords: ...

    async def source_files(
        self, bank: str, source: str, *, under: Sequence[str] = ()
    ) -> list[SourceFile]:
        """The files that a source held when it was last compared.

        With `under`, only these files and those below these folders.
        """
        ...

    async def count_synced(self, bank: str, source: str) -> int:
        """The number of documents of a source that were stored by `sync_documents`."""
        ...

    async def sync_documents(self, bank: str, batch: SourceBatch) -> list[Upserted | None]:
        """Write documents and their ledger entries in one transaction.

        The results belong to `batch.files`, None for a file without a new document. A document
        whose text is stored already is not cut into chunks.
        """
        ...

    # --- knowledge of agents ---------------------------------------------------------------
    async def put_notes(
        self, bank: str, notes: NewNotes, *, progress: Progress | None = None
    ) -> NotesKept:
        """Store cards, tasks, risks, events, profiles and task statuses in one transaction."""
        ...

    async def days(
        self,
        bank: str,
        *,
        kinds: Sequence[Kind] = ("event", "memory"),
        filters: Filters = ANY,
        each: int = 12,
        limit: int = 90,
    ) -> list[Day]:
        """The last days with items, latest first, each with its latest items."""
        ...

    async def put_cards(self, bank: str, new: Sequence[NewCard]) -> list[CardOutcome]: ...
    async def card(self, bank: str, id: str) -> Card: ...
    async def cards(
        self, bank: str, *, filters: Filters = ANY, limit: int = 50, offset: int = 0
    ) -> tuple[list[Card], int]: ...
    async def card_history(self, bank: str, id: str) -> list[Card]: ...
    async def change_card(self, bank: str, id: str, *, status: str) -> Card: ...
    async def put_tasks(self, bank: str, new: Sequence[NewTask]) -> list[Put]: ...
    async def tasks(
        self, bank: str, *, filters: Filters = ANY, limit: int = 50, offset: int = 0
    ) -> tuple[list[Task], int]: ...
    async def change_task(
        self,
        bank: str,
        id: str,
        *,
        status: str | None = None,
        priority: str | None = None,
        detail: str | None = None,
    ) -> Task: ...
    async def put_risks(self, bank: str, new: Sequence[NewRisk]) -> list[Put]: ...
    async def risks(
        self, bank: str, *, filters: Filters = ANY, limit: int = 50, offset: int = 0
    ) -> tuple[list[Risk], int]: ...
    async def change_risk(self, bank: str, id: str, *, status: str) -> Risk: ...
    async def put_skills(self, bank: str, new: Sequence[NewSkill]) -> list[Put]: ...
    async def skills(
        self, bank: str, *, filters: Filters = ANY, limit: int = 50
    ) -> list[Skill]: ...
    async def put_narrative(self, bank: str, narrative: NewNarrative) -> Put: ...
    async def narratives(
        self, bank: str, *, span: str = "day", limit: int = 30, filters: Filters = ANY
    ) -> list[Narrative]: ...
    async def put_profile(self, bank: str, profile: AgentProfile) -> None: ...
    async def profile(self, bank: str, agent_role: str) -> AgentProfile: ...
    async def profiles(self, bank: str) -> list[AgentProfile]: ...
    async def delete_profile(self, bank: str, agent_role: str) -> None: ...

    # --- statistics, health, maintenance ---------------------------------------------------
    async def stats(self, bank: str) -> Stats: ...
    async def sessions_in(self, bank: str, *, limit: int = 50) -> list[SessionActivity]: ...
    async def recover_banks(self) -> Recovered:
        """Add banks that exist on disk and are not listed to the list again."""
        ...

    def health(self) -> EngineHealth: ...
    async def pending_vectors(self) -> Mapping[str, int]:
        """The number of items without a vector in each open bank that has such items."""
        ...

    async def check(self, bank: str, *, progress: Progress | None = None) -> Checked: ...
    async def repair(self, bank: str, *, progress: Progress | None = None) -> Checked:
        """Move damaged rows out of the bank, rebuild derived data where needed, and check again."""
        ...

    async def rebuild(self, bank: str, *, progress: Progress | None = None) -> Checked:
        """Rebuild words and vectors from the rows."""
        ...

    async def export(
        self,
        bank: str,
        path: Path,
        *,
        progress: Progress | None = None,
        ids: Sequence[str] = (),
        kinds: Sequence[Kind] = (),
        filters: Filters | None = None,
    ) -> Exported:
        """Write the whole bank, the items with these ids, or those that pass the filters."""
        ...

    async def import_file(
        self,
        bank: str,
        path: Path,
        *,
        progress: Progress | None = None,
        dry_run: bool = False,
    ) -> Imported:
        """Add the records of an exported file. A dry run counts them and writes nothing."""
        ...

    async def back_up(self, bank: str, *, progress: Progress | None = None) -> BackedUp: ...
    async def backups(self, bank: str) -> list[BackedUp]: ...
    async def restore(self, bank: str, name: str, *, progress: Progress | None = None) -> BackedUp:
        """Replace the bank by a backup. The replaced state is backed up first."""
        ...

    async def close(self) -> None: ...

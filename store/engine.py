"""The engine, as everybody else knows it: verbs over banks, free of how they are kept.

`EmbeddedEngine` (embedded.py) is the first implementation. A second one would speak to a database
server; nothing in these signatures knows SQLite. Every verb may raise `StoreError`; a verb that
returns has done what it says, durably.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from store.model import (
    AgentProfile,
    BackedUp,
    Bank,
    Card,
    CardOutcome,
    Checked,
    Day,
    Document,
    DocumentHeader,
    EngineHealth,
    Erased,
    Exported,
    Filters,
    Forgotten,
    Found,
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
    Risk,
    SessionActivity,
    Skill,
    SourceCount,
    Stage,
    Stats,
    Task,
    Upserted,
)
from store.sqlite.sessions import Sessions

#: How many are done, of how many. May be called on a thread of the engine's, and before the commit;
#: should the work be done again, it counts from the beginning.
Progress = Callable[[int, int], None]
ANY = Filters()


class Engine(Protocol):
    """What a surface may ask for. `bank` is always a bank's name."""

    @property
    def sessions(self) -> Sessions: ...

    # --- banks: unknown ones are `BankNotFound`, except where something is put -------------
    def bank(self, name: str) -> Bank: ...
    def banks(self) -> list[Bank]: ...
    async def create_bank(self, name: str, *, quota_bytes: int | None = None) -> Bank: ...
    async def rename_bank(self, name: str, new_name: str) -> Bank: ...
    async def set_quota(self, name: str, quota_bytes: int | None) -> Bank: ...
    async def delete_bank(self, name: str) -> None: ...

    # --- items -----------------------------------------------------------------------------
    async def put(self, bank: str, memory: NewMemory) -> Put:
        """Keep a memory; it is found by its words when this returns. An unknown bank is made."""
        ...

    async def put_many(
        self, bank: str, new: Sequence[NewMemory], *, progress: Progress | None = None
    ) -> list[Put]:
        """Keep all of them or none."""
        ...

    async def search(self, query: Query) -> Found: ...
    async def settle(self, bank: str, *, watch: Callable[[Stage], None] | None = None) -> None:
        """Wait until all that was put can be found by meaning too; imports and benches do.

        `watch` hears how far it is, after each batch of vectors and each part of the graph.
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
    ) -> Page:
        """What arrived last, first."""
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
        """What happened, in order of when it happened."""
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
    ) -> Item: ...

    async def forget(self, bank: str, ids: Sequence[str]) -> Forgotten:
        """Make items unreachable at once; `undo` brings them back for a while."""
        ...

    async def forget_where(
        self, bank: str, *, kinds: Sequence[Kind] = (), filters: Filters
    ) -> Forgotten: ...
    async def undo(self, bank: str, token: str) -> int: ...
    async def erase(
        self,
        bank: str,
        ids: Sequence[str] = (),
        *,
        documents: Sequence[str] = (),
        reason: str = "asked for",
    ) -> Erased:
        """Leave no copy of these in any file of ours; forgotten ones included.

        A chunk goes with its document: name all of its chunks or, better, the document.
        """
        ...

    async def erase_forgotten(self, bank: str, *, reason: str = "asked for") -> Erased: ...

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
        """The chunks of a document, in its order."""
        ...

    async def delete_documents(self, bank: str, ids: Sequence[str]) -> int: ...
    async def sweep_documents(self, bank: str, source: str, run: str) -> int:
        """Delete the documents of a source that this import run did not see."""
        ...

    async def sources(self, bank: str) -> tuple[SourceCount, ...]: ...

    # --- what agents write down ------------------------------------------------------------
    async def put_notes(
        self, bank: str, notes: NewNotes, *, progress: Progress | None = None
    ) -> NotesKept:
        """Keep cards, tasks, risks, events, profiles and new task statuses: all or none."""
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
        """The last days on which something happened, latest first, with the latest of each."""
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

    # --- numbers, health, care -------------------------------------------------------------
    async def stats(self, bank: str) -> Stats: ...
    async def sessions_in(self, bank: str, *, limit: int = 50) -> list[SessionActivity]: ...
    def health(self) -> EngineHealth: ...
    async def check(self, bank: str) -> Checked: ...
    async def repair(self, bank: str) -> Checked:
        """Mend what follows from the rows, put damaged rows aside, and check again."""
        ...

    async def rebuild(self, bank: str) -> Checked:
        """Make words and vectors again from the rows."""
        ...

    async def export(
        self, bank: str, path: Path, *, progress: Progress | None = None
    ) -> Exported: ...
    async def import_file(
        self, bank: str, path: Path, *, progress: Progress | None = None
    ) -> Imported: ...
    async def back_up(self, bank: str) -> BackedUp: ...
    async def backups(self, bank: str) -> list[BackedUp]: ...
    async def restore(self, bank: str, name: str) -> BackedUp:
        """Put a backup in the bank's place; what was there becomes a backup itself."""
        ...

    async def close(self) -> None: ...

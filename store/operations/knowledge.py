"""Operations on the knowledge agents write: cards, tasks, risks, skills, narratives, profiles."""

from collections.abc import Sequence
from typing import Any, TypeVar

from store.arguments import (
    PAGE_LIMIT,
    bank_argument,
    callback,
    checked,
    checked_filters,
    checked_list,
    kinds_argument,
    optional_text,
    page_arguments,
)
from store.engine import ANY, Progress
from store.errors import BankNotFound
from store.model import (
    AgentProfile,
    Card,
    CardOutcome,
    Day,
    Filters,
    Kind,
    Narrative,
    NewCard,
    NewNarrative,
    NewNotes,
    NewRisk,
    NewSkill,
    NewTask,
    NotesKept,
    Put,
    Risk,
    Skill,
    Task,
)
from store.operations.bank_access import BankAccess, off_loop_if_large
from store.rows import cards, days, memories, skills, tasks
from store.rows.items import find
from store.rows.prepared import prepare
from store.rows.transaction import WriteTransaction
from store.validate import check_range, integer, storable_text

T = TypeVar("T")


class Knowledge(BankAccess):
    """See `store.engine.Engine`."""

    async def put_notes(
        self, bank: str, notes: NewNotes, *, progress: Progress | None = None
    ) -> NotesKept:
        bank = bank_argument(bank)
        notes = checked(NewNotes, notes)
        progress = callback("progress", progress)
        now = self._now()
        events = await off_loop_if_large(
            sum(len(event.text) for event in notes.events),
            lambda: [prepare(event, now) for event in notes.events],
        )
        total = len(events) + len(notes.cards) + len(notes.tasks) + len(notes.risks)
        closeness = await self._closeness(bank, notes.cards)

        def work(changes: WriteTransaction) -> NotesKept:
            done = 0

            def step(kept: T) -> T:
                nonlocal done
                done += 1
                if progress is not None:
                    progress(done, total)
                return kept

            for profile in notes.profiles:
                skills.put_profile(changes.connection, profile, now)
            for role in notes.deleted_profiles:
                skills.delete_profile(changes.connection, role)
            # Events first, because the cards may quote them.
            return NotesKept(
                events=tuple(step(memories.put(changes, event)) for event in events),
                cards=tuple(step(cards.put(changes, card, now, closeness)) for card in notes.cards),
                tasks=tuple(step(tasks.put(changes, task, now)) for task in notes.tasks),
                risks=tuple(step(tasks.put_risk(changes, risk, now)) for risk in notes.risks),
                changed=tuple(
                    tasks.change(changes, id, now, status=status)
                    for id, status in notes.task_statuses
                ),
            )

        return await self._put(bank, work)

    async def days(
        self,
        bank: str,
        *,
        kinds: Sequence[Kind] = ("event", "memory"),
        filters: Filters = ANY,
        each: int = 12,
        limit: int = 90,
    ) -> list[Day]:
        bank, kinds = bank_argument(bank), kinds_argument(kinds)
        filters, each = checked_filters(filters), integer("each", each)
        limit, _ = page_arguments(limit)
        check_range("each", each, 0, PAGE_LIMIT)
        return await self._read(
            bank,
            lambda connection: days.days(
                connection, kinds=kinds, filters=filters, each=each, limit=limit
            ),
        )

    async def put_cards(self, bank: str, new: Sequence[NewCard]) -> list[CardOutcome]:
        bank = bank_argument(bank)
        new = checked_list(NewCard, new, "cards")
        now = self._now()
        closeness = await self._closeness(bank, new)
        return await self._put(
            bank, lambda changes: [cards.put(changes, c, now, closeness) for c in new]
        )

    async def _closeness(self, bank: str, new: Sequence[NewCard]) -> cards.Closeness:
        """The cosines that decide which of these cards repeat or replace others.

        They are computed before the transaction, because the model is slow and has a thread of its
        own. The model is loaded only if words alone do not decide.
        """
        if not new:
            return cards.not_compared
        try:
            texts = await self._read(
                bank, lambda connection: cards.undecided_texts(connection, new)
            )
        except BankNotFound:
            texts = cards.undecided_texts(None, new)
        return cosines(texts, await self._ranking.vectors(texts)) if texts else cards.not_compared

    async def card(self, bank: str, id: str) -> Card:
        bank, id = bank_argument(bank), storable_text("id", id)
        return await self._read(
            bank, lambda connection: cards.card_of(connection, find(connection, id, kind="card"))
        )

    async def cards(
        self, bank: str, *, filters: Filters = ANY, limit: int = 50, offset: int = 0
    ) -> tuple[list[Card], int]:
        bank, filters = bank_argument(bank), checked_filters(filters)
        limit, offset = page_arguments(limit, offset)
        return await self._read(
            bank, lambda connection: cards.page(connection, filters, limit=limit, offset=offset)
        )

    async def card_history(self, bank: str, id: str) -> list[Card]:
        bank, id = bank_argument(bank), storable_text("id", id)
        return await self._read(bank, lambda connection: cards.history(connection, id))

    async def change_card(self, bank: str, id: str, *, status: str) -> Card:
        bank, id = bank_argument(bank), storable_text("id", id)
        status = storable_text("status", status)
        now = self._now()
        return await self._write(
            bank, lambda changes: cards.change(changes, id, now, status=status)
        )

    async def put_tasks(self, bank: str, new: Sequence[NewTask]) -> list[Put]:
        bank = bank_argument(bank)
        new = checked_list(NewTask, new, "tasks")
        now = self._now()
        return await self._put(bank, lambda changes: [tasks.put(changes, t, now) for t in new])

    async def tasks(
        self, bank: str, *, filters: Filters = ANY, limit: int = 50, offset: int = 0
    ) -> tuple[list[Task], int]:
        bank, filters = bank_argument(bank), checked_filters(filters)
        limit, offset = page_arguments(limit, offset)
        return await self._read(
            bank, lambda connection: tasks.page(connection, filters, limit=limit, offset=offset)
        )

    async def change_task(
        self,
        bank: str,
        id: str,
        *,
        status: str | None = None,
        priority: str | None = None,
        detail: str | None = None,
    ) -> Task:
        bank, id = bank_argument(bank), storable_text("id", id)
        status, priority = optional_text("status", status), optional_text("priority", priority)
        detail = optional_text("detail", detail)
        now = self._now()
        return await self._write(
            bank,
            lambda changes: tasks.change(
                changes, id, now, status=status, priority=priority, detail=detail
            ),
            grows=True,
        )

    async def put_risks(self, bank: str, new: Sequence[NewRisk]) -> list[Put]:
        bank = bank_argument(bank)
        new = checked_list(NewRisk, new, "risks")
        now = self._now()
        return await self._put(bank, lambda changes: [tasks.put_risk(changes, r, now) for r in new])

    async def risks(
        self, bank: str, *, filters: Filters = ANY, limit: int = 50, offset: int = 0
    ) -> tuple[list[Risk], int]:
        bank, filters = bank_argument(bank), checked_filters(filters)
        limit, offset = page_arguments(limit, offset)
        return await self._read(
            bank,
            lambda connection: tasks.risk_page(connection, filters, limit=limit, offset=offset),
        )

    async def change_risk(self, bank: str, id: str, *, status: str) -> Risk:
        bank, id = bank_argument(bank), storable_text("id", id)
        status = storable_text("status", status)
        now = self._now()
        return await self._write(
            bank, lambda changes: tasks.change_risk(changes, id, now, status=status)
        )

    async def put_skills(self, bank: str, new: Sequence[NewSkill]) -> list[Put]:
        bank = bank_argument(bank)
        new = checked_list(NewSkill, new, "skills")
        now = self._now()
        return await self._put(
            bank, lambda changes: [skills.put_skill(changes, s, now) for s in new]
        )

    async def skills(self, bank: str, *, filters: Filters = ANY, limit: int = 50) -> list[Skill]:
        bank, filters = bank_argument(bank), checked_filters(filters)
        limit, _ = page_arguments(limit)
        return await self._read(
            bank, lambda connection: skills.skills(connection, filters, limit=limit)
        )

    async def put_narrative(self, bank: str, narrative: NewNarrative) -> Put:
        bank, narrative = bank_argument(bank), checked(NewNarrative, narrative)
        now = self._now()
        return await self._put(bank, lambda changes: skills.put_narrative(changes, narrative, now))

    async def narratives(
        self, bank: str, *, span: str = "day", limit: int = 30, filters: Filters = ANY
    ) -> list[Narrative]:
        bank, filters = bank_argument(bank), checked_filters(filters)
        span = storable_text("span", span)
        limit, _ = page_arguments(limit)
        return await self._read(
            bank,
            lambda connection: skills.narratives(
                connection, span=span, limit=limit, filters=filters
            ),
        )

    async def put_profile(self, bank: str, profile: AgentProfile) -> None:
        bank, profile = bank_argument(bank), checked(AgentProfile, profile)
        now = self._now()
        await self._put(bank, lambda changes: skills.put_profile(changes.connection, profile, now))

    async def profile(self, bank: str, agent_role: str) -> AgentProfile:
        bank, agent_role = bank_argument(bank), storable_text("agent_role", agent_role)
        return await self._read(bank, lambda connection: skills.profile(connection, agent_role))

    async def profiles(self, bank: str) -> list[AgentProfile]:
        bank = bank_argument(bank)
        return await self._read(bank, skills.profiles)

    async def delete_profile(self, bank: str, agent_role: str) -> None:
        bank, agent_role = bank_argument(bank), storable_text("agent_role", agent_role)
        await self._write(
            bank, lambda changes: skills.delete_profile(changes.connection, agent_role)
        )


def cosines(texts: Sequence[str], vectors: Any) -> cards.Closeness:
    """The cosines of texts by their vectors; unknown without vectors."""
    if vectors is None:
        return cards.not_compared
    rows = dict(zip(texts, vectors, strict=True))

    def closeness(one: str, other: str) -> float | None:
        if one not in rows or other not in rows:
            return None
        return float(rows[one] @ rows[other])

    return closeness

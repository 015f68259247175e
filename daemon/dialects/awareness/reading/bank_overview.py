"""Overview of a memory: recent days, open tasks, cards, sessions and skills.

`awareness_init`, the lookups `context` and `handoff`, and the recall modes with structured data all
use it.
"""

from collections.abc import Collection, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from daemon.dialects.awareness import answers
from daemon.dialects.awareness.answers import BriefCard, DayView, SessionView, SkillView, TaskView
from daemon.dialects.awareness.language import summaries
from daemon.dialects.awareness.language.vocabulary import PREFERENCE
from daemon.dialects.awareness.memory import MemoryReader
from daemon.tools.toolkit import iso
from store.model import Card, Filters, Item

DAY_MS: Final = 86_400_000
MOST_DAYS: Final = 90
OPEN_TASKS: Final = ("pending", "in_progress")
LIVE_CARDS: Final = ("open", "in_progress", "resolved", "noted")
SKILLS: Final = 10
SESSIONS: Final = 3
PREFERENCES: Final = 5
#: Length of summaries in an overview; a lookup returns the whole text.
SUMMARY: Final = 300
DETAIL: Final = 200


class MemoryContext(Struct, frozen=True, kw_only=True):
    """The `context` of the Awareness document."""

    recent_days: list[DayView]
    open_tasks: list[TaskView]
    knowledge_cards: list[BriefCard]
    last_sessions: list[SessionView]
    days_included: int
    generated_at: str


async def overview(
    reader: MemoryReader, *, days: int, max_cards: int, max_tasks: int, filters: Filters
) -> MemoryContext:
    """The overview of a memory, with at most the given number of entries per part."""
    return MemoryContext(
        recent_days=await recent_days(reader, days, filters),
        open_tasks=await open_tasks(reader, max_tasks, filters),
        knowledge_cards=await top_cards(reader, max_cards, filters),
        last_sessions=await last_sessions(reader, filters),
        days_included=days,
        generated_at=iso(reader.now()),
    )


async def recent_days(
    reader: MemoryReader, days: int, filters: Filters, shown: Collection[str] = ()
) -> list[DayView]:
    """Summaries of the days with events among the last `days`, latest first.

    The events in `shown` (ids) are part of the same answer, so a summary prefers other ones.
    """
    today = reader.now() // DAY_MS * DAY_MS
    since = msgspec.structs.replace(filters, since=today - (days - 1) * DAY_MS)
    found = await reader.engine.days(
        reader.bank, filters=since, each=12 if days <= 14 else 6, limit=days
    )
    return [
        DayView(
            date=day.date,
            narrative=summaries.summarise(
                [item for item in day.items if item.id not in shown] or day.items
            ),
            count=day.count,
        )
        for day in found
    ]


async def open_tasks(reader: MemoryReader, limit: int, filters: Filters) -> list[TaskView]:
    if limit == 0:
        return []
    wanted = msgspec.structs.replace(filters, statuses=OPEN_TASKS)
    tasks, _ = await reader.engine.tasks(reader.bank, filters=wanted, limit=limit)
    return [_short_task(answers.task_view(task)) for task in tasks]


async def top_cards(reader: MemoryReader, limit: int, filters: Filters) -> list[BriefCard]:
    """The newest cards; stated preferences, salient cards and open cards come first.

    A preference that was only recorded as an event is shown like a card, until a card quotes it.
    """
    if limit == 0:
        return []
    wanted = msgspec.structs.replace(filters, statuses=LIVE_CARDS)
    cards, _ = await reader.engine.cards(reader.bank, filters=wanted, limit=max(limit, 50))
    cards.sort(key=lambda card: -(answers.salience_of(card) + (card.status == "open")))
    preferences = await _stated_preferences(reader, filters, cards)
    return [*preferences, *(_short_card(answers.brief_card(card)) for card in cards)][:limit]


async def _stated_preferences(
    reader: MemoryReader, filters: Filters, cards: Sequence[Card]
) -> list[BriefCard]:
    """The latest events that state a preference and that no card quotes."""
    stated = await reader.engine.recent(
        reader.bank,
        kinds=("event",),
        filters=msgspec.structs.replace(filters, categories=(PREFERENCE,)),
        limit=PREFERENCES,
    )
    quoted = {piece.item for card in cards for piece in card.evidence}
    texts = {card.summary.casefold() for card in cards}
    return [
        BriefCard(
            id=event.id,
            category=PREFERENCE,
            title=summaries.first_sentence(event.text, 120),
            summary=summaries.clip(event.text, SUMMARY),
            tags=event.tags,
            confidence=event.confidence,
            status=event.status or "noted",
        )
        for event in stated.items
        if event.id not in quoted and event.text.casefold() not in texts
    ]


async def last_sessions(
    reader: MemoryReader, filters: Filters, limit: int = SESSIONS
) -> list[SessionView]:
    """The sessions summarised most recently, latest first."""
    wanted = msgspec.structs.replace(filters, categories=("session",))
    found = await reader.engine.recent(
        reader.bank, kinds=("narrative",), filters=wanted, limit=limit
    )
    return [session_view(item) for item in found.items]


def session_view(summary: Item) -> SessionView:
    return SessionView(
        session_id=summary.title or summary.session or "",
        summary=summaries.clip(summary.text, SUMMARY),
        event_count=int(summary.details.get("count", 0)),
        date=iso(summary.updated_at)[:10],
    )


async def active_skills(
    reader: MemoryReader, filters: Filters, installed: Sequence[str] = ()
) -> list[SkillView]:
    """Skills to apply from the start: cards of that category, and stored skills.

    Those of the memory itself come first. A skill of an installed memory names that memory. It is
    left out if the memory itself has one with the same title.
    """
    wanted = msgspec.structs.replace(filters, categories=("skill",), statuses=LIVE_CARDS)
    found: dict[str, SkillView] = {}
    for bank in (reader.bank, *installed):
        cards, _ = await reader.engine.cards(bank, filters=wanted, limit=SKILLS)
        skills = await reader.engine.skills(bank, filters=filters, limit=SKILLS)
        for skill in [*map(answers.skill_view, cards), *map(answers.skill_view, skills)]:
            if bank != reader.bank:
                skill = msgspec.structs.replace(skill, memory_id=bank)
            found.setdefault(skill.title.casefold(), skill)
    return list(found.values())[:SKILLS]


def _short_card(card: BriefCard) -> BriefCard:
    return msgspec.structs.replace(card, summary=summaries.clip(card.summary, SUMMARY))


def _short_task(task: TaskView) -> TaskView:
    if not isinstance(task.detail, str):
        return task
    return msgspec.structs.replace(task, detail=summaries.clip(task.detail, DETAIL))

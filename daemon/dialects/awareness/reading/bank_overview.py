"""The state of a memory at a glance: days, tasks, cards, sessions, skills.

Shared by everything that begins or hands over work: `awareness_init`, the lookups `context` and
`handoff`, and the recall modes that add structured data.
"""

from typing import Final

import msgspec
from msgspec import Struct

from daemon.dialects.awareness import answers
from daemon.dialects.awareness.answers import BriefCard, DayView, SessionView, SkillView, TaskView
from daemon.dialects.awareness.language import summaries
from daemon.dialects.awareness.memory import MemoryReader
from daemon.tools.toolkit import iso
from store.model import Filters, Item

DAY_MS: Final = 86_400_000
MOST_DAYS: Final = 90
OPEN_TASKS: Final = ("pending", "in_progress")
LIVE_CARDS: Final = ("open", "in_progress", "resolved", "noted")
SKILLS: Final = 10
SESSIONS: Final = 3
#: In an overview a summary is an orientation; the whole text is a lookup away.
SUMMARY: Final = 300
DETAIL: Final = 200


class MemoryContext(Struct, frozen=True, kw_only=True):
    """The document's `context`: recent days, open tasks, knowledge cards."""

    recent_days: list[DayView]
    open_tasks: list[TaskView]
    knowledge_cards: list[BriefCard]
    last_sessions: list[SessionView]
    days_included: int
    generated_at: str


async def overview(
    reader: MemoryReader, *, days: int, max_cards: int, max_tasks: int, filters: Filters
) -> MemoryContext:
    """The state of a memory, each part no longer than was asked for."""
    return MemoryContext(
        recent_days=await recent_days(reader, days, filters),
        open_tasks=await open_tasks(reader, max_tasks, filters),
        knowledge_cards=await top_cards(reader, max_cards, filters),
        last_sessions=await last_sessions(reader, filters),
        days_included=days,
        generated_at=iso(reader.now()),
    )


async def recent_days(reader: MemoryReader, days: int, filters: Filters) -> list[DayView]:
    """The days of the last `days` on which something happened, latest first, and what it was."""
    today = reader.now() // DAY_MS * DAY_MS
    since = msgspec.structs.replace(filters, since=today - (days - 1) * DAY_MS)
    found = await reader.engine.days(
        reader.bank, filters=since, each=12 if days <= 14 else 6, limit=days
    )
    return [
        DayView(date=day.date, narrative=summaries.tell(day.items), count=day.count)
        for day in found
    ]


async def open_tasks(reader: MemoryReader, limit: int, filters: Filters) -> list[TaskView]:
    if limit == 0:
        return []
    wanted = msgspec.structs.replace(filters, statuses=OPEN_TASKS)
    tasks, _ = await reader.engine.tasks(reader.bank, filters=wanted, limit=limit)
    return [_short_task(answers.task_view(task)) for task in tasks]


async def top_cards(reader: MemoryReader, limit: int, filters: Filters) -> list[BriefCard]:
    """The newest cards, those about the person and those still open first."""
    if limit == 0:
        return []
    wanted = msgspec.structs.replace(filters, statuses=LIVE_CARDS)
    cards, _ = await reader.engine.cards(reader.bank, filters=wanted, limit=max(limit, 50))
    cards.sort(key=lambda card: -(answers.salience_of(card) + (card.status == "open")))
    return [_short_card(answers.brief_card(card)) for card in cards[:limit]]


async def last_sessions(
    reader: MemoryReader, filters: Filters, limit: int = SESSIONS
) -> list[SessionView]:
    """The sessions that were summed up last, latest first."""
    wanted = msgspec.structs.replace(filters, categories=("session",))
    found = await reader.engine.recent(
        reader.bank, kinds=("narrative",), filters=wanted, limit=limit
    )
    return [session_view(item) for item in found.items]


def session_view(summary: Item) -> SessionView:
    return SessionView(
        session_id=summary.title,
        summary=summaries.clip(summary.text, SUMMARY),
        event_count=int(summary.details.get("count", 0)),
        date=iso(summary.updated_at)[:10],
    )


async def active_skills(reader: MemoryReader, filters: Filters) -> list[SkillView]:
    """Skills to be applied from the start: cards of that category, and skills kept as such."""
    wanted = msgspec.structs.replace(filters, categories=("skill",), statuses=LIVE_CARDS)
    cards, _ = await reader.engine.cards(reader.bank, filters=wanted, limit=SKILLS)
    skills = await reader.engine.skills(reader.bank, filters=filters, limit=SKILLS)
    found: dict[str, SkillView] = {}
    for skill in [*map(answers.skill_view, cards), *map(answers.skill_view, skills)]:
        found.setdefault(skill.title.casefold(), skill)
    return list(found.values())[:SKILLS]


def _short_card(card: BriefCard) -> BriefCard:
    return msgspec.structs.replace(card, summary=summaries.clip(card.summary, SUMMARY))


def _short_task(task: TaskView) -> TaskView:
    if not isinstance(task.detail, str):
        return task
    return msgspec.structs.replace(task, detail=summaries.clip(task.detail, DETAIL))

"""`awareness_lookup`: structured data, straight from the store. Filters come before limits."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from daemon.dialects.awareness import answers, memory
from daemon.dialects.awareness.answers import CardView, Event, RiskView, TaskView
from daemon.dialects.awareness.arguments import (
    LOOKUP_TYPES,
    LookupArguments,
    at_least,
    chosen,
)
from daemon.dialects.awareness.language import summaries
from daemon.dialects.awareness.language.vocabulary import (
    CARD_STATUSES,
    EVENT_STATUSES,
    LEVELS,
    RISK_STATUSES,
    TASK_STATUSES,
    status_named,
)
from daemon.dialects.awareness.memory import MemoryReader
from daemon.dialects.awareness.reading import bank_overview
from daemon.dialects.awareness.refusal import Refused
from daemon.dialects.awareness.writing.extraction import CATEGORIES
from daemon.tools.context import Context
from daemon.tools.toolkit import Toolkit
from store.model import Filters

MOST: Final = 500
HANDOFF_DAYS: Final = 3
HANDOFF_CARDS: Final = 5
HANDOFF_TASKS: Final = 10
OFFSET_LIMIT: Final = 2**31 - 1


class Paged(Struct, frozen=True, kw_only=True):
    """How long the whole list is, and where the next page begins if there is one."""

    memory_id: str
    total: int
    next_offset: int | UnsetType = UNSET


class TaskList(Paged, frozen=True, kw_only=True):
    in_progress: int
    pending: int
    tasks: list[TaskView]


class CardList(Paged, frozen=True, kw_only=True):
    cards: list[CardView]


class RiskList(Paged, frozen=True, kw_only=True):
    risks: list[RiskView]


class Timeline(Paged, frozen=True, kw_only=True):
    events: list[Event]


class SessionHistory(Struct, frozen=True, kw_only=True):
    memory_id: str
    session_id: str
    event_count: int
    events: list[Event]
    summary: str | UnsetType = UNSET
    next_offset: int | UnsetType = UNSET


class Overview(bank_overview.MemoryContext, frozen=True, kw_only=True):
    memory_id: str


class HandoffTask(Struct, frozen=True, kw_only=True):
    id: str
    title: str
    priority: str
    status: str


class HandoffCard(Struct, frozen=True, kw_only=True):
    title: str
    summary: str


class Handoff(Struct, frozen=True, kw_only=True):
    memory_id: str
    briefing_for: str
    recent_progress: list[str]
    open_tasks: list[HandoffTask]
    key_knowledge: list[HandoffCard]
    token_estimate: int


class Asked(Struct, frozen=True, kw_only=True):
    """A lookup whose parameters were checked."""

    reader: MemoryReader
    filters: Filters
    limit: int
    offset: int
    arguments: LookupArguments


class Lookup:
    def __init__(self, toolkit: Toolkit) -> None:
        self._toolkit = toolkit
        self._types: dict[str, Callable[[Asked], Awaitable[Any]]] = {
            "context": self._context,
            "tasks": self._tasks,
            "knowledge": self._knowledge,
            "risks": self._risks,
            "session_history": self._session_history,
            "timeline": self._timeline,
            "handoff": self._handoff,
        }

    async def __call__(self, arguments: LookupArguments, context: Context) -> Any:
        kind = chosen("type", arguments.type, LOOKUP_TYPES)
        if kind == "session_history" and not arguments.session_id:
            raise Refused("session_id: is required for type='session_history'")
        limit = at_least("limit", arguments.limit, 1, MOST)
        offset = at_least("offset", arguments.offset, 0, OFFSET_LIMIT)
        at_least("days", arguments.days, 1)
        at_least("max_cards", arguments.max_cards, 0)
        at_least("max_tasks", arguments.max_tasks, 0)
        filters = _filters(kind, arguments)
        reader = memory.to_read(self._toolkit, context, arguments.memory_id)
        return await self._types[kind](
            Asked(reader=reader, filters=filters, limit=limit, offset=offset, arguments=arguments)
        )

    async def _context(self, asked: Asked) -> Overview:
        arguments = asked.arguments
        overview = await bank_overview.overview(
            asked.reader,
            days=min(arguments.days, bank_overview.MOST_DAYS),
            max_cards=min(arguments.max_cards, MOST),
            max_tasks=min(arguments.max_tasks, MOST),
            filters=asked.filters,
        )
        return Overview(memory_id=asked.reader.bank, **msgspec.structs.asdict(overview))

    async def _tasks(self, asked: Asked) -> TaskList:
        engine = asked.reader.engine
        tasks, total = await engine.tasks(
            asked.reader.bank, filters=asked.filters, limit=asked.limit, offset=asked.offset
        )
        counts = {
            status: (
                await engine.tasks(
                    asked.reader.bank,
                    filters=msgspec.structs.replace(asked.filters, statuses=(status,)),
                    limit=1,
                )
            )[1]
            for status in ("in_progress", "pending")
            if status in asked.filters.statuses
        }
        return TaskList(
            memory_id=asked.reader.bank,
            total=total,
            in_progress=counts.get("in_progress", 0),
            pending=counts.get("pending", 0),
            tasks=[answers.task_view(task) for task in tasks],
            next_offset=_next(asked, len(tasks), total),
        )

    async def _knowledge(self, asked: Asked) -> CardList:
        cards, total = await asked.reader.engine.cards(
            asked.reader.bank, filters=asked.filters, limit=asked.limit, offset=asked.offset
        )
        return CardList(
            memory_id=asked.reader.bank,
            total=total,
            cards=[answers.card_view(card) for card in cards],
            next_offset=_next(asked, len(cards), total),
        )

    async def _risks(self, asked: Asked) -> RiskList:
        risks, total = await asked.reader.engine.risks(
            asked.reader.bank, filters=asked.filters, limit=asked.limit, offset=asked.offset
        )
        return RiskList(
            memory_id=asked.reader.bank,
            total=total,
            risks=[answers.risk_view(risk) for risk in risks],
            next_offset=_next(asked, len(risks), total),
        )

    async def _session_history(self, asked: Asked) -> SessionHistory:
        session = asked.arguments.session_id
        page = await asked.reader.engine.timeline(
            asked.reader.bank,
            filters=asked.filters,
            limit=asked.limit,
            offset=asked.offset,
            newest_first=False,
        )
        told = await asked.reader.engine.recent(
            asked.reader.bank,
            kinds=("narrative",),
            filters=Filters(session=session, categories=("session",)),
            limit=1,
        )
        return SessionHistory(
            memory_id=asked.reader.bank,
            session_id=session,
            event_count=page.total,
            events=[answers.event_view(item) for item in page.items],
            summary=told.items[0].text if told.items else UNSET,
            next_offset=_next(asked, len(page.items), page.total),
        )

    async def _timeline(self, asked: Asked) -> Timeline:
        page = await asked.reader.engine.timeline(
            asked.reader.bank, filters=asked.filters, limit=asked.limit, offset=asked.offset
        )
        return Timeline(
            memory_id=asked.reader.bank,
            total=page.total,
            events=[answers.event_view(item) for item in page.items],
            next_offset=_next(asked, len(page.items), page.total),
        )

    async def _handoff(self, asked: Asked) -> Handoff:
        overview = await bank_overview.overview(
            asked.reader,
            days=HANDOFF_DAYS,
            max_cards=HANDOFF_CARDS,
            max_tasks=HANDOFF_TASKS,
            filters=msgspec.structs.replace(asked.filters, contains=None),
        )
        briefing = Handoff(
            memory_id=asked.reader.bank,
            briefing_for=asked.arguments.query or "Continue previous work",
            recent_progress=[
                f"{day.date}: {summaries.clip(day.narrative, 300)}" for day in overview.recent_days
            ],
            open_tasks=[
                HandoffTask(
                    id=task.id, title=task.title, priority=task.priority, status=task.status
                )
                for task in overview.open_tasks
            ],
            key_knowledge=[
                HandoffCard(title=card.title, summary=summaries.clip(card.summary, 200))
                for card in overview.knowledge_cards
            ],
            token_estimate=0,
        )
        characters = len(msgspec.json.encode(briefing).decode())
        return msgspec.structs.replace(briefing, token_estimate=max(100, characters // 4))


def _filters(kind: str, arguments: LookupArguments) -> Filters:
    """The filters that this type of lookup has, each checked, whether it uses them or not."""
    statuses: dict[str, tuple[str, ...]] = {
        "tasks": TASK_STATUSES,
        "knowledge": CARD_STATUSES,
        "risks": RISK_STATUSES,
    }
    status = status_named(arguments.status, statuses.get(kind, EVENT_STATUSES))
    category = chosen("category", arguments.category, CATEGORIES) if arguments.category else ""
    priority = chosen("priority", arguments.priority, LEVELS) if arguments.priority else ""
    level = chosen("level", arguments.level, LEVELS) if arguments.level else ""
    found = memory.filters_for(arguments.user_id, arguments.agent_role, arguments.session_id)
    asked = {"contains": arguments.query or None}
    match kind:
        case "tasks":
            default = TASK_STATUSES if arguments.include_completed else bank_overview.OPEN_TASKS
            wanted = (status,) if status else default
            return msgspec.structs.replace(
                found, **asked, statuses=wanted, levels=(priority,) if priority else ()
            )
        case "knowledge":
            return msgspec.structs.replace(
                found,
                **asked,
                statuses=(status,) if status else bank_overview.LIVE_CARDS,
                categories=(category,) if category else (),
            )
        case "risks":
            return msgspec.structs.replace(
                found,
                **asked,
                statuses=(status,) if status else ("active", "mitigated"),
                levels=(level,) if level else (),
            )
        case "timeline" | "session_history":
            return msgspec.structs.replace(found, **asked, statuses=(status,) if status else ())
        case _:
            return found


def _next(asked: Asked, given: int, total: int) -> int | UnsetType:
    end = asked.offset + given
    return end if given and end < total else UNSET

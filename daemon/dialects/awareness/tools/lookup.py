"""`awareness_lookup`: lists of stored items without search. Filters apply before limits."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Protocol, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

from daemon.dialects.awareness import answers, memory, roles
from daemon.dialects.awareness.answers import CardView, Event, ProfileView, RiskView, TaskView
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
from daemon.dialects.awareness.refusal import InvalidArgument
from daemon.dialects.awareness.writing.extraction import CATEGORIES
from daemon.tools.answer_size import fitting
from daemon.tools.context import Context
from daemon.tools.toolkit import Toolkit
from store.model import Filters, Item

MOST: Final = 500
HANDOFF_DAYS: Final = 3
HANDOFF_CARDS: Final = 5
HANDOFF_TASKS: Final = 10
HANDOFF_RISKS: Final = 5
OFFSET_LIMIT: Final = 2**31 - 1
ROWS_AT_ONCE: Final = 100
#: Room for the fields beside the list.
ENVELOPE_BYTES: Final = 2_048


class Paged(Struct, frozen=True, kw_only=True):
    """The length of the whole list, and the offset of the next page if there is one."""

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
    agent_profiles: list[ProfileView]


class HandoffTask(Struct, frozen=True, kw_only=True):
    id: str
    title: str
    priority: str
    status: str


class HandoffCard(Struct, frozen=True, kw_only=True):
    title: str
    summary: str


class HandoffRisk(Struct, frozen=True, kw_only=True):
    title: str
    level: str
    mitigation: str


class Handoff(Struct, frozen=True, kw_only=True):
    memory_id: str
    briefing_for: str
    recent_progress: list[str]
    open_tasks: list[HandoffTask]
    risks: list[HandoffRisk]
    key_knowledge: list[HandoffCard]
    token_estimate: int


class LookupRequest(Struct, frozen=True, kw_only=True):
    """A lookup with validated parameters."""

    reader: MemoryReader
    filters: Filters
    limit: int
    offset: int
    arguments: LookupArguments


Row = TypeVar("Row")
Row_co = TypeVar("Row_co", covariant=True)
View = TypeVar("View", bound=Struct)


class Fetch(Protocol[Row_co]):
    """An operation of the engine that lists rows and counts them."""

    def __call__(
        self, bank: str, *, filters: Filters, limit: int, offset: int
    ) -> Awaitable[tuple[Sequence[Row_co], int]]: ...


class Lookup:
    def __init__(self, toolkit: Toolkit) -> None:
        self._toolkit = toolkit
        self._types: dict[str, Callable[[LookupRequest], Awaitable[Any]]] = {
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
            raise InvalidArgument("session_id: is required for type='session_history'")
        limit = at_least("limit", arguments.limit, 1, MOST)
        offset = at_least("offset", arguments.offset, 0, OFFSET_LIMIT)
        at_least("days", arguments.days, 1)
        at_least("max_cards", arguments.max_cards, 0)
        at_least("max_tasks", arguments.max_tasks, 0)
        filters = _filters(kind, arguments)
        reader = await memory.to_read(self._toolkit, context, arguments.memory_id)
        return await self._types[kind](
            LookupRequest(
                reader=reader, filters=filters, limit=limit, offset=offset, arguments=arguments
            )
        )

    async def _context(self, request: LookupRequest) -> Overview:
        arguments = request.arguments
        overview = await bank_overview.overview(
            request.reader,
            days=min(arguments.days, bank_overview.MOST_DAYS),
            max_cards=min(arguments.max_cards, MOST),
            max_tasks=min(arguments.max_tasks, MOST),
            filters=request.filters,
        )
        return Overview(
            memory_id=request.reader.bank,
            agent_profiles=roles.views(await request.reader.engine.profiles(request.reader.bank)),
            **msgspec.structs.asdict(overview),
        )

    async def _tasks(self, request: LookupRequest) -> TaskList:
        engine = request.reader.engine
        tasks, total = await self._page(request, engine.tasks, answers.task_view)
        counts = {
            status: (
                await engine.tasks(
                    request.reader.bank,
                    filters=msgspec.structs.replace(request.filters, statuses=(status,)),
                    limit=1,
                )
            )[1]
            for status in ("in_progress", "pending")
            if status in request.filters.statuses
        }
        return TaskList(
            memory_id=request.reader.bank,
            total=total,
            in_progress=counts.get("in_progress", 0),
            pending=counts.get("pending", 0),
            tasks=tasks,
            next_offset=_next(request, len(tasks), total),
        )

    async def _knowledge(self, request: LookupRequest) -> CardList:
        cards, total = await self._page(request, request.reader.engine.cards, answers.card_view)
        return CardList(
            memory_id=request.reader.bank,
            total=total,
            cards=cards,
            next_offset=_next(request, len(cards), total),
        )

    async def _risks(self, request: LookupRequest) -> RiskList:
        risks, total = await self._page(request, request.reader.engine.risks, answers.risk_view)
        return RiskList(
            memory_id=request.reader.bank,
            total=total,
            risks=risks,
            next_offset=_next(request, len(risks), total),
        )

    async def _session_history(self, request: LookupRequest) -> SessionHistory:
        session = request.arguments.session_id
        events, total = await self._events(request, newest_first=False)
        summaries_found = await request.reader.engine.recent(
            request.reader.bank,
            kinds=("narrative",),
            filters=Filters(session=session, categories=("session",)),
            limit=1,
        )
        return SessionHistory(
            memory_id=request.reader.bank,
            session_id=session,
            event_count=total,
            events=events,
            summary=summaries_found.items[0].text if summaries_found.items else UNSET,
            next_offset=_next(request, len(events), total),
        )

    async def _timeline(self, request: LookupRequest) -> Timeline:
        events, total = await self._events(request, newest_first=True)
        return Timeline(
            memory_id=request.reader.bank,
            total=total,
            events=events,
            next_offset=_next(request, len(events), total),
        )

    async def _events(
        self, request: LookupRequest, *, newest_first: bool
    ) -> tuple[list[Event], int]:
        async def fetch(
            bank: str, *, filters: Filters, limit: int, offset: int
        ) -> tuple[Sequence[Item], int]:
            page = await request.reader.engine.timeline(
                bank, filters=filters, limit=limit, offset=offset, newest_first=newest_first
            )
            return page.items, page.total

        return await self._page(request, fetch, answers.event_view)

    async def _page(
        self, request: LookupRequest, fetch: Fetch[Row], view: Callable[[Row], View]
    ) -> tuple[list[View], int]:
        """The entries of a page and the length of the whole list.

        A page ends early when the answer would exceed `limits.answer_bytes`; `next_offset` then
        tells the caller where to continue. Rows are fetched a part at a time, so that a page of
        large rows does not fill the memory before it is cut.
        """
        limit = self._toolkit.answer_bytes - ENVELOPE_BYTES
        views: list[View] = []
        while True:
            wanted = min(ROWS_AT_ONCE, request.limit - len(views))
            rows, total = await fetch(
                request.reader.bank,
                filters=request.filters,
                limit=wanted,
                offset=request.offset + len(views),
            )
            views += map(view, rows)
            kept = fitting(views, limit)
            if len(kept) < len(views) or len(rows) < wanted or len(kept) == request.limit:
                return kept, total

    async def _handoff(self, request: LookupRequest) -> Handoff:
        overview = await bank_overview.overview(
            request.reader,
            days=HANDOFF_DAYS,
            max_cards=HANDOFF_CARDS,
            max_tasks=HANDOFF_TASKS,
            filters=msgspec.structs.replace(request.filters, contains=None),
        )
        risks, _ = await request.reader.engine.risks(
            request.reader.bank,
            filters=msgspec.structs.replace(
                request.filters, contains=None, statuses=("active", "mitigated")
            ),
            limit=HANDOFF_RISKS,
        )
        briefing = Handoff(
            memory_id=request.reader.bank,
            briefing_for=request.arguments.query or "Continue previous work",
            recent_progress=[
                f"{day.date}: {summaries.clip(day.narrative, 300)}" for day in overview.recent_days
            ],
            open_tasks=[
                HandoffTask(
                    id=task.id, title=task.title, priority=task.priority, status=task.status
                )
                for task in overview.open_tasks
            ],
            risks=[
                HandoffRisk(
                    title=risk.title,
                    level=risk.level,
                    mitigation=summaries.clip(risk.mitigation, 200),
                )
                for risk in risks
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
    """The filters of this type of lookup. Unused filters are validated too."""
    statuses: dict[str, tuple[str, ...]] = {
        "tasks": TASK_STATUSES,
        "knowledge": CARD_STATUSES,
        "risks": RISK_STATUSES,
    }
    status = status_named(arguments.status, statuses.get(kind, EVENT_STATUSES))
    category = chosen("category", arguments.category, CATEGORIES) if arguments.category else ""
    priority = chosen("priority", arguments.priority, LEVELS) if arguments.priority else ""
    level = chosen("level", arguments.level, LEVELS) if arguments.level else ""
    found = memory.filters_for(
        arguments.user_id,
        arguments.agent_role,
        arguments.session_id,
        or_shared=kind in ("context", "handoff"),
    )
    request = {"contains": arguments.query or None}
    match kind:
        case "tasks":
            default = TASK_STATUSES if arguments.include_completed else bank_overview.OPEN_TASKS
            wanted = (status,) if status else default
            return msgspec.structs.replace(
                found, **request, statuses=wanted, levels=(priority,) if priority else ()
            )
        case "knowledge":
            return msgspec.structs.replace(
                found,
                **request,
                statuses=(status,) if status else bank_overview.LIVE_CARDS,
                categories=(category,) if category else (),
            )
        case "risks":
            return msgspec.structs.replace(
                found,
                **request,
                statuses=(status,) if status else ("active", "mitigated"),
                levels=(level,) if level else (),
            )
        case "timeline" | "session_history":
            return msgspec.structs.replace(found, **request, statuses=(status,) if status else ())
        case _:
            return found


def _next(request: LookupRequest, given: int, total: int) -> int | UnsetType:
    end = request.offset + given
    return end if given and end < total else UNSET

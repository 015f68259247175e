"""Cards, tasks, risks and skills that agents recorded."""

from functools import partial
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from daemon.api.operation import Operation, operation
from daemon.api.views import (
    CardView,
    RiskView,
    SkillView,
    TaskView,
    card_of,
    risk_of,
    skill_of,
    task_of,
)
from daemon.tools.context import Context
from daemon.tools.errors import ArgumentsRefused
from daemon.tools.toolkit import Toolkit
from store.model import Filters

TAG = "knowledge"


class KnowledgeListArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    bank: str
    statuses: tuple[str, ...] = ()
    limit: Annotated[int, Meta(ge=1, le=500)] = 100
    offset: Annotated[int, Meta(ge=0)] = 0


class IdArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    bank: str
    id: str


class StatusArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    bank: str
    id: str
    status: str


class TaskArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    bank: str
    id: str
    status: str | UnsetType = UNSET
    priority: str | UnsetType = UNSET
    detail: str | UnsetType = UNSET


class Cards(Struct, frozen=True, kw_only=True):
    cards: list[CardView]
    total: int


class CardHistory(Struct, frozen=True, kw_only=True):
    """The versions of a card, newest first."""

    cards: list[CardView]


class Tasks(Struct, frozen=True, kw_only=True):
    tasks: list[TaskView]
    total: int


class Risks(Struct, frozen=True, kw_only=True):
    risks: list[RiskView]
    total: int


class Skills(Struct, frozen=True, kw_only=True):
    skills: list[SkillView]


def _filters(arguments: KnowledgeListArguments) -> Filters:
    return Filters(
        statuses=arguments.statuses, include_superseded="superseded" in arguments.statuses
    )


async def list_cards(
    toolkit: Toolkit, arguments: KnowledgeListArguments, _context: Context
) -> Cards:
    """Cards by status."""
    found, total = await toolkit.engine.cards(
        arguments.bank,
        filters=_filters(arguments),
        limit=arguments.limit,
        offset=arguments.offset,
    )
    return Cards(cards=[card_of(card) for card in found], total=total)


async def get_card(toolkit: Toolkit, arguments: IdArguments, _context: Context) -> CardView:
    """A card with its evidence."""
    return card_of(await toolkit.engine.card(arguments.bank, arguments.id))


async def get_card_history(
    toolkit: Toolkit, arguments: IdArguments, _context: Context
) -> CardHistory:
    """The versions of a card."""
    found = await toolkit.engine.card_history(arguments.bank, arguments.id)
    return CardHistory(cards=[card_of(each) for each in found])


async def change_card(toolkit: Toolkit, arguments: StatusArguments, _context: Context) -> CardView:
    """Set the status of a card."""
    changed = await toolkit.engine.change_card(
        arguments.bank, arguments.id, status=arguments.status
    )
    return card_of(changed)


async def list_tasks(
    toolkit: Toolkit, arguments: KnowledgeListArguments, _context: Context
) -> Tasks:
    """Tasks by status."""
    found, total = await toolkit.engine.tasks(
        arguments.bank,
        filters=_filters(arguments),
        limit=arguments.limit,
        offset=arguments.offset,
    )
    return Tasks(tasks=[task_of(task) for task in found], total=total)


async def change_task(toolkit: Toolkit, arguments: TaskArguments, _context: Context) -> TaskView:
    """Change the status, priority or detail of a task."""
    given = {
        name: getattr(arguments, name)
        for name in ("status", "priority", "detail")
        if getattr(arguments, name) is not UNSET
    }
    if not given:
        raise ArgumentsRefused("status: give at least one of status, priority and detail")
    return task_of(await toolkit.engine.change_task(arguments.bank, arguments.id, **given))


async def list_risks(
    toolkit: Toolkit, arguments: KnowledgeListArguments, _context: Context
) -> Risks:
    """Risks by status."""
    found, total = await toolkit.engine.risks(
        arguments.bank,
        filters=_filters(arguments),
        limit=arguments.limit,
        offset=arguments.offset,
    )
    return Risks(risks=[risk_of(risk) for risk in found], total=total)


async def change_risk(toolkit: Toolkit, arguments: StatusArguments, _context: Context) -> RiskView:
    """Set the status of a risk."""
    changed = await toolkit.engine.change_risk(
        arguments.bank, arguments.id, status=arguments.status
    )
    return risk_of(changed)


async def list_skills(
    toolkit: Toolkit, arguments: KnowledgeListArguments, _context: Context
) -> Skills:
    """Skills, the most recent ones first."""
    found = await toolkit.engine.skills(
        arguments.bank, filters=_filters(arguments), limit=arguments.limit
    )
    return Skills(skills=[skill_of(skill) for skill in found])


def operations(toolkit: Toolkit) -> list[Operation]:
    add = partial(operation, service=toolkit, tag=TAG)
    change = partial(add, "PATCH", idempotent=True, example={"status": "resolved"})
    cards, tasks, risks = "/banks/{bank}/cards", "/banks/{bank}/tasks", "/banks/{bank}/risks"
    return [
        add("GET", cards, list_cards),
        add("GET", f"{cards}/{{id}}", get_card),
        add("GET", f"{cards}/{{id}}/history", get_card_history),
        change(f"{cards}/{{id}}", change_card),
        add("GET", tasks, list_tasks),
        change(f"{tasks}/{{id}}", change_task),
        add("GET", risks, list_risks),
        change(f"{risks}/{{id}}", change_risk),
        add("GET", "/banks/{bank}/skills", list_skills),
    ]

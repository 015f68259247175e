"""Cards, tasks, risks and skills that agents recorded."""

from functools import partial
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from daemon.api.operation import Operation
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
from daemon.tools.specification import ToolSpec
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


async def cards(toolkit: Toolkit, arguments: KnowledgeListArguments, _context: Context) -> Cards:
    found, total = await toolkit.engine.cards(
        arguments.bank,
        filters=_filters(arguments),
        limit=arguments.limit,
        offset=arguments.offset,
    )
    return Cards(cards=[card_of(card) for card in found], total=total)


async def card(toolkit: Toolkit, arguments: IdArguments, _context: Context) -> CardView:
    return card_of(await toolkit.engine.card(arguments.bank, arguments.id))


async def history(toolkit: Toolkit, arguments: IdArguments, _context: Context) -> CardHistory:
    found = await toolkit.engine.card_history(arguments.bank, arguments.id)
    return CardHistory(cards=[card_of(each) for each in found])


async def change_card(toolkit: Toolkit, arguments: StatusArguments, _context: Context) -> CardView:
    changed = await toolkit.engine.change_card(
        arguments.bank, arguments.id, status=arguments.status
    )
    return card_of(changed)


async def tasks(toolkit: Toolkit, arguments: KnowledgeListArguments, _context: Context) -> Tasks:
    found, total = await toolkit.engine.tasks(
        arguments.bank,
        filters=_filters(arguments),
        limit=arguments.limit,
        offset=arguments.offset,
    )
    return Tasks(tasks=[task_of(task) for task in found], total=total)


async def change_task(toolkit: Toolkit, arguments: TaskArguments, _context: Context) -> TaskView:
    given = {
        name: getattr(arguments, name)
        for name in ("status", "priority", "detail")
        if getattr(arguments, name) is not UNSET
    }
    if not given:
        raise ArgumentsRefused("status: give at least one of status, priority and detail")
    return task_of(await toolkit.engine.change_task(arguments.bank, arguments.id, **given))


async def risks(toolkit: Toolkit, arguments: KnowledgeListArguments, _context: Context) -> Risks:
    found, total = await toolkit.engine.risks(
        arguments.bank,
        filters=_filters(arguments),
        limit=arguments.limit,
        offset=arguments.offset,
    )
    return Risks(risks=[risk_of(risk) for risk in found], total=total)


async def change_risk(toolkit: Toolkit, arguments: StatusArguments, _context: Context) -> RiskView:
    changed = await toolkit.engine.change_risk(
        arguments.bank, arguments.id, status=arguments.status
    )
    return risk_of(changed)


async def skills(toolkit: Toolkit, arguments: KnowledgeListArguments, _context: Context) -> Skills:
    found = await toolkit.engine.skills(
        arguments.bank, filters=_filters(arguments), limit=arguments.limit
    )
    return Skills(skills=[skill_of(skill) for skill in found])


def operations(toolkit: Toolkit) -> list[Operation]:
    bank = "/banks/{bank}"
    return [
        _reading("list_cards", f"{bank}/cards", "Cards by status.", partial(cards, toolkit), Cards),
        _reading(
            "get_card",
            f"{bank}/cards/{{id}}",
            "A card with its evidence.",
            partial(card, toolkit),
            CardView,
            IdArguments,
        ),
        _reading(
            "get_card_history",
            f"{bank}/cards/{{id}}/history",
            "The versions of a card.",
            partial(history, toolkit),
            CardHistory,
            IdArguments,
        ),
        _changing(
            "change_card",
            f"{bank}/cards/{{id}}",
            "Set the status of a card.",
            partial(change_card, toolkit),
            CardView,
        ),
        _reading("list_tasks", f"{bank}/tasks", "Tasks by status.", partial(tasks, toolkit), Tasks),
        _changing(
            "change_task",
            f"{bank}/tasks/{{id}}",
            "Change the status, priority or detail of a task.",
            partial(change_task, toolkit),
            TaskView,
            TaskArguments,
        ),
        _reading("list_risks", f"{bank}/risks", "Risks by status.", partial(risks, toolkit), Risks),
        _changing(
            "change_risk",
            f"{bank}/risks/{{id}}",
            "Set the status of a risk.",
            partial(change_risk, toolkit),
            RiskView,
        ),
        _reading("list_skills", f"{bank}/skills", "Skills.", partial(skills, toolkit), Skills),
    ]


def _reading(
    name: str,
    path: str,
    about: str,
    run: partial[Any],
    output: type[Struct],
    arguments: type[Struct] = KnowledgeListArguments,
) -> Operation:
    spec = ToolSpec(
        name=name, description=about, arguments=arguments, run=run, output=output, read_only=True
    )
    return Operation(verb="GET", path=path, tag=TAG, spec=spec)


def _changing(
    name: str,
    path: str,
    about: str,
    run: partial[Any],
    output: type[Struct],
    arguments: type[Struct] = StatusArguments,
) -> Operation:
    spec = ToolSpec(
        name=name, description=about, arguments=arguments, run=run, output=output, idempotent=True
    )
    return Operation(verb="PATCH", path=path, tag=TAG, spec=spec, example={"status": "resolved"})

"""Result types of the tools, and their construction from the engine's types.

Empty fields are left out, except those that the Awareness document names.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from daemon.tools.toolkit import iso
from store.model import AgentProfile, Card, Item, Risk, Skill, Task

Text = str | UnsetType
Object = Mapping[str, Any] | UnsetType


def given(value: str | None) -> Text:
    """The text, or UNSET if it is empty."""
    return value or UNSET


class Event(Struct, frozen=True, kw_only=True):
    """An event as it was recorded, with its origin."""

    id: str
    content: str
    actor: Text
    event_type: Text
    status: Text
    timestamp: str
    session_id: Text
    source: Text
    user_id: Text
    agent_role: Text
    title: Text
    context: Text
    metadata: Object
    dialect: Text
    client: Text
    repeats: int | UnsetType


class CardView(Struct, frozen=True, kw_only=True):
    id: str
    category: str
    title: str
    summary: str
    tags: tuple[str, ...]
    confidence: float | None
    salience_score: float
    status: str
    evidence_count: int
    verified: bool
    methods: tuple[str, ...] | UnsetType
    supersedes: Text
    superseded_by: Text
    user_id: Text
    agent_role: Text
    session_id: Text
    metadata: Object
    updated_at: str


class BriefCard(Struct, frozen=True, kw_only=True):
    """A card in a list, without its details."""

    id: str
    category: str
    title: str
    summary: str
    tags: tuple[str, ...]
    confidence: float | None
    status: str
    score: float | UnsetType = UNSET


class TaskView(Struct, frozen=True, kw_only=True):
    id: str
    title: str
    priority: str
    status: str
    detail: Text
    context: Text
    estimated_effort: Text
    user_id: Text
    agent_role: Text
    updated_at: str


class RiskView(Struct, frozen=True, kw_only=True):
    id: str
    title: str
    level: str
    detail: str
    mitigation: str
    status: str
    user_id: Text
    agent_role: Text
    updated_at: str


class ProfileView(Struct, frozen=True, kw_only=True):
    agent_role: str
    title: str
    when_to_use: str
    #: `stored` if an agent wrote the profile to this memory; absent for a built-in one.
    origin: Text = UNSET


class SkillView(Struct, frozen=True, kw_only=True):
    title: str
    summary: str
    methods: tuple[str, ...]
    #: The installed memory that the skill comes from; absent for a skill of this memory.
    memory_id: Text = UNSET


class DayView(Struct, frozen=True, kw_only=True):
    date: str
    narrative: str
    count: int


class SessionView(Struct, frozen=True, kw_only=True):
    session_id: str
    summary: str
    event_count: int
    date: str


def event_view(item: Item) -> Event:
    return Event(
        id=item.id,
        content=item.text,
        actor=given(item.actor),
        event_type=given(item.event_type or (item.category if item.kind == "memory" else None)),
        status=given(item.status),
        timestamp=iso(item.occurred_at),
        session_id=given(item.session),
        source=given(item.source),
        user_id=given(item.user),
        agent_role=given(item.role),
        title=given(item.title),
        context=given(item.context),
        metadata=item.metadata or UNSET,
        dialect=given(item.provenance.dialect),
        client=given(item.provenance.client),
        repeats=item.repeats or UNSET,
    )


def card_view(card: Card) -> CardView:
    item = card.item
    return CardView(
        id=card.id,
        category=card.category,
        title=card.title,
        summary=card.summary,
        tags=card.tags,
        confidence=card.confidence,
        salience_score=salience_of(card),
        status=card.status,
        evidence_count=len(card.evidence),
        verified=card.is_verified,
        methods=card.methods or UNSET,
        supersedes=given(card.supersedes),
        superseded_by=given(card.superseded_by),
        user_id=given(item.user),
        agent_role=given(item.role),
        session_id=given(item.session),
        metadata=item.metadata or UNSET,
        updated_at=iso(item.updated_at),
    )


def salience_of(card: Card) -> float:
    """The weight of a card, 0.5 to 2.0: as stored, else by its repetitions."""
    if card.salience is not None:
        return min(2.0, max(0.5, card.salience))
    return min(2.0, 1.0 + 0.1 * card.item.repeats + (0.25 if card.is_verified else 0.0))


def brief_card(card: Card, score: float | None = None) -> BriefCard:
    return BriefCard(
        id=card.id,
        category=card.category,
        title=card.title,
        summary=card.summary,
        tags=card.tags,
        confidence=card.confidence,
        status=card.status,
        score=UNSET if score is None else score,
    )


def task_view(task: Task) -> TaskView:
    return TaskView(
        id=task.id,
        title=task.title,
        priority=task.priority,
        status=task.status,
        detail=given(task.detail),
        context=given(task.context),
        estimated_effort=given(task.effort),
        user_id=given(task.item.user),
        agent_role=given(task.item.role),
        updated_at=iso(task.updated_at),
    )


def risk_view(risk: Risk) -> RiskView:
    return RiskView(
        id=risk.id,
        title=risk.title,
        level=risk.level,
        detail=risk.detail,
        mitigation=risk.mitigation,
        status=risk.status,
        user_id=given(risk.item.user),
        agent_role=given(risk.item.role),
        updated_at=iso(risk.item.updated_at),
    )


def profile_view(profile: AgentProfile, title: str, origin: Text) -> ProfileView:
    return ProfileView(
        agent_role=profile.agent_role,
        title=title,
        when_to_use=profile.when_to_use,
        origin=origin,
    )


def skill_view(skill: Skill | Card) -> SkillView:
    name = skill.title if isinstance(skill, Card) else skill.name
    return SkillView(title=name, summary=skill.summary, methods=skill.methods)

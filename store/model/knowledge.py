"""Knowledge that agents record: cards, tasks, risks, skills, narratives and profiles."""

from collections.abc import Mapping
from typing import Any, Final, Literal

from msgspec import Struct

from store.model.items import Item, NewMemory, Provenance, Put

CARD_STATUSES: Final = ("open", "in_progress", "resolved", "noted", "superseded")
TASK_STATUSES: Final = ("pending", "in_progress", "completed", "superseded")
RISK_STATUSES: Final = ("active", "mitigated", "resolved", "superseded")
LEVELS: Final = ("low", "medium", "high")  # of a task's priority and of a risk


class Evidence(Struct, frozen=True, kw_only=True):
    """A quotation that supports a card, and the session it comes from."""

    snippet: str
    session: str | None = None
    item: str | None = None  # the stored item that contains the quotation


class NewCard(Struct, frozen=True, kw_only=True):
    """A card to be stored."""

    category: str
    title: str
    summary: str
    tags: tuple[str, ...] = ()
    status: str = "noted"
    confidence: float | None = None
    salience: float | None = None
    methods: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    supersedes: str | None = None  # the id of the card that this one replaces
    session: str | None = None
    source: str | None = None
    user: str | None = None
    role: str | None = None
    metadata: Mapping[str, Any] = {}
    provenance: Provenance = Provenance()


class Card(Struct, frozen=True, kw_only=True):
    """A piece of knowledge. It is verified if stored items confirm its evidence."""

    id: str
    category: str
    title: str
    summary: str
    tags: tuple[str, ...]
    status: str
    confidence: float | None
    salience: float | None
    methods: tuple[str, ...]
    evidence: tuple[Evidence, ...]
    is_verified: bool
    superseded_by: str | None
    supersedes: str | None
    item: Item


class CardOutcome(Struct, frozen=True, kw_only=True):
    """The result of putting a card: stored, a duplicate, or the successor of an older card."""

    id: str
    outcome: Literal["created", "duplicate", "superseded"]
    other: str | None = None  # the equal card, or the replaced one


class NewTask(Struct, frozen=True, kw_only=True):
    """A task to be stored."""

    title: str
    detail: str = ""
    priority: str = "medium"
    status: str = "pending"
    context: str | None = None
    effort: str | None = None
    session: str | None = None
    source: str | None = None
    user: str | None = None
    role: str | None = None
    metadata: Mapping[str, Any] = {}
    provenance: Provenance = Provenance()


class Task(Struct, frozen=True, kw_only=True):
    """Work to be done."""

    id: str
    title: str
    detail: str
    priority: str
    status: str
    context: str | None
    effort: str | None
    updated_at: int
    item: Item


class NewRisk(Struct, frozen=True, kw_only=True):
    """A risk to be stored."""

    title: str
    detail: str = ""
    level: str = "medium"
    mitigation: str = ""
    status: str = "active"
    session: str | None = None
    source: str | None = None
    user: str | None = None
    role: str | None = None
    metadata: Mapping[str, Any] = {}
    provenance: Provenance = Provenance()


class Risk(Struct, frozen=True, kw_only=True):
    """Something that may go wrong."""

    id: str
    title: str
    detail: str
    level: str
    mitigation: str
    status: str
    item: Item


class NewSkill(Struct, frozen=True, kw_only=True):
    """A procedure worth repeating. A second skill with the same name replaces the first."""

    name: str
    summary: str
    methods: tuple[str, ...] = ()
    triggers: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    session: str | None = None
    source: str | None = None
    user: str | None = None
    role: str | None = None
    metadata: Mapping[str, Any] = {}
    provenance: Provenance = Provenance()


class Skill(Struct, frozen=True, kw_only=True):
    """A stored procedure."""

    id: str
    name: str
    summary: str
    methods: tuple[str, ...]
    triggers: tuple[str, ...]
    tags: tuple[str, ...]
    item: Item


class NewNarrative(Struct, frozen=True, kw_only=True):
    """A summary of a span: of a "day" (named 2026-11-16, for instance) or of a "session"."""

    span: str
    name: str
    text: str
    count: int = 0
    session: str | None = None
    user: str | None = None
    role: str | None = None
    provenance: Provenance = Provenance()


class Narrative(Struct, frozen=True, kw_only=True):
    """A stored summary of a span."""

    id: str
    span: str
    name: str
    text: str
    count: int
    item: Item


class Day(Struct, frozen=True, kw_only=True):
    """A day (UTC, 2026-11-16 for instance) with items: their number and the latest of them."""

    date: str
    count: int
    items: tuple[Item, ...]


class AgentProfile(Struct, frozen=True, kw_only=True):
    """The role, rules and working style of an agent. Dialects build prompts from it."""

    agent_role: str
    title: str = ""
    kind: str = "agent"
    responsibility: str = ""
    when_to_use: str = ""
    identity: str = ""
    critical_rules: tuple[str, ...] = ()
    workflow: str = ""
    communication_style: str = ""
    success_metrics: str = ""
    ingest_pattern: str = ""
    recall_pattern: str = ""
    system_prompt: str = ""
    activation_prompt: str = ""


class NewNotes(Struct, frozen=True, kw_only=True):
    """The notes of an agent, to be stored in one transaction."""

    cards: tuple[NewCard, ...] = ()
    tasks: tuple[NewTask, ...] = ()
    risks: tuple[NewRisk, ...] = ()
    events: tuple[NewMemory, ...] = ()
    profiles: tuple[AgentProfile, ...] = ()
    deleted_profiles: tuple[str, ...] = ()  # roles
    task_statuses: tuple[tuple[str, str], ...] = ()  # (a task's id, its new status)


class NotesKept(Struct, frozen=True, kw_only=True):
    """The results of storing notes, in the order of the notes."""

    cards: tuple[CardOutcome, ...] = ()
    tasks: tuple[Put, ...] = ()
    risks: tuple[Put, ...] = ()
    events: tuple[Put, ...] = ()
    changed: tuple[Task, ...] = ()

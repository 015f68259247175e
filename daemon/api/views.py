"""The shapes in which the API returns what a bank contains. Times are ISO 8601, UTC."""

import base64
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Final

import msgspec
from msgspec import Struct

from daemon.tools.errors import ArgumentsRefused
from daemon.tools.toolkit import iso
from store.model import Card, Document, DocumentHeader, Item, Provenance, Risk, Skill, Task

_canonical: Final = msgspec.json.Encoder(order="deterministic")


class Memory(Struct, frozen=True, kw_only=True):
    """An entry of a bank. `version` changes with every edit; send it as `If-Match`."""

    id: str
    kind: str
    text: str
    title: str
    tags: tuple[str, ...]
    context: str | None
    category: str | None
    status: str | None
    level: str | None
    confidence: float | None
    source: str | None
    session: str | None
    user: str | None
    role: str | None
    document: str | None
    position: int | None
    metadata: Mapping[str, Any]
    details: Mapping[str, Any]
    provenance: Provenance
    occurred_at: str
    created_at: str
    updated_at: str
    superseded_by: str | None
    repeats: int
    version: str


class DocumentSummary(Struct, frozen=True, kw_only=True):
    """A document without its text."""

    id: str
    source: str
    source_id: str
    title: str
    author: str | None
    url: str | None
    content_type: str
    metadata: Mapping[str, Any]
    created_at: str
    updated_at: str
    indexed_at: str
    chunks: int


class DocumentBody(DocumentSummary, frozen=True, kw_only=True):
    """A document with its text."""

    body: str


class Quotation(Struct, frozen=True, kw_only=True):
    """A quotation that supports a card, and the memory that contains it."""

    snippet: str
    session: str | None
    memory: str | None


class CardView(Struct, frozen=True, kw_only=True):
    """A piece of knowledge that an agent recorded."""

    id: str
    category: str
    title: str
    summary: str
    tags: tuple[str, ...]
    status: str
    confidence: float | None
    methods: tuple[str, ...]
    evidence: tuple[Quotation, ...]
    is_verified: bool
    supersedes: str | None
    superseded_by: str | None
    session: str | None
    source: str | None
    created_at: str
    updated_at: str


class TaskView(Struct, frozen=True, kw_only=True):
    """Work to be done."""

    id: str
    title: str
    detail: str
    priority: str
    status: str
    context: str | None
    effort: str | None
    session: str | None
    source: str | None
    created_at: str
    updated_at: str


class RiskView(Struct, frozen=True, kw_only=True):
    """Something that may go wrong."""

    id: str
    title: str
    detail: str
    level: str
    mitigation: str
    status: str
    session: str | None
    source: str | None
    created_at: str
    updated_at: str


class SkillView(Struct, frozen=True, kw_only=True):
    """A procedure worth repeating."""

    id: str
    name: str
    summary: str
    methods: tuple[str, ...]
    triggers: tuple[str, ...]
    tags: tuple[str, ...]
    created_at: str
    updated_at: str


def version_of(item: Item) -> str:
    """A digest over everything that an edit can change."""
    state = (item.rowid, item.updated_at, item.text, item.title, item.tags, item.status)
    encoded = _canonical.encode((state, item.metadata, item.occurred_at))
    return blake2b(encoded, digest_size=12).hexdigest()


def memory_of(item: Item) -> Memory:
    return Memory(
        id=item.id,
        kind=item.kind,
        text=item.text,
        title=item.title,
        tags=item.tags,
        context=item.context,
        category=item.category,
        status=item.status,
        level=item.level,
        confidence=item.confidence,
        source=item.source,
        session=item.session,
        user=item.user,
        role=item.role,
        document=item.document,
        position=item.position,
        metadata=item.metadata,
        details=item.details,
        provenance=item.provenance,
        occurred_at=iso(item.occurred_at),
        created_at=iso(item.created_at),
        updated_at=iso(item.updated_at),
        superseded_by=item.superseded_by,
        repeats=item.repeats,
        version=version_of(item),
    )


def _summary_fields(header: DocumentHeader) -> dict[str, Any]:
    return {
        "id": header.id,
        "source": header.source,
        "source_id": header.source_id,
        "title": header.title,
        "author": header.author,
        "url": header.url,
        "content_type": header.content_type,
        "metadata": header.metadata,
        "created_at": iso(header.created_at),
        "updated_at": iso(header.updated_at),
        "indexed_at": iso(header.indexed_at),
        "chunks": header.chunks,
    }


def summary_of(header: DocumentHeader) -> DocumentSummary:
    return DocumentSummary(**_summary_fields(header))


def document_of(document: Document) -> DocumentBody:
    return DocumentBody(**_summary_fields(document), body=document.body)


def card_of(card: Card) -> CardView:
    return CardView(
        id=card.id,
        category=card.category,
        title=card.title,
        summary=card.summary,
        tags=card.tags,
        status=card.status,
        confidence=card.confidence,
        methods=card.methods,
        evidence=tuple(
            Quotation(snippet=each.snippet, session=each.session, memory=each.item)
            for each in card.evidence
        ),
        is_verified=card.is_verified,
        supersedes=card.supersedes,
        superseded_by=card.superseded_by,
        session=card.item.session,
        source=card.item.source,
        created_at=iso(card.item.created_at),
        updated_at=iso(card.item.updated_at),
    )


def task_of(task: Task) -> TaskView:
    return TaskView(
        id=task.id,
        title=task.title,
        detail=task.detail,
        priority=task.priority,
        status=task.status,
        context=task.context,
        effort=task.effort,
        session=task.item.session,
        source=task.item.source,
        created_at=iso(task.item.created_at),
        updated_at=iso(task.updated_at),
    )


def risk_of(risk: Risk) -> RiskView:
    return RiskView(
        id=risk.id,
        title=risk.title,
        detail=risk.detail,
        level=risk.level,
        mitigation=risk.mitigation,
        status=risk.status,
        session=risk.item.session,
        source=risk.item.source,
        created_at=iso(risk.item.created_at),
        updated_at=iso(risk.item.updated_at),
    )


def skill_of(skill: Skill) -> SkillView:
    return SkillView(
        id=skill.id,
        name=skill.name,
        summary=skill.summary,
        methods=skill.methods,
        triggers=skill.triggers,
        tags=skill.tags,
        created_at=iso(skill.item.created_at),
        updated_at=iso(skill.item.updated_at),
    )


def cursor_of(position: int | None) -> str | None:
    """A position in a list as an opaque word."""
    if position is None:
        return None
    return base64.urlsafe_b64encode(f"v1:{position}".encode()).decode().rstrip("=")


def position_of(cursor: str | None) -> int:
    """The position that a cursor stands for; 0 without a cursor."""
    if cursor is None:
        return 0
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        name, _, number = (
            base64.b64decode(padded, altchars=b"-_", validate=True).decode().partition(":")
        )
        position = int(number) if name == "v1" else -1
    except ValueError:
        position = -1
    if not 0 <= position < 2**53:
        raise ArgumentsRefused("cursor: is not a cursor of this list")
    return position

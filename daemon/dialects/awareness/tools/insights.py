"""`submit_insights`: what the caller's model drew from events, kept all together.

Reading is forgiving, writing is not: a card without a summary borrows its title, a priority
nobody knows becomes "medium", and each such correction is reported. What cannot be kept is skipped
with its reason. The rest is one unit of work. The store decides what is a duplicate, what replaces
an older card (which stays readable as superseded) and what the evidence is worth.
"""

from functools import partial
from typing import Any, Final, TypeVar, cast

import msgspec
from msgspec import UNSET, Struct

from daemon.dialects.awareness.arguments import RecordArguments, from_text
from daemon.dialects.awareness.refusal import Refused
from daemon.dialects.awareness.writing import event_writer
from daemon.dialects.awareness.writing.event_writer import Hand
from daemon.dialects.awareness.writing.insight_parsing import (
    Correction,
    Findings,
    Rejection,
    card_of,
    profile_of,
    risk_of,
    skill_of,
    task_of,
)
from daemon.tools.context import Context
from daemon.tools.progress import counted
from daemon.tools.toolkit import Toolkit
from store.errors import InvalidInput, NotFound
from store.model import AgentProfile, NewCard, NewMemory, NewNotes, NewRisk, NewTask, NotesKept

T = TypeVar("T")

MOST: Final = 500
PARTS: Final = (
    "knowledge_cards", "risks", "action_items", "skills", "completed_tasks", "agent_profiles",
)  # fmt: skip


class Kept(Struct, frozen=True, kw_only=True):
    """What became of one thing that was submitted."""

    index: int
    id: str
    outcome: str
    replaces: str | None = None


class Submitted(Struct, frozen=True, kw_only=True):
    status: str
    memory_id: str
    session_id: str
    cards_created: int
    cards_updated: int
    cards_skipped_dup: int
    risks_created: int
    risks_updated: int
    action_items_created: int
    action_items_skipped_dup: int
    tasks_completed: int
    profiles_stored: int
    cards: list[Kept]
    risks: list[Kept]
    action_items: list[Kept]
    skipped: list[Rejection]
    corrected: list[Correction]


class SubmitInsights:
    def __init__(self, toolkit: Toolkit) -> None:
        self._toolkit = toolkit

    async def __call__(self, arguments: RecordArguments, context: Context) -> Submitted:
        sent = _object(arguments)
        hand = await event_writer.hand_for(self._toolkit, arguments, context)
        findings = Findings()
        cards = _read_all(sent, "knowledge_cards", findings, hand, card_of)
        skills = _read_all(sent, "skills", findings, hand, skill_of)
        tasks = _read_all(sent, "action_items", findings, hand, task_of)
        risks = _read_all(sent, "risks", findings, hand, risk_of)
        profiles = _read_all(sent, "agent_profiles", findings, hand, profile_of)
        done, events = await self._finished(sent, findings, hand)
        events += _brief(sent, hand)
        for name in sent:
            if name not in (*PARTS, "turn_brief"):
                findings.reject(name, "is not a part of insights that this server keeps")
        all_cards = await self._with_predecessors([*cards, *skills], findings, hand.bank)
        kept = await self._keep(context, hand, all_cards, tasks, risks, profiles, done, events)
        return _submitted(hand, kept, all_cards, tasks, risks, profiles, findings)

    async def _keep(
        self,
        context: Context,
        hand: Hand,
        cards: list[tuple[str, NewCard]],
        tasks: list[tuple[str, NewTask]],
        risks: list[tuple[str, NewRisk]],
        profiles: list[tuple[str, AgentProfile]],
        done: list[str],
        events: list[NewMemory],
    ) -> NotesKept:
        notes = NewNotes(
            cards=tuple(card for _, card in cards),
            tasks=tuple(task for _, task in tasks),
            risks=tuple(risk for _, risk in risks),
            profiles=tuple(profile for _, profile in profiles),
            events=tuple(events),
            task_statuses=tuple((id, "completed") for id in done),
        )
        if notes == NewNotes():
            return NotesKept()
        try:
            put = partial(self._toolkit.engine.put_notes, hand.bank, notes)
            return await counted(context, "notes", lambda progress: put(progress=progress))
        except InvalidInput as error:
            raise Refused(f"content: {error.field} {error.rule}") from None

    async def _finished(
        self, sent: dict[str, Any], findings: Findings, hand: Hand
    ) -> tuple[list[str], list[NewMemory]]:
        """The tasks that are named as completed and exist; their reasons, as events."""
        done: list[str] = []
        events: list[NewMemory] = []
        for place, entry in _entries(sent, "completed_tasks", findings):
            named = cast("dict[str, Any]", entry) if isinstance(entry, dict) else {"task_id": entry}
            id = named.get("task_id")
            if not isinstance(id, str) or not id:
                findings.reject(place, "task_id: must be a text")
                continue
            try:
                item = await self._toolkit.engine.get(hand.bank, id)
            except NotFound:
                item = None
            if item is None or item.kind != "task":
                findings.reject(place, f"no task with id '{id}' in this memory")
                continue
            done.append(id)
            reason = named.get("reason")
            if isinstance(reason, str) and reason.strip():
                events.append(
                    _event(hand, f"Task completed: {item.title}. {reason}", "task_update", task=id)
                )
        return done, events

    async def _with_predecessors(
        self, cards: list[tuple[str, NewCard]], findings: Findings, bank: str
    ) -> list[tuple[str, NewCard]]:
        """The cards; one that names a predecessor which is not there comes without it."""
        checked: list[tuple[str, NewCard]] = []
        taken: set[str] = set()
        for place, card in cards:
            old = card.supersedes
            if old is not None:
                reason = await self._unfit(bank, old, taken)
                if reason:
                    findings.correct(f"{place}.supersedes", f"{reason}; kept as a card of its own")
                    card = msgspec.structs.replace(card, supersedes=None)
                taken.add(old)
            checked.append((place, card))
        return checked

    async def _unfit(self, bank: str, id: str, taken: set[str]) -> str:
        try:
            card = await self._toolkit.engine.card(bank, id)
        except NotFound:
            return f"no card with id '{id}' in this memory"
        return f"'{id}' is superseded already" if card.superseded_by or id in taken else ""


def _object(arguments: RecordArguments) -> dict[str, Any]:
    """The insights, wherever they were put: `content` (or `insights`), as an object or as text."""
    sent = arguments.content
    if arguments.insights is not UNSET and arguments.insights is not None:
        if sent is not None:
            raise Refused("insights: send the insights once, in content")
        sent = arguments.insights
    if sent is None or sent == "":
        raise Refused("content: is required by action='submit_insights'")
    sent = from_text(sent)
    if isinstance(sent, dict):
        members = cast("dict[str, Any]", sent)
        inner = from_text(members.get("insights"))
        if isinstance(inner, dict) and len(members) == 1:
            return cast("dict[str, Any]", inner)
        return members
    if isinstance(sent, list):
        return {"knowledge_cards": sent}
    raise Refused("content: must be an object with knowledge_cards, risks or action_items")


def _entries(sent: dict[str, Any], part: str, findings: Findings) -> list[tuple[str, Any]]:
    listed = from_text(sent.get(part))
    if listed is None or listed == "":
        return []
    if not isinstance(listed, list):
        findings.reject(part, "must be an array")
        return []
    entries = cast("list[Any]", listed)
    if len(entries) > MOST:
        raise Refused(f"content.{part}: must not have more than {MOST} entries")
    return [(f"{part}[{index}]", from_text(entry)) for index, entry in enumerate(entries)]


def _read_all(
    sent: dict[str, Any], part: str, findings: Findings, hand: Hand, read: Any
) -> list[tuple[str, Any]]:
    """Each entry of a part that can be kept, with the place where it was sent."""
    kept: list[tuple[str, Any]] = []
    for place, entry in _entries(sent, part, findings):
        if not isinstance(entry, dict):
            findings.reject(place, "must be an object")
            continue
        found = read(place, dict(cast("dict[str, Any]", entry)), findings, hand)
        if found is not None:
            kept.append((place, found))
    return kept


def _brief(sent: dict[str, Any], hand: Hand) -> list[NewMemory]:
    brief = sent.get("turn_brief")
    if not isinstance(brief, str) or not brief.strip():
        return []
    return [_event(hand, brief, "turn_brief")]


def _event(hand: Hand, text: str, event_type: str, *, task: str | None = None) -> NewMemory:
    return NewMemory(
        kind="event",
        text=text,
        session=hand.session,
        source=hand.source,
        user=hand.user,
        role=hand.role,
        actor="assistant",
        event_type=event_type,
        status="resolved" if task else "noted",
        metadata={"task_id": task} if task else {},
        provenance=hand.provenance,
    )


def _submitted(
    hand: Hand,
    kept: NotesKept,
    cards: list[tuple[str, NewCard]],
    tasks: list[tuple[str, NewTask]],
    risks: list[tuple[str, NewRisk]],
    profiles: list[tuple[str, AgentProfile]],
    findings: Findings,
) -> Submitted:
    outcomes = [outcome.outcome for outcome in kept.cards]
    risks_known = sum(put.duplicate for put in kept.risks)
    tasks_known = sum(put.duplicate for put in kept.tasks)
    return Submitted(
        status="partial" if findings.rejected else "ok",
        memory_id=hand.bank,
        session_id=hand.session,
        cards_created=outcomes.count("created"),
        cards_updated=outcomes.count("superseded"),
        cards_skipped_dup=outcomes.count("duplicate"),
        risks_created=len(kept.risks) - risks_known,
        risks_updated=risks_known,
        action_items_created=len(kept.tasks) - tasks_known,
        action_items_skipped_dup=tasks_known,
        tasks_completed=len(kept.changed),
        profiles_stored=len(profiles),
        cards=[
            Kept(
                index=_index(place),
                id=outcome.id,
                outcome={"superseded": "updated"}.get(outcome.outcome, outcome.outcome),
                replaces=outcome.other if outcome.outcome == "superseded" else None,
            )
            for (place, _), outcome in zip(cards, kept.cards, strict=True)
        ],
        risks=[
            Kept(index=_index(place), id=put.id, outcome="updated" if put.duplicate else "created")
            for (place, _), put in zip(risks, kept.risks, strict=True)
        ],
        action_items=[
            Kept(
                index=_index(place), id=put.id, outcome="duplicate" if put.duplicate else "created"
            )
            for (place, _), put in zip(tasks, kept.tasks, strict=True)
        ],
        skipped=findings.rejected,
        corrected=findings.corrected,
    )


def _index(place: str) -> int:
    return int(place.partition("[")[2].rstrip("]"))

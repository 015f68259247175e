"""`submit_insights`: stores the insights that the caller's model extracted from events.

Parsing is lenient: a card without a summary gets its title as summary, an unknown priority becomes
"medium", and each such correction is reported. Entries that cannot be stored are skipped with a
reason. All other entries are stored in one transaction. The store detects duplicates, decides which
cards replace older ones (those stay readable as superseded) and verifies the evidence.
"""

from functools import partial
from typing import Any, Final, TypeVar, cast

import msgspec
from msgspec import UNSET, Struct

from daemon.dialects.awareness.arguments import RecordArguments, from_text
from daemon.dialects.awareness.language.summaries import clip
from daemon.dialects.awareness.refusal import InvalidArgument
from daemon.dialects.awareness.writing import event_writer
from daemon.dialects.awareness.writing.event_writer import CallLabels
from daemon.dialects.awareness.writing.insight_parsing import (
    Correction,
    ParsingReport,
    Rejection,
    card_of,
    risk_of,
    skill_of,
    task_of,
)
from daemon.dialects.awareness.writing.profile_changes import ProfileChanges, read_changes
from daemon.tools.context import Context
from daemon.tools.offload import LARGE, offload
from daemon.tools.progress import counted
from daemon.tools.toolkit import Toolkit
from store.errors import InvalidInput, NotFound
from store.model import NewCard, NewMemory, NewNotes, NewRisk, NewTask, NotesKept

T = TypeVar("T")

MOST: Final = 500
PARTS: Final = (
    "knowledge_cards", "risks", "action_items", "skills", "completed_tasks", "agent_profiles",
)  # fmt: skip


class EntryOutcome(Struct, frozen=True, kw_only=True):
    """The outcome of one submitted entry."""

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
    profiles_deleted: int
    cards: list[EntryOutcome]
    risks: list[EntryOutcome]
    action_items: list[EntryOutcome]
    skipped: list[Rejection]
    corrected: list[Correction]


class SubmitInsights:
    def __init__(self, toolkit: Toolkit) -> None:
        self._toolkit = toolkit

    async def __call__(self, arguments: RecordArguments, context: Context) -> Submitted:
        sent = await offload(lambda: _object(arguments), LARGE)
        labels = await event_writer.labels_for(self._toolkit, arguments, context)
        report = ParsingReport()
        cards, tasks, risks, entries = await offload(
            lambda: (
                _read_all(sent, "knowledge_cards", report, labels, card_of)
                + _read_all(sent, "skills", report, labels, skill_of),
                _read_all(sent, "action_items", report, labels, task_of),
                _read_all(sent, "risks", report, labels, risk_of),
                _entries(sent, "agent_profiles", report),
            ),
            LARGE,
        )
        profiles = await read_changes(self._toolkit, labels.bank, entries, report)
        done, events = await self._finished(sent, report, labels)
        events += _brief(sent, labels)
        for name in sent:
            if name not in (*PARTS, "turn_brief"):
                report.reject(name, "is not a part of insights that this server keeps")
        all_cards = await self._with_predecessors(cards, report, labels.bank)
        kept = await self._keep(context, labels, all_cards, tasks, risks, profiles, done, events)
        return _submitted(labels, kept, all_cards, tasks, risks, profiles, report)

    async def _keep(
        self,
        context: Context,
        labels: CallLabels,
        cards: list[tuple[str, NewCard]],
        tasks: list[tuple[str, NewTask]],
        risks: list[tuple[str, NewRisk]],
        profiles: ProfileChanges,
        done: list[str],
        events: list[NewMemory],
    ) -> NotesKept:
        notes = NewNotes(
            cards=tuple(card for _, card in cards),
            tasks=tuple(task for _, task in tasks),
            risks=tuple(risk for _, risk in risks),
            profiles=profiles.stored,
            deleted_profiles=profiles.deleted,
            events=tuple(events),
            task_statuses=tuple((id, "completed") for id in done),
        )
        if notes == NewNotes():
            return NotesKept()
        try:
            put = partial(self._toolkit.engine.put_notes, labels.bank, notes)
            return await counted(context, "notes", lambda progress: put(progress=progress))
        except InvalidInput as error:
            raise InvalidArgument(f"content: {error.field} {error.rule}") from None

    async def _finished(
        self, sent: dict[str, Any], report: ParsingReport, labels: CallLabels
    ) -> tuple[list[str], list[NewMemory]]:
        """The existing tasks that were reported as completed, and the reasons as events."""
        done: list[str] = []
        events: list[NewMemory] = []
        for place, entry in _entries(sent, "completed_tasks", report):
            named = cast("dict[str, Any]", entry) if isinstance(entry, dict) else {"task_id": entry}
            id = named.get("task_id")
            if not isinstance(id, str) or not id:
                report.reject(place, "task_id: must be a text")
                continue
            try:
                item = await self._toolkit.engine.get(labels.bank, id)
            except NotFound:
                item = None
            is_open_event = item is not None and (item.kind, item.status) == ("event", "open")
            if item is None or (item.kind != "task" and not is_open_event):
                report.reject(place, f"no task with id '{id}' in this memory")
                continue
            done.append(id)
            reason = named.get("reason")
            if isinstance(reason, str) and reason.strip():
                events.append(
                    _event(
                        labels,
                        f"Task completed: {item.title or clip(item.text, 160)}. {reason}",
                        "task_update",
                        task=id,
                    )
                )
        return done, events

    async def _with_predecessors(
        self, cards: list[tuple[str, NewCard]], report: ParsingReport, bank: str
    ) -> list[tuple[str, NewCard]]:
        """The cards; a reference to a predecessor that does not exist is removed."""
        checked: list[tuple[str, NewCard]] = []
        taken: set[str] = set()
        for place, card in cards:
            old = card.supersedes
            if old is not None:
                reason = await self._reason_against(bank, old, taken)
                if reason:
                    report.correct(f"{place}.supersedes", f"{reason}; kept as a card of its own")
                    card = msgspec.structs.replace(card, supersedes=None)
                taken.add(old)
            checked.append((place, card))
        return checked

    async def _reason_against(self, bank: str, id: str, taken: set[str]) -> str:
        try:
            card = await self._toolkit.engine.card(bank, id)
        except NotFound:
            return f"no card with id '{id}' in this memory"
        return f"'{id}' is superseded already" if card.superseded_by or id in taken else ""


def _object(arguments: RecordArguments) -> dict[str, Any]:
    """The insights in `content` or `insights`, as an object or as JSON text."""
    sent = arguments.content
    if arguments.insights is not UNSET and arguments.insights is not None:
        if sent is not None:
            raise InvalidArgument("insights: send the insights once, in content")
        sent = arguments.insights
    if sent is None or sent == "":
        raise InvalidArgument("content: is required by action='submit_insights'")
    sent = from_text(sent)
    if isinstance(sent, dict):
        members = cast("dict[str, Any]", sent)
        inner = from_text(members.get("insights"))
        if isinstance(inner, dict) and len(members) == 1:
            return cast("dict[str, Any]", inner)
        return members
    if isinstance(sent, list):
        return {"knowledge_cards": sent}
    raise InvalidArgument("content: must be an object with knowledge_cards, risks or action_items")


def _entries(sent: dict[str, Any], part: str, report: ParsingReport) -> list[tuple[str, Any]]:
    listed = from_text(sent.get(part))
    if listed is None or listed == "":
        return []
    if not isinstance(listed, list):
        report.reject(part, "must be an array")
        return []
    entries = cast("list[Any]", listed)
    if len(entries) > MOST:
        raise InvalidArgument(f"content.{part}: must not have more than {MOST} entries")
    return [(f"{part}[{index}]", from_text(entry)) for index, entry in enumerate(entries)]


def _read_all(
    sent: dict[str, Any], part: str, report: ParsingReport, labels: CallLabels, read: Any
) -> list[tuple[str, Any]]:
    """The valid entries of a part, with their places in the request."""
    kept: list[tuple[str, Any]] = []
    for place, entry in _entries(sent, part, report):
        if not isinstance(entry, dict):
            report.reject(place, "must be an object")
            continue
        found = read(place, dict(cast("dict[str, Any]", entry)), report, labels)
        if found is not None:
            kept.append((place, found))
    return kept


def _brief(sent: dict[str, Any], labels: CallLabels) -> list[NewMemory]:
    brief = sent.get("turn_brief")
    if not isinstance(brief, str) or not brief.strip():
        return []
    return [_event(labels, brief, "turn_brief")]


def _event(labels: CallLabels, text: str, event_type: str, *, task: str | None = None) -> NewMemory:
    return NewMemory(
        kind="event",
        text=text,
        session=labels.session,
        source=labels.source,
        user=labels.user,
        role=labels.role,
        actor="assistant",
        event_type=event_type,
        status="resolved" if task else "noted",
        metadata={"task_id": task} if task else {},
        provenance=labels.provenance,
    )


def _submitted(
    labels: CallLabels,
    kept: NotesKept,
    cards: list[tuple[str, NewCard]],
    tasks: list[tuple[str, NewTask]],
    risks: list[tuple[str, NewRisk]],
    profiles: ProfileChanges,
    report: ParsingReport,
) -> Submitted:
    outcomes = [outcome.outcome for outcome in kept.cards]
    risks_known = sum(put.duplicate for put in kept.risks)
    tasks_known = sum(put.duplicate for put in kept.tasks)
    return Submitted(
        status="partial" if report.rejected else "ok",
        memory_id=labels.bank,
        session_id=labels.session,
        cards_created=outcomes.count("created"),
        cards_updated=outcomes.count("superseded"),
        cards_skipped_dup=outcomes.count("duplicate"),
        risks_created=len(kept.risks) - risks_known,
        risks_updated=risks_known,
        action_items_created=len(kept.tasks) - tasks_known,
        action_items_skipped_dup=tasks_known,
        tasks_completed=len(kept.changed),
        profiles_stored=len(profiles.stored),
        profiles_deleted=len(profiles.deleted),
        cards=[
            EntryOutcome(
                index=_index(place),
                id=outcome.id,
                outcome={"superseded": "updated"}.get(outcome.outcome, outcome.outcome),
                replaces=outcome.other if outcome.outcome == "superseded" else None,
            )
            for (place, _), outcome in zip(cards, kept.cards, strict=True)
        ],
        risks=[
            EntryOutcome(
                index=_index(place), id=put.id, outcome="updated" if put.duplicate else "created"
            )
            for (place, _), put in zip(risks, kept.risks, strict=True)
        ],
        action_items=[
            EntryOutcome(
                index=_index(place), id=put.id, outcome="duplicate" if put.duplicate else "created"
            )
            for (place, _), put in zip(tasks, kept.tasks, strict=True)
        ],
        skipped=report.rejected,
        corrected=report.corrected,
    )


def _index(place: str) -> int:
    return int(place.partition("[")[2].rstrip("]"))

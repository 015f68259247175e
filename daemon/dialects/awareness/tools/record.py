"""`awareness_record`: the six write actions. Nothing that was sent is dropped silently.

An argument that the action does not use is refused. Entries that cannot be stored are listed with
the reason, and entries that exist already are counted as duplicates.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, cast

from msgspec import UNSET, Struct, UnsetType, field

from daemon.dialects.awareness import memory
from daemon.dialects.awareness.arguments import (
    ACTIONS,
    CONTENT_SCOPES,
    RecordArguments,
    at_least,
    chosen,
    from_text,
)
from daemon.dialects.awareness.language.vocabulary import TASK_STATUSES, status_named
from daemon.dialects.awareness.refusal import InvalidArgument
from daemon.dialects.awareness.tools.ingest import Ingest
from daemon.dialects.awareness.tools.insights import SubmitInsights
from daemon.dialects.awareness.writing import event_writer
from daemon.dialects.awareness.writing.drafts import Draft, Skipped, parse_drafts
from daemon.dialects.awareness.writing.event_writer import Counts
from daemon.dialects.awareness.writing.history import entries_of
from daemon.tools.context import Context
from daemon.tools.errors import Missing
from daemon.tools.offload import LARGE, offload
from daemon.tools.toolkit import Toolkit, iso
from store.errors import BankNotFound, NotFound

MOST_EVENTS: Final = 5_000

#: The actions that use each payload argument. Every other action refuses the argument.
_PAYLOADS: Final = {
    "text": ("remember",),
    "steps": ("remember_batch",),
    "history": ("backfill",),
    "content": ("ingest", "submit_insights", "remember"),
    "insights": ("submit_insights",),
    "task_id": ("update_task",),
}


class RecordedEvent(Struct, frozen=True, kw_only=True):
    id: str
    content: str
    source: str
    session_id: str
    actor: str
    event_type: str
    status: str
    timestamp: str


class Remembered(Struct, frozen=True, kw_only=True):
    memory_id: str
    source: str
    session_id: str
    event: RecordedEvent
    result: Counts
    instruction: str | UnsetType = field(name="_extraction_instruction", default=UNSET)


class Step(Struct, frozen=True, kw_only=True):
    index: int
    id: str
    actor: str
    event_type: str
    status: str
    duplicate: bool | UnsetType = UNSET


class RememberedBatch(Struct, frozen=True, kw_only=True):
    memory_id: str
    session_id: str
    accepted_steps: int
    events: list[Step]
    skipped: list[Skipped]
    result: Counts
    summary: str | UnsetType
    instruction: str | UnsetType = field(name="_extraction_instruction", default=UNSET)


class Backfilled(Struct, frozen=True, kw_only=True):
    memory_id: str
    session_id: str
    parsed_events: int
    ingested_events: int
    truncated: bool
    #: The next entry to import if the history was longer than `max_events`.
    next_event: int | UnsetType
    skipped: list[Skipped]
    result: Counts
    summary: str | UnsetType
    instruction: str | UnsetType = field(name="_extraction_instruction", default=UNSET)


class UpdatedTask(Struct, frozen=True, kw_only=True):
    id: str
    memory_id: str
    title: str
    priority: str
    status: str
    updated_at: str


class Record:
    def __init__(self, toolkit: Toolkit) -> None:
        self._toolkit = toolkit
        self._ingest = Ingest(toolkit)
        self._submit = SubmitInsights(toolkit)
        self._actions: dict[str, Callable[[RecordArguments, Context], Awaitable[Any]]] = {
            "remember": self._remember,
            "remember_batch": self._remember_batch,
            "backfill": self._backfill,
            "ingest": self._ingest,
            "update_task": self._update_task,
            "submit_insights": self._submit,
        }

    async def __call__(self, arguments: RecordArguments, context: Context) -> Any:
        action = chosen("action", arguments.action, ACTIONS)
        for name, actions in _PAYLOADS.items():
            if action not in actions and getattr(arguments, name) not in ("", None, UNSET):
                users = " or ".join(actions)
                raise InvalidArgument(f"{name}: is not used by action='{action}', but by {users}")
        chosen("content_scope", arguments.content_scope, CONTENT_SCOPES)
        at_least("max_events", arguments.max_events, 1)
        return await self._actions[action](arguments, context)

    async def _remember(self, arguments: RecordArguments, context: Context) -> Remembered:
        text = arguments.text
        if arguments.content is not None:
            if text or not isinstance(arguments.content, str):
                raise InvalidArgument(
                    "content: is not used by action='remember'; send the text in text"
                )
            text = arguments.content
        if not text.strip():
            raise InvalidArgument("text: must not be empty")
        labels = await event_writer.labels_for(self._toolkit, arguments, context)
        drafts = [Draft(index=0, text=text)]
        events = await event_writer.events_of(drafts, labels)
        kept = await event_writer.write(self._toolkit, labels, drafts, events, context, "text")
        item = await self._toolkit.engine.get(labels.bank, kept[0].id)
        return Remembered(
            memory_id=labels.bank,
            source=arguments.source,
            session_id=labels.session,
            event=RecordedEvent(
                id=item.id,
                content=item.text,
                source=item.source or "",
                session_id=item.session or "",
                actor=item.actor or "",
                event_type=item.event_type or "",
                status=item.status or "",
                timestamp=iso(item.occurred_at),
            ),
            result=event_writer.count_outcomes(kept),
            instruction=await event_writer.ask_for_insights(self._toolkit, labels, drafts, kept),
        )

    async def _remember_batch(
        self, arguments: RecordArguments, context: Context
    ) -> RememberedBatch:
        given = from_text(arguments.steps)
        if given is None or given == "":
            raise InvalidArgument("steps: is required by action='remember_batch'")
        if not isinstance(given, list):
            raise InvalidArgument("steps: must be an array of texts or {text} objects")
        steps = cast("list[Any]", given)
        if len(steps) > MOST_EVENTS:
            raise InvalidArgument(f"steps: must not have more than {MOST_EVENTS} entries")
        sent = await offload(partial(parse_drafts, steps), LARGE)
        if not sent.drafts:
            raise InvalidArgument("steps: no valid steps provided")
        labels = await event_writer.labels_for(self._toolkit, arguments, context)
        events = await event_writer.events_of(sent.drafts, labels)
        kept = await event_writer.write(
            self._toolkit, labels, sent.drafts, events, context, "steps"
        )
        return RememberedBatch(
            memory_id=labels.bank,
            session_id=labels.session,
            accepted_steps=len(kept),
            events=[
                Step(
                    index=draft.index,
                    id=put.id,
                    actor=event.actor or "",
                    event_type=event.event_type or "",
                    status=event.status or "",
                    duplicate=put.duplicate or UNSET,
                )
                for draft, event, put in zip(sent.drafts, events, kept, strict=True)
            ],
            skipped=sent.skipped,
            result=event_writer.count_outcomes(kept, len(steps) - len(sent.drafts)),
            summary=await self._summary(arguments, labels),
            instruction=await event_writer.ask_for_insights(
                self._toolkit, labels, sent.drafts, kept
            ),
        )

    async def _backfill(self, arguments: RecordArguments, context: Context) -> Backfilled:
        most = min(arguments.max_events, MOST_EVENTS)
        if arguments.history is None or arguments.history == "":
            raise InvalidArgument("history: is required by action='backfill'")
        entries = await offload(partial(entries_of, arguments.history), LARGE)
        sent = await offload(partial(parse_drafts, entries[:most]), LARGE)
        if not sent.drafts:
            raise InvalidArgument("history: no parseable history found")
        labels = await event_writer.labels_for(self._toolkit, arguments, context)
        drafts = _mark_repetitions(sent.drafts)
        events = await event_writer.events_of(drafts, labels)
        kept = await event_writer.write(self._toolkit, labels, drafts, events, context, "history")
        return Backfilled(
            memory_id=labels.bank,
            session_id=labels.session,
            parsed_events=len(entries),
            ingested_events=len(kept),
            truncated=len(entries) > most,
            next_event=most if len(entries) > most else UNSET,
            skipped=sent.skipped,
            result=event_writer.count_outcomes(kept, sum(skip.count for skip in sent.skipped)),
            summary=await self._summary(arguments, labels),
            instruction=await event_writer.ask_for_insights(self._toolkit, labels, drafts, kept),
        )

    async def _update_task(self, arguments: RecordArguments, context: Context) -> UpdatedTask:
        if not arguments.task_id.strip():
            raise InvalidArgument("task_id: is required by action='update_task'")
        status = status_named(arguments.status, TASK_STATUSES)
        if not status:
            raise InvalidArgument("status: is required by action='update_task'")
        reader = await memory.to_read(self._toolkit, context, arguments.memory_id)
        bank = reader.bank
        try:
            task = await self._toolkit.engine.change_task(bank, arguments.task_id, status=status)
        except (BankNotFound, NotFound):
            raise Missing(f"Task '{arguments.task_id}' not found in memory {bank}.") from None
        return UpdatedTask(
            id=task.id,
            memory_id=bank,
            title=task.title,
            priority=task.priority,
            status=task.status,
            updated_at=iso(task.updated_at),
        )

    async def _summary(
        self, arguments: RecordArguments, labels: event_writer.CallLabels
    ) -> str | UnsetType:
        if not arguments.generate_summary:
            return UNSET
        return await event_writer.summarise_session(self._toolkit, labels) or UNSET


def _mark_repetitions(drafts: list[Draft]) -> list[Draft]:
    """Number repeated messages, so that a second "yes" is not taken for a duplicate.

    The numbers depend only on the history, so importing it again changes nothing.
    """
    seen: dict[tuple[str | None, str], int] = {}
    marked: list[Draft] = []
    for draft in drafts:
        message = (draft.actor, draft.text)
        times = seen[message] = seen.get(message, 0) + 1
        if times > 1 and draft.occurred_at is None:
            draft = Draft(
                **{
                    name: getattr(draft, name)
                    for name in draft.__struct_fields__
                    if name != "metadata"
                },
                metadata={**draft.metadata, "occurrence": times},
            )
        marked.append(draft)
    return marked

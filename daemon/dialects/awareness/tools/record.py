"""`awareness_record`: the six ways of writing. Nothing that is sent is lost without a word.

What an action does not use is refused, what it cannot use is listed with the reason, and what was
there already is counted as a duplicate.
"""

from collections.abc import Awaitable, Callable
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
from daemon.dialects.awareness.refusal import Refused
from daemon.dialects.awareness.tools.ingest import Ingest
from daemon.dialects.awareness.tools.insights import SubmitInsights
from daemon.dialects.awareness.writing import event_writer
from daemon.dialects.awareness.writing.drafts import Draft, Skipped, sort_out
from daemon.dialects.awareness.writing.event_writer import Counts
from daemon.dialects.awareness.writing.history import entries_of
from daemon.tools.context import Context
from daemon.tools.errors import Missing
from daemon.tools.toolkit import Toolkit, iso
from store.errors import BankNotFound, NotFound

MOST_EVENTS: Final = 5_000

#: What an action is about. Anything of this that another action is about is refused.
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
    #: Where to go on when the history was longer than `max_events`.
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
                raise Refused(f"{name}: is not used by action='{action}', but by {users}")
        chosen("content_scope", arguments.content_scope, CONTENT_SCOPES)
        at_least("max_events", arguments.max_events, 1)
        return await self._actions[action](arguments, context)

    async def _remember(self, arguments: RecordArguments, context: Context) -> Remembered:
        text = arguments.text
        if arguments.content is not None:
            if text or not isinstance(arguments.content, str):
                raise Refused("content: is not used by action='remember'; send the text in text")
            text = arguments.content
        if not text.strip():
            raise Refused("text: must not be empty")
        hand = await event_writer.hand_for(self._toolkit, arguments, context)
        draft = Draft(index=0, text=text)
        kept = await event_writer.write(self._toolkit, hand, [draft], context, "text")
        item = await self._toolkit.engine.get(hand.bank, kept[0].id)
        return Remembered(
            memory_id=hand.bank,
            source=arguments.source,
            session_id=hand.session,
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
            result=event_writer.counted(kept),
            instruction=await event_writer.ask_for_insights(self._toolkit, hand, [draft], kept),
        )

    async def _remember_batch(
        self, arguments: RecordArguments, context: Context
    ) -> RememberedBatch:
        given = from_text(arguments.steps)
        if given is None or given == "":
            raise Refused("steps: is required by action='remember_batch'")
        if not isinstance(given, list):
            raise Refused("steps: must be an array of texts or {text} objects")
        steps = cast("list[Any]", given)
        if len(steps) > MOST_EVENTS:
            raise Refused(f"steps: must not have more than {MOST_EVENTS} entries")
        sent = sort_out(steps)
        if not sent.drafts:
            raise Refused("steps: no valid steps provided")
        hand = await event_writer.hand_for(self._toolkit, arguments, context)
        kept = await event_writer.write(self._toolkit, hand, sent.drafts, context, "steps")
        events = [event_writer.event_of(draft, hand) for draft in sent.drafts]
        return RememberedBatch(
            memory_id=hand.bank,
            session_id=hand.session,
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
            result=event_writer.counted(kept, len(steps) - len(sent.drafts)),
            summary=await self._summary(arguments, hand),
            instruction=await event_writer.ask_for_insights(self._toolkit, hand, sent.drafts, kept),
        )

    async def _backfill(self, arguments: RecordArguments, context: Context) -> Backfilled:
        most = min(arguments.max_events, MOST_EVENTS)
        if arguments.history is None or arguments.history == "":
            raise Refused("history: is required by action='backfill'")
        entries = entries_of(arguments.history)
        sent = sort_out(entries[:most])
        if not sent.drafts:
            raise Refused("history: no parseable history found")
        hand = await event_writer.hand_for(self._toolkit, arguments, context)
        drafts = _told_apart(sent.drafts)
        kept = await event_writer.write(self._toolkit, hand, drafts, context, "history")
        return Backfilled(
            memory_id=hand.bank,
            session_id=hand.session,
            parsed_events=len(entries),
            ingested_events=len(kept),
            truncated=len(entries) > most,
            next_event=most if len(entries) > most else UNSET,
            skipped=sent.skipped,
            result=event_writer.counted(kept, sum(skip.count for skip in sent.skipped)),
            summary=await self._summary(arguments, hand),
            instruction=await event_writer.ask_for_insights(self._toolkit, hand, drafts, kept),
        )

    async def _update_task(self, arguments: RecordArguments, context: Context) -> UpdatedTask:
        if not arguments.task_id.strip():
            raise Refused("task_id: is required by action='update_task'")
        status = status_named(arguments.status, TASK_STATUSES)
        if not status:
            raise Refused("status: is required by action='update_task'")
        bank = memory.to_read(self._toolkit, context, arguments.memory_id).bank
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
        self, arguments: RecordArguments, hand: event_writer.Hand
    ) -> str | UnsetType:
        if not arguments.generate_summary:
            return UNSET
        return await event_writer.sum_up(self._toolkit, hand) or UNSET


def _told_apart(drafts: list[Draft]) -> list[Draft]:
    """A history may say "yes" twice and mean it: the second one is marked, and so is kept.

    The mark depends on nothing but the history, so that importing it again changes nothing.
    """
    seen: dict[tuple[str | None, str], int] = {}
    told: list[Draft] = []
    for draft in drafts:
        said = (draft.actor, draft.text)
        times = seen[said] = seen.get(said, 0) + 1
        if times > 1 and draft.occurred_at is None:
            draft = Draft(
                **{
                    name: getattr(draft, name)
                    for name in draft.__struct_fields__
                    if name != "metadata"
                },
                metadata={**draft.metadata, "occurrence": times},
            )
        told.append(draft)
    return told

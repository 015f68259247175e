"""Writes events: fills in labels, stores the events in order, counts and summarises them."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from msgspec import UNSET, Struct, UnsetType

from daemon.dialects.awareness import memory
from daemon.dialects.awareness.arguments import RecordArguments, check_labels, mapping
from daemon.dialects.awareness.language import detection, summaries
from daemon.dialects.awareness.language.keywords import TEXT_LIMIT, keywords_of
from daemon.dialects.awareness.language.vocabulary import EVENT_STATUSES, PREFERENCE, status_named
from daemon.dialects.awareness.refusal import FIELDS, InvalidArgument
from daemon.dialects.awareness.writing import extraction
from daemon.dialects.awareness.writing.drafts import Draft
from daemon.tools import progress
from daemon.tools.context import Context
from daemon.tools.offload import offload
from daemon.tools.toolkit import Toolkit
from store.errors import InvalidInput
from store.model import Filters, NewMemory, NewNarrative, Provenance, Put, Query

SUMMARISED_EVENTS: Final = 200
KNOWN_CARDS: Final = 5


class Counts(Struct, frozen=True, kw_only=True):
    """Outcome counts of a call; `accepted` is the number of well-formed events."""

    accepted: int
    written: int
    failed: int
    duplicates: int
    status: str


class CallLabels(Struct, frozen=True, kw_only=True):
    """The memory, the caller and the labels of all events of a call."""

    bank: str
    session: str
    source: str
    user: str | None
    role: str | None
    actor: str | None
    event_type: str | None
    status: str | None
    defaults: dict[str, Any]
    metadata: dict[str, Any]
    provenance: Provenance


async def labels_for(toolkit: Toolkit, arguments: RecordArguments, context: Context) -> CallLabels:
    """Check the labels of a call. The session defaults to that of the connection."""
    actor = _actor(arguments.actor)
    check_labels(
        source=arguments.source,
        session_id=arguments.session_id,
        user_id=arguments.user_id,
        agent_role=arguments.agent_role,
        event_type=arguments.event_type,
    )
    status = status_named(arguments.status, EVENT_STATUSES) or None
    defaults = mapping("metadata_defaults", arguments.metadata_defaults)
    metadata = mapping("metadata", arguments.metadata)
    return CallLabels(
        bank=await memory.to_write(toolkit, context, arguments.memory_id),
        session=arguments.session_id or await context.session(),
        # Never empty, so that the source filter can find the event (dialects/README.md, rule 4).
        source=arguments.source or memory.NAME,
        user=arguments.user_id or None,
        role=arguments.agent_role or None,
        actor=actor,
        event_type=arguments.event_type.strip() or None,
        status=status,
        defaults=defaults,
        metadata=metadata,
        provenance=memory.provenance_of(context),
    )


def event_of(draft: Draft, labels: CallLabels) -> NewMemory:
    """The event to store. Labels come from the draft, else the call, else the text."""
    return NewMemory(
        kind="event",
        text=draft.text,
        title=draft.title,
        category=PREFERENCE if detection.is_preference(draft.text) else None,
        session=labels.session,
        source=draft.source or labels.source,
        user=labels.user,
        role=labels.role,
        actor=draft.actor or labels.actor or detection.actor_of(draft.text),
        event_type=draft.event_type or labels.event_type or detection.event_type_of(draft.text),
        status=draft.status or labels.status or detection.status_of(draft.text),
        metadata={**labels.defaults, **labels.metadata, **_origin(draft), **draft.metadata},
        provenance=labels.provenance,
        occurred_at=draft.occurred_at,
    )


async def events_of(drafts: Sequence[Draft], labels: CallLabels) -> list[NewMemory]:
    """The events of these drafts; labels of long texts are detected in a worker thread."""
    return await offload(lambda: [event_of(draft, labels) for draft in drafts], _characters(drafts))


async def write(
    toolkit: Toolkit,
    labels: CallLabels,
    drafts: Sequence[Draft],
    events: Sequence[NewMemory],
    context: Context,
    field: str,
) -> list[Put]:
    """Store the events of these drafts in order, all of them or none.

    `field` is the argument that held them; a refusal names it.
    """
    put = partial(toolkit.engine.put_many, labels.bank, events)
    try:
        if len(drafts) < progress.MANY:
            return await put()
        return await progress.counted(context, "events", lambda progress: put(progress=progress))
    except InvalidInput as error:
        raise InvalidArgument(_refused(error, drafts, field)) from None


def count_outcomes(kept: Sequence[Put], skipped: int = 0) -> Counts:
    duplicates = sum(put.duplicate for put in kept)
    written = len(kept) - duplicates
    status = "ok" if written else "duplicate"
    return Counts(
        accepted=len(kept),
        written=written,
        failed=skipped,
        duplicates=duplicates,
        status="partial" if skipped and kept else status,
    )


async def summarise_session(toolkit: Toolkit, labels: CallLabels) -> str:
    """Summarise the session so far and store the summary."""
    page = await toolkit.engine.timeline(
        labels.bank,
        filters=Filters(session=labels.session, user=labels.user, role=labels.role),
        limit=SUMMARISED_EVENTS,
    )
    text = summaries.summarise(page.items, summaries.SUMMARY_CHARACTERS)
    if text:
        await toolkit.engine.put_narrative(
            labels.bank,
            NewNarrative(
                span="session",
                name=labels.session,
                text=text,
                count=page.total,
                session=labels.session,
                user=labels.user,
                role=labels.role,
                provenance=labels.provenance,
            ),
        )
    return text


async def ask_for_insights(
    toolkit: Toolkit, labels: CallLabels, drafts: Sequence[Draft], kept: Sequence[Put]
) -> str | UnsetType:
    """The extraction instruction, if a new event was written that may hold knowledge."""
    new = [(draft, put) for draft, put in zip(drafts, kept, strict=True) if not put.duplicate]
    candidates = await offload(
        lambda: [
            (draft, put)
            for draft, put in new
            if extraction.is_worth_extracting(draft.text, draft.event_type or labels.event_type)
        ],
        _characters(drafts),
    )
    if not candidates:
        return UNSET
    said = "\n".join(summaries.clip(draft.text, 200) for draft, _ in candidates[:5])
    known = await toolkit.engine.search(
        Query(
            bank=labels.bank,
            text=said,
            keywords=keywords_of(said, TEXT_LIMIT),
            mode="keyword",
            limit=KNOWN_CARDS,
            kinds=("card",),
            filters=Filters(user=labels.user),
        )
    )
    return extraction.instruction(
        [put.id for _, put in candidates], labels.session, [hit.item for hit in known.hits]
    )


def _characters(drafts: Sequence[Draft]) -> int:
    return sum(len(draft.text) for draft in drafts)


def _actor(value: str) -> str | None:
    plain = value.strip().lower()
    if plain and plain not in detection.ACTORS:
        raise InvalidArgument(f"actor: must be one of {', '.join(detection.ACTORS)}")
    return plain or None


def _origin(draft: Draft) -> dict[str, Any]:
    """The origin of a draft that events have no field for."""
    named = {"source_id": draft.source_id, "url": draft.url}
    return {name: value for name, value in named.items() if value is not None}


def _refused(error: InvalidInput, drafts: Sequence[Draft], field: str) -> str:
    """The engine's refusal of `memories[3].text`, with the caller's name `steps[5].text`."""
    head, _, rest = error.field.partition("].")
    if not head.startswith("memories[") or not rest:
        return str(error)
    at = drafts[int(head.removeprefix("memories["))].index
    place = f"{field}[{at}]" if len(drafts) > 1 or field == "steps" else field
    named = FIELDS.get(rest, rest)
    if rest == "text":
        return f"{place}: {error.rule}"
    # A label of the whole call is an argument of its own, not part of one event.
    is_own = rest in ("source", "user", "role", "session", "actor", "event_type", "metadata")
    return f"{named}: {error.rule}" if is_own else f"{place}.{named}: {error.rule}"

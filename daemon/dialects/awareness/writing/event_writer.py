"""Writing events: labels filled in, written in order, counted, summed up, and asked about."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from msgspec import UNSET, Struct, UnsetType

from daemon.dialects.awareness import memory
from daemon.dialects.awareness.arguments import RecordArguments, labels, mapping
from daemon.dialects.awareness.language import detection, summaries
from daemon.dialects.awareness.language.keywords import MOST as MOST_TERMS
from daemon.dialects.awareness.language.keywords import keywords_of
from daemon.dialects.awareness.language.vocabulary import EVENT_STATUSES, status_named
from daemon.dialects.awareness.refusal import FIELDS, Refused
from daemon.dialects.awareness.writing import extraction
from daemon.dialects.awareness.writing.drafts import Draft
from daemon.tools import progress
from daemon.tools.context import Context
from daemon.tools.toolkit import Toolkit
from store.errors import InvalidInput
from store.model import Filters, NewMemory, NewNarrative, Provenance, Put, Query

SUMMED_EVENTS: Final = 200
KNOWN_CARDS: Final = 5


class Counts(Struct, frozen=True, kw_only=True):
    """What became of events: `accepted` are those that were well-formed."""

    accepted: int
    written: int
    failed: int
    duplicates: int
    status: str


class Hand(Struct, frozen=True, kw_only=True):
    """Who writes into which memory, with the labels that hold for all events of the call."""

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


async def hand_for(toolkit: Toolkit, arguments: RecordArguments, context: Context) -> Hand:
    """Check the labels of a call. The session is the one named, else that of the connection."""
    actor = _actor(arguments.actor)
    labels(
        source=arguments.source,
        session_id=arguments.session_id,
        user_id=arguments.user_id,
        agent_role=arguments.agent_role,
        event_type=arguments.event_type,
    )
    status = status_named(arguments.status, EVENT_STATUSES) or None
    defaults = mapping("metadata_defaults", arguments.metadata_defaults)
    metadata = mapping("metadata", arguments.metadata)
    return Hand(
        bank=await memory.to_write(toolkit, context, arguments.memory_id),
        session=arguments.session_id or await context.session(),
        # Never empty (dialects/README rule 4): what is shown as a source can be asked for as one.
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


def event_of(draft: Draft, hand: Hand) -> NewMemory:
    """The event to be kept: what the draft says, else the call, else what the text tells."""
    return NewMemory(
        kind="event",
        text=draft.text,
        title=draft.title,
        session=hand.session,
        source=draft.source or hand.source,
        user=hand.user,
        role=hand.role,
        actor=draft.actor or hand.actor or detection.actor_of(draft.text),
        event_type=draft.event_type or hand.event_type or detection.event_type_of(draft.text),
        status=draft.status or hand.status or detection.status_of(draft.text),
        metadata={**hand.defaults, **hand.metadata, **_origin(draft), **draft.metadata},
        provenance=hand.provenance,
        occurred_at=draft.occurred_at,
    )


async def write(
    toolkit: Toolkit, hand: Hand, drafts: Sequence[Draft], context: Context, field: str
) -> list[Put]:
    """Keep all of them, in order, or none. `field` is what the caller calls them, for refusals."""
    put = partial(toolkit.engine.put_many, hand.bank, [event_of(draft, hand) for draft in drafts])
    try:
        if len(drafts) < progress.MANY:
            return await put()
        return await progress.counted(context, "events", lambda progress: put(progress=progress))
    except InvalidInput as error:
        raise Refused(_refused(error, drafts, field)) from None


def counted(kept: Sequence[Put], skipped: int = 0) -> Counts:
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


async def sum_up(toolkit: Toolkit, hand: Hand) -> str:
    """Tell the session so far in a few lines, and keep that as its summary."""
    page = await toolkit.engine.timeline(
        hand.bank,
        filters=Filters(session=hand.session, user=hand.user, role=hand.role),
        limit=SUMMED_EVENTS,
    )
    text = summaries.tell(page.items, summaries.SUMMARY_CHARACTERS)
    if text:
        await toolkit.engine.put_narrative(
            hand.bank,
            NewNarrative(
                span="session",
                name=hand.session,
                text=text,
                count=page.total,
                session=hand.session,
                user=hand.user,
                role=hand.role,
                provenance=hand.provenance,
            ),
        )
    return text


async def ask_for_insights(
    toolkit: Toolkit, hand: Hand, drafts: Sequence[Draft], kept: Sequence[Put]
) -> str | UnsetType:
    """The extraction instruction, when something new was written that may hold knowledge."""
    telling_ones = [
        (draft, put)
        for draft, put in zip(drafts, kept, strict=True)
        if not put.duplicate
        and extraction.is_telling(draft.text, draft.event_type or hand.event_type)
    ]
    if not telling_ones:
        return UNSET
    said = "\n".join(summaries.clip(draft.text, 200) for draft, _ in telling_ones[:5])
    known = await toolkit.engine.search(
        Query(
            bank=hand.bank,
            text=said,
            keywords=keywords_of(said, MOST_TERMS),
            mode="keyword",
            limit=KNOWN_CARDS,
            kinds=("card",),
            filters=Filters(user=hand.user),
        )
    )
    return extraction.instruction(
        [put.id for _, put in telling_ones], hand.session, [hit.item for hit in known.hits]
    )


def _actor(value: str) -> str | None:
    plain = value.strip().lower()
    if plain and plain not in detection.ACTORS:
        raise Refused(f"actor: must be one of {', '.join(detection.ACTORS)}")
    return plain or None


def _origin(draft: Draft) -> dict[str, Any]:
    """What a draft says about where it is from and events have no field for."""
    named = {"source_id": draft.source_id, "url": draft.url}
    return {name: value for name, value in named.items() if value is not None}


def _refused(error: InvalidInput, drafts: Sequence[Draft], field: str) -> str:
    """The engine's refusal of `memories[3].text`, in the caller's words: `steps[5].text`."""
    head, _, rest = error.field.partition("].")
    if not head.startswith("memories[") or not rest:
        return str(error)
    at = drafts[int(head.removeprefix("memories["))].index
    place = f"{field}[{at}]" if len(drafts) > 1 or field == "steps" else field
    named = FIELDS.get(rest, rest)
    if rest == "text":
        return f"{place}: {error.rule}"
    # A label of the whole call is the caller's argument, not part of one event.
    is_own = rest in ("source", "user", "role", "session", "actor", "event_type", "metadata")
    return f"{named}: {error.rule}" if is_own else f"{place}.{named}: {error.rule}"

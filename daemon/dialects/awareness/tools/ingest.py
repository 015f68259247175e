"""`ingest`: content from elsewhere, into the timeline as events or into knowledge as documents."""

from functools import partial
from hashlib import blake2b
from typing import Any, Final, cast

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from daemon.dialects.awareness.arguments import RecordArguments, from_text
from daemon.dialects.awareness.language.summaries import lead
from daemon.dialects.awareness.refusal import Refused
from daemon.dialects.awareness.writing import event_writer
from daemon.dialects.awareness.writing.drafts import TEXT_KEYS, Draft, Skipped, sort_out
from daemon.dialects.awareness.writing.event_writer import Counts, Hand
from daemon.tools.context import Context
from daemon.tools.progress import counted
from daemon.tools.toolkit import Toolkit
from store.errors import InvalidInput
from store.model import NewDocument, Upserted
from store.sqlite.rows.documents import check as check_document

MOST: Final = 5_000
_LISTS: Final = ("documents", "items", "events", "messages", "steps")


class IngestedDocument(Struct, frozen=True, kw_only=True):
    index: int
    id: str
    title: str
    source: str
    outcome: str
    chunks: int


class IngestedEvent(Struct, frozen=True, kw_only=True):
    index: int
    id: str
    duplicate: bool | UnsetType = UNSET


class Ingested(Struct, frozen=True, kw_only=True):
    memory_id: str
    session_id: str
    content_scope: str
    result: Counts
    skipped: list[Skipped]
    documents: list[IngestedDocument] | UnsetType = UNSET
    events: list[IngestedEvent] | UnsetType = UNSET
    instruction: str | UnsetType = field(name="_extraction_instruction", default=UNSET)


class Ingest:
    def __init__(self, toolkit: Toolkit) -> None:
        self._toolkit = toolkit

    async def __call__(self, arguments: RecordArguments, context: Context) -> Ingested:
        entries = entries_of(arguments.content)
        if len(entries) > MOST:
            raise Refused(f"content: must not have more than {MOST} entries")
        sent = sort_out(entries)
        if not sent.drafts:
            raise Refused("content: holds no text")
        hand = await event_writer.hand_for(self._toolkit, arguments, context)
        skipped = sum(skip.count for skip in sent.skipped)
        if arguments.content_scope.strip().lower() == "knowledge":
            return await self._documents(hand, sent.drafts, sent.skipped, skipped, context)
        kept = await event_writer.write(self._toolkit, hand, sent.drafts, context, "content")
        return Ingested(
            memory_id=hand.bank,
            session_id=hand.session,
            content_scope="timeline",
            result=event_writer.counted(kept, skipped),
            skipped=sent.skipped,
            events=[
                IngestedEvent(index=draft.index, id=put.id, duplicate=put.duplicate or UNSET)
                for draft, put in zip(sent.drafts, kept, strict=True)
            ],
            instruction=await event_writer.ask_for_insights(self._toolkit, hand, sent.drafts, kept),
        )

    async def _documents(
        self,
        hand: Hand,
        drafts: list[Draft],
        skipped: list[Skipped],
        skipped_count: int,
        context: Context,
    ) -> Ingested:
        documents = [document_of(draft, hand) for draft in drafts]
        for draft, document in zip(drafts, documents, strict=True):
            try:
                check_document(document)
            except InvalidInput as error:
                raise Refused(f"content[{draft.index}].{error.field}: {error.rule}") from None
        ingested: list[IngestedDocument] = []
        for draft, document in zip(drafts, documents, strict=True):
            put = await self._put(hand.bank, document, context, is_only=len(documents) == 1)
            ingested.append(
                IngestedDocument(
                    index=draft.index,
                    id=put.id,
                    title=document.title,
                    source=document.source,
                    outcome=put.outcome,
                    chunks=put.chunks,
                )
            )
            done = len(ingested)
            if len(documents) > 1:
                await context.progress(
                    done, len(documents), f"{done} of {len(documents)} documents"
                )
        unchanged = sum(document.outcome == "unchanged" for document in ingested)
        return Ingested(
            memory_id=hand.bank,
            session_id=hand.session,
            content_scope="knowledge",
            result=Counts(
                accepted=len(ingested),
                written=len(ingested) - unchanged,
                failed=skipped_count,
                duplicates=unchanged,
                status="partial" if skipped_count else "ok",
            ),
            skipped=skipped,
            documents=ingested,
        )

    async def _put(
        self, bank: str, document: NewDocument, context: Context, *, is_only: bool
    ) -> Upserted:
        """Keep a document; of one alone its passages are counted, of many the documents are."""
        put = partial(self._toolkit.engine.upsert_document, bank, document)
        if not is_only:
            return await put()
        return await counted(context, "passages", lambda progress: put(progress=progress))


def entries_of(content: Any) -> list[Any]:
    """The entries of `content`: a text is one, a list is many, an object is one or holds a list."""
    if content is None or content == "":
        raise Refused("content: is required by action='ingest'")
    if isinstance(content, str):
        # Some clients send objects as JSON text; any other JSON is a text like any other.
        parsed = from_text(content)
        if not _is_addressed(parsed):
            return [content]
        content = parsed
    if isinstance(content, list):
        return [_with_text(entry) for entry in cast("list[Any]", content)]
    if not isinstance(content, dict):
        raise Refused("content: must be a text, an array or an object")
    members = cast("dict[str, Any]", content)
    if not any(key in members for key in TEXT_KEYS):
        for key in _LISTS:
            inner = members.get(key)
            if isinstance(inner, list):
                return [_with_text(entry) for entry in cast("list[Any]", inner)]
    return [_with_text(members)]


def document_of(draft: Draft, hand: Hand) -> NewDocument:
    """A document; known again by what its sender calls it, else by what it says."""
    digest = blake2b(draft.text.encode("utf-8", "replace"), digest_size=16).hexdigest()
    return NewDocument(
        source=draft.source or hand.source,
        source_id=draft.source_id or draft.url or f"text:{digest}",
        title=draft.title or lead(draft.text.lstrip("# \n"), 120),
        body=draft.text,
        url=draft.url,
        metadata={**hand.defaults, **hand.metadata, **draft.metadata},
        updated_at=draft.occurred_at,
        session=hand.session,
        user=hand.user,
        role=hand.role,
        provenance=hand.provenance,
    )


def _is_addressed(parsed: Any) -> bool:
    """Whether this is content in our own shape, and not a JSON file that somebody wants kept."""
    if isinstance(parsed, list):
        members = cast("list[Any]", parsed)
        return bool(members) and all(
            isinstance(entry, str) or _has_text(entry) for entry in members
        )
    if not isinstance(parsed, dict):
        return False
    inner = cast("dict[str, Any]", parsed)
    return _has_text(inner) or any(isinstance(inner.get(key), list) for key in _LISTS)


def _has_text(entry: Any) -> bool:
    return isinstance(entry, dict) and any(key in entry for key in TEXT_KEYS)


def _with_text(entry: Any) -> Any:
    """An object that has no text of its own is kept as the JSON it is."""
    if isinstance(entry, dict) and entry and not any(key in entry for key in TEXT_KEYS):
        members = cast("dict[str, Any]", entry)
        named = {key: members[key] for key in ("title", "name", "id", "source") if key in members}
        return {**named, "text": msgspec.json.encode(members).decode()}
    return cast("Any", entry)

"""`ingest`: stores external content as events in the timeline or as documents in knowledge."""

from functools import partial
from hashlib import blake2b
from typing import Any, Final, cast

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from daemon.dialects.awareness.arguments import RecordArguments, from_text
from daemon.dialects.awareness.language.summaries import first_sentence
from daemon.dialects.awareness.refusal import InvalidArgument
from daemon.dialects.awareness.writing import event_writer
from daemon.dialects.awareness.writing.drafts import TEXT_KEYS, Draft, Skipped, parse_drafts
from daemon.dialects.awareness.writing.event_writer import CallLabels, Counts
from daemon.tools.context import Context
from daemon.tools.offload import LARGE, offload
from daemon.tools.progress import counted
from daemon.tools.toolkit import Toolkit
from store.errors import InvalidInput
from store.model import NewDocument, Upserted
from store.rows.documents import check as check_document

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
        entries = await offload(partial(entries_of, arguments.content), LARGE)
        if len(entries) > MOST:
            raise InvalidArgument(f"content: must not have more than {MOST} entries")
        sent = await offload(partial(parse_drafts, entries), LARGE)
        if not sent.drafts:
            raise InvalidArgument("content: holds no text")
        labels = await event_writer.labels_for(self._toolkit, arguments, context)
        skipped = sum(skip.count for skip in sent.skipped)
        if arguments.content_scope.strip().lower() == "knowledge":
            return await self._documents(labels, sent.drafts, sent.skipped, skipped, context)
        events = await event_writer.events_of(sent.drafts, labels)
        kept = await event_writer.write(
            self._toolkit, labels, sent.drafts, events, context, "content"
        )
        return Ingested(
            memory_id=labels.bank,
            session_id=labels.session,
            content_scope="timeline",
            result=event_writer.count_outcomes(kept, skipped),
            skipped=sent.skipped,
            events=[
                IngestedEvent(index=draft.index, id=put.id, duplicate=put.duplicate or UNSET)
                for draft, put in zip(sent.drafts, kept, strict=True)
            ],
            instruction=await event_writer.ask_for_insights(
                self._toolkit, labels, sent.drafts, kept
            ),
        )

    async def _documents(
        self,
        labels: CallLabels,
        drafts: list[Draft],
        skipped: list[Skipped],
        skipped_count: int,
        context: Context,
    ) -> Ingested:
        documents = await offload(partial(_checked_documents, drafts, labels), LARGE)
        for document in documents:
            sources = self._toolkit.sources
            if sources is not None and sources.is_configured(document.source, labels.bank):
                raise InvalidArgument(
                    f"content: {document.source!r} is a configured source; its documents come from"
                    " its sync"
                )
        ingested: list[IngestedDocument] = []
        for draft, document in zip(drafts, documents, strict=True):
            put = await self._put(labels.bank, document, context, is_only=len(documents) == 1)
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
            memory_id=labels.bank,
            session_id=labels.session,
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
        """Store a document. The progress of a single document is counted in passages."""
        put = partial(self._toolkit.engine.upsert_document, bank, document)
        if not is_only:
            return await put()
        return await counted(context, "passages", lambda progress: put(progress=progress))


def entries_of(content: Any) -> list[Any]:
    """The entries of `content`, which is a text, a list, an object, or an object with a list."""
    if content is None or content == "":
        raise InvalidArgument("content: is required by action='ingest'")
    if isinstance(content, str):
        # Some clients send objects as JSON text. Other JSON is stored as ordinary text.
        parsed = from_text(content)
        if not _is_addressed(parsed):
            return [content]
        content = parsed
    if isinstance(content, list):
        return [_with_text(entry) for entry in cast("list[Any]", content)]
    if not isinstance(content, dict):
        raise InvalidArgument("content: must be a text, an array or an object")
    members = cast("dict[str, Any]", content)
    if not any(key in members for key in TEXT_KEYS):
        for key in _LISTS:
            inner = members.get(key)
            if isinstance(inner, list):
                return [_with_text(entry) for entry in cast("list[Any]", inner)]
    return [_with_text(members)]


def _checked_documents(drafts: list[Draft], labels: CallLabels) -> list[NewDocument]:
    """The documents of these drafts; a document that cannot be stored refuses the whole call."""
    documents: list[NewDocument] = []
    for draft in drafts:
        document = document_of(draft, labels)
        try:
            check_document(document)
        except InvalidInput as error:
            raise InvalidArgument(f"content[{draft.index}].{error.field}: {error.rule}") from None
        documents.append(document)
    return documents


def document_of(draft: Draft, labels: CallLabels) -> NewDocument:
    """A document, identified by its sender's id or URL, else by a digest of its text."""
    digest = blake2b(draft.text.encode("utf-8", "replace"), digest_size=16).hexdigest()
    return NewDocument(
        source=draft.source or labels.source,
        source_id=draft.source_id or draft.url or f"text:{digest}",
        title=draft.title or first_sentence(draft.text.lstrip("# \n"), 120),
        body=draft.text,
        url=draft.url,
        metadata={**labels.defaults, **labels.metadata, **draft.metadata},
        updated_at=draft.occurred_at,
        session=labels.session,
        user=labels.user,
        role=labels.role,
        provenance=labels.provenance,
    )


def _is_addressed(parsed: Any) -> bool:
    """Whether this is content in the form of this tool, rather than a JSON file to be stored."""
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
    """An object without a text is stored as its own JSON."""
    if isinstance(entry, dict) and entry and not any(key in entry for key in TEXT_KEYS):
        members = cast("dict[str, Any]", entry)
        named = {key: members[key] for key in ("title", "name", "id", "source") if key in members}
        return {**named, "text": msgspec.json.encode(members).decode()}
    return cast("Any", entry)

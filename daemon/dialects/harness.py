"""Context Harness dialect: search documents, fetch one, and count them by source.

A search returns one row per document, scored by its best chunk. Items of other dialects are found
too: a memory is a document with a single chunk, and its source is the label it was stored with. The
bank is the connection's default. Rows are ordered as the Context Harness document says: by score,
then newest first, then by id.

A refusal is an error code with a message (`bad_request`, `not_found`, `internal`); REST adds a
status.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Final, Literal, cast

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from daemon.tools.context import Context
from daemon.tools.dialect import Dialect
from daemon.tools.errors import ArgumentsRefused, ScriptFailed, ScriptTimedOut
from daemon.tools.progress import counted
from daemon.tools.specification import LONG_CALL_SECONDS, NoArguments, ToolSpec
from daemon.tools.toolkit import Toolkit, full_text, iso, milliseconds, provenance
from protocol.mcp import CallToolResult, error_result
from store.errors import BankNotFound, NotFound
from store.model import Document, DocumentHeader, Filters, Found, Hit, Item, NewDocument, Query

NAME: Final = "harness"
MOST: Final = 1000
#: Hits that a search asks for per row, since the chunks of one document may crowd out others.
CHUNKS_PER_DOCUMENT: Final = 3
MOST_HITS: Final = 5000
PASSAGES: Final = 3  # documents whose snippet is chosen by meaning
#: Reasons in the engine's health for which stored documents may not be found.
FAULTS: Final = frozenset({"embedder-failed", "indexing-stopped", "items-damaged"})
TITLE_LENGTH: Final = 80

_encoder: Final = msgspec.json.Encoder()


class SearchArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    query: Annotated[str, Meta(min_length=1)]
    mode: Literal["keyword", "semantic", "hybrid"] = "keyword"
    limit: Annotated[int, Meta(ge=1)] | UnsetType = UNSET
    source: Annotated[str, Meta(min_length=1)] | UnsetType = UNSET
    # Not in the schema for agents, which is that of the document; `ctx search` uses them.
    since: Annotated[str, Meta(min_length=1)] | UnsetType = UNSET
    explain: bool = False


class GetArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    id: Annotated[str, Meta(min_length=1)]


class AddArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    source_id: Annotated[str, Meta(min_length=1)]
    body: Annotated[str, Meta(min_length=1)]
    source: Annotated[str, Meta(min_length=1)] = NAME
    title: str = ""
    source_url: str | UnsetType = UNSET


class RemoveArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    id: Annotated[str, Meta(min_length=1)]


class Added(Struct, frozen=True, kw_only=True):
    id: str
    outcome: str
    chunks: int


class Removed(Struct, frozen=True, kw_only=True):
    id: str
    removed: bool


class Row(Struct, frozen=True, kw_only=True):
    id: str
    source: str
    source_id: str
    title: str
    score: float
    snippet: str
    source_url: str | None
    score_parts: Mapping[str, float] | UnsetType = UNSET  # with `explain`


class Rows(Struct, frozen=True, kw_only=True):
    results: list[Row]


class Whole(Struct, frozen=True, kw_only=True):
    id: str
    source: str
    source_id: str
    title: str
    body: str
    source_url: str | None
    updated_at: str


class Source(Struct, frozen=True, kw_only=True):
    name: str
    configured: bool
    healthy: bool
    doc_count: int
    # Only of a configured source.
    last_sync: str | UnsetType | None = UNSET
    last_error: str | UnsetType | None = UNSET
    withheld_deletions: int | UnsetType = UNSET


class Sources(Struct, frozen=True, kw_only=True):
    sources: list[Source]


async def search(toolkit: Toolkit, arguments: SearchArguments, context: Context) -> Rows:
    if not arguments.query.strip():
        raise ArgumentsRefused("query: must not be empty")
    limit = toolkit.final_limit if arguments.limit is UNSET else min(MOST, arguments.limit)
    sources = () if arguments.source is UNSET else (arguments.source,)
    since = None if arguments.since is UNSET else milliseconds("since", arguments.since)
    wanted = limit * CHUNKS_PER_DOCUMENT
    while True:
        query = Query(
            bank=context.bank,
            text=arguments.query,
            mode=arguments.mode,
            limit=min(wanted, MOST_HITS),
            filters=Filters(sources=sources, since=since),
            explain=arguments.explain,
            passages=min(limit, PASSAGES),
        )
        try:
            found = await toolkit.engine.search(query)
        except BankNotFound:  # the first write creates the default bank
            return Rows(results=[])
        best = _best_of_each(found.hits)
        if len(best) >= limit or not _has_more(found, query):
            break
        wanted *= CHUNKS_PER_DOCUMENT
    best = best[:limit]
    documents = await _headers(toolkit, context.bank, best)
    rows = [_row(hit, documents) for hit in best]
    rows.sort(key=lambda placed: placed[0])
    return Rows(results=[row for _, row in rows])


async def _headers(toolkit: Toolkit, bank: str, hits: Sequence[Hit]) -> dict[str, DocumentHeader]:
    """The documents of these hits by id, without their bodies."""
    ids = [hit.item.document for hit in hits if hit.item.document]
    found = await toolkit.engine.document_headers(bank, ids) if ids else []
    return {document.id: document for document in found}


def _best_of_each(hits: Iterable[Hit]) -> list[Hit]:
    """The best hit of each document, best first; a memory counts as a document."""
    best: dict[str, Hit] = {}
    for hit in hits:
        best.setdefault(hit.item.document or hit.item.id, hit)
    return list(best.values())


def _has_more(found: Found, query: Query) -> bool:
    return len(found.hits) == query.limit and query.limit < MOST_HITS


def _row(hit: Hit, documents: Mapping[str, DocumentHeader]) -> tuple[tuple[float, int, str], Row]:
    """A row and its sort key, which does not depend on the other rows."""
    item, score = hit.item, round(hit.score, 4)
    document = documents.get(item.document or "")
    parts = UNSET if hit.parts is None else {k: round(v, 4) for k, v in hit.parts.items()}
    if document is None:
        row = Row(
            id=item.id,
            source=item.source or "",
            source_id=item.id,
            title=_title(item),
            score=score,
            snippet=hit.snippet,
            source_url=None,
            score_parts=parts,
        )
    else:
        row = Row(
            id=document.id,
            source=document.source,
            source_id=document.source_id,
            title=document.title or document.source_id,
            score=score,
            snippet=hit.snippet,
            source_url=_url(document, item),
            score_parts=parts,
        )
    newest = document.updated_at if document else item.updated_at
    return (-score, -newest, row.id), row


def _url(document: DocumentHeader, chunk: Item) -> str | None:
    """The address of a document, leading to the lines of the chunk if they are known."""
    lines = chunk.details.get("lines")
    if document.url is None or not isinstance(lines, list) or "#" in document.url:
        return document.url
    first, last = cast("list[int]", lines)
    return f"{document.url}#L{first}-L{last}"


async def get(toolkit: Toolkit, arguments: GetArguments, context: Context) -> Whole:
    try:
        return await _get(toolkit, context.bank, arguments.id)
    except (BankNotFound, NotFound):
        raise NotFound("document", arguments.id) from None


async def _get(toolkit: Toolkit, bank: str, id: str) -> Whole:
    try:
        return of_document(await toolkit.engine.document(bank, id))
    except NotFound:
        item = await toolkit.engine.get(bank, id)
    if item.document is not None:
        return of_document(await toolkit.engine.document(bank, item.document))
    return of_item(item)


def of_document(document: Document) -> Whole:
    return Whole(
        id=document.id,
        source=document.source,
        source_id=document.source_id,
        title=document.title or document.source_id,
        body=document.body,
        source_url=document.url,
        updated_at=_time(document.updated_at),
    )


def of_item(item: Item) -> Whole:
    """A memory as a document with a single chunk."""
    return Whole(
        id=item.id,
        # An item without a source is shown without one, so that `sources` and the filter agree.
        source=item.source or "",
        source_id=item.id,
        title=_title(item),
        body=full_text(item),
        source_url=None,
        updated_at=_time(item.updated_at),
    )


def _time(moment: int) -> str:  # without a fraction, as the Context Harness document shows it
    return iso(moment).replace(".000Z", "Z")


def title_of(body: str) -> str:
    """The first heading or line of a document without a title."""
    return body.lstrip()[:TITLE_LENGTH].partition("\n")[0].lstrip("# ").rstrip()


def _title(item: Item) -> str:
    """The item's title, else the beginning of its first line."""
    return item.title or item.text.lstrip()[:TITLE_LENGTH].partition("\n")[0].rstrip()


async def add_document(toolkit: Toolkit, arguments: AddArguments, context: Context) -> Added:
    """Store a document, or replace the one with the same source and source_id."""
    if not arguments.body.strip():
        raise ArgumentsRefused("body: must not be empty")
    _refuse_configured(toolkit, arguments.source, context.bank)
    document = NewDocument(
        source=arguments.source,
        source_id=arguments.source_id,
        body=arguments.body,
        title=arguments.title or title_of(arguments.body),
        url=None if arguments.source_url is UNSET else arguments.source_url,
        session=await context.session(),
        provenance=provenance(context, NAME),
    )
    put = await counted(
        context,
        "chunks",
        lambda progress: toolkit.engine.upsert_document(context.bank, document, progress=progress),
    )
    return Added(id=put.id, outcome=put.outcome, chunks=put.chunks)


async def remove_document(
    toolkit: Toolkit, arguments: RemoveArguments, context: Context
) -> Removed:
    try:
        found = await toolkit.engine.document(context.bank, arguments.id)
    except (BankNotFound, NotFound):
        raise NotFound("document", arguments.id) from None
    _refuse_configured(toolkit, found.source, context.bank)
    count = await toolkit.engine.delete_documents(context.bank, [found.id])
    return Removed(id=found.id, removed=count == 1)


def _refuse_configured(toolkit: Toolkit, source: str, bank: str) -> None:
    """The documents of a configured source come from its files, and a sync would undo a change."""
    if toolkit.sources is not None and toolkit.sources.is_configured(source, bank):
        raise ArgumentsRefused(
            f"source: {source!r} is a configured source; its documents come from its sync"
        )


async def list_sources(toolkit: Toolkit, _arguments: NoArguments, context: Context) -> Sources:
    counts = await _count_by_source(toolkit, context.bank)
    reports = await toolkit.sources.reports(context.bank) if toolkit.sources is not None else []
    health = toolkit.engine.health()
    is_healthy = health.is_ready and FAULTS.isdisjoint(health.degraded)
    found = [
        Source(
            name=report.name,
            configured=True,
            healthy=is_healthy and report.is_healthy,
            doc_count=counts.pop(report.name, 0),
            last_sync=None if report.last_sync is None else iso(report.last_sync),
            last_error=report.last_error,
            withheld_deletions=report.withheld_deletions,
        )
        for report in reports
    ]
    found += [
        Source(name=name, configured=False, healthy=is_healthy, doc_count=count)
        for name, count in counts.items()
    ]
    return Sources(sources=sorted(found, key=lambda source: source.name))


async def _count_by_source(toolkit: Toolkit, bank: str) -> dict[str, int]:
    """The number of documents of each source, memories of other dialects included."""
    try:
        stats = await toolkit.engine.stats(bank)
    except BankNotFound:  # the first write creates the default bank
        return {}
    counts = {source.source: source.documents for source in stats.by_source}
    for label, count in stats.by_label.items():
        counts[label] = counts.get(label, 0) + count
    return counts


# --- refusals -------------------------------------------------------------------------------


def error_body(code: str, message: str) -> dict[str, Any]:
    """The body of every refusal of this dialect, over MCP and over HTTP."""
    return {"error": {"code": code, "message": message}}


def _refuse(reason: str) -> CallToolResult:
    return error_result(_encoder.encode(error_body("bad_request", reason)).decode())


def _fail(failure: Exception) -> CallToolResult:
    if isinstance(failure, NotFound):
        body = error_body("not_found", f"document not found: {failure.id}")
    elif isinstance(failure, ScriptTimedOut):
        body = error_body("timeout", str(failure))
    elif isinstance(failure, ScriptFailed):
        body = error_body("tool_error", str(failure))
    else:
        body = error_body("internal", str(failure))
    return error_result(_encoder.encode(body).decode())


#: The schema of the Context Harness document, with the `source` parameter of its table.
SEARCH_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "Search query"},
        "mode": {
            "type": "string",
            "enum": ["keyword", "semantic", "hybrid"],
            "default": "keyword",
        },
        "limit": {"type": "integer", "minimum": 1},
        "source": {"type": "string", "description": "Filter by source name"},
    },
    "required": ["query"],
    "additionalProperties": False,
}


def tools(toolkit: Toolkit) -> list[ToolSpec]:
    return [
        ToolSpec(
            name="search",
            title="Search documents",
            description="Search indexed documents by keyword, semantic, or hybrid query",
            arguments=SearchArguments,
            input_schema=SEARCH_SCHEMA,
            output=Rows,
            run=partial(search, toolkit),
            read_only=True,
            fields={"text": "query", "sources": "source"},
        ),
        ToolSpec(
            name="get",
            title="Get a document",
            description="Retrieve a full document by ID",
            arguments=GetArguments,
            output=Whole,
            run=partial(get, toolkit),
            read_only=True,
        ),
        ToolSpec(
            name="sources",
            title="List sources",
            description="List configured data sources",
            output=Sources,
            run=partial(list_sources, toolkit),
            read_only=True,
        ),
        ToolSpec(
            name="add_document",
            title="Add a document",
            description="Store a document; replaces the one with this source and source_id",
            arguments=AddArguments,
            output=Added,
            run=partial(add_document, toolkit),
            idempotent=True,
            task_after=LONG_CALL_SECONDS,
            fields={"url": "source_url"},
        ),
        ToolSpec(
            name="remove_document",
            title="Remove a document",
            description="Remove a document by ID",
            arguments=RemoveArguments,
            output=Removed,
            run=partial(remove_document, toolkit),
            destructive=True,
        ),
    ]


DIALECT: Final = Dialect(
    name=NAME,
    tools=tools,
    instructions=(
        "Search documents with search in mode hybrid, then read one with get. Store a document "
        "with add_document."
    ),
    refuse=_refuse,
    fail=_fail,
)

"""Context Harness, tool side: documents searched, fetched and counted by source (seed 004).

One row a document, scored by its best chunk. What other dialects stored is found here too: a
memory is a document of one piece, whose source is the label it was stored with. The bank is the
connection's default. The order is the document's: score, then the newest, then the id.

This dialect says no with an error code and a message (`bad_request`, `not_found`, `internal`);
over HTTP the same codes come with a status.
"""

from collections.abc import Iterable
from functools import partial
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from daemon.tools.context import Context
from daemon.tools.dialect import Dialect
from daemon.tools.errors import ArgumentsRefused
from daemon.tools.specification import NoArguments, ToolSpec
from daemon.tools.toolkit import Toolkit, iso, words_of
from protocol.mcp import CallToolResult, error_result
from store.errors import BankNotFound, NotFound
from store.model import Document, Filters, Found, Hit, Item, Query

MOST: Final = 1000
#: Chunks of one document crowd out other documents; so many are asked for at first, a document.
CHUNKS_A_DOCUMENT: Final = 3
MOST_HITS: Final = 5000
TITLE_LENGTH: Final = 80

_encoder: Final = msgspec.json.Encoder()


class SearchArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    query: Annotated[str, Meta(min_length=1)]
    mode: Literal["keyword", "semantic", "hybrid"] = "keyword"
    limit: Annotated[int, Meta(ge=1)] | UnsetType = UNSET
    source: Annotated[str, Meta(min_length=1)] | UnsetType = UNSET


class GetArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    id: Annotated[str, Meta(min_length=1)]


class Row(Struct, frozen=True, kw_only=True):
    id: str
    source: str
    source_id: str
    title: str
    score: float
    snippet: str
    source_url: str | None


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


class Sources(Struct, frozen=True, kw_only=True):
    sources: list[Source]


async def search(toolkit: Toolkit, arguments: SearchArguments, context: Context) -> Rows:
    if not arguments.query.strip():
        raise ArgumentsRefused("query: must not be empty")
    limit = toolkit.final_limit if arguments.limit is UNSET else min(MOST, arguments.limit)
    sources = () if arguments.source is UNSET else (arguments.source,)
    wanted = limit * CHUNKS_A_DOCUMENT
    while True:
        query = Query(
            bank=context.bank,
            text=arguments.query,
            mode=arguments.mode,
            limit=min(wanted, MOST_HITS),
            filters=Filters(sources=sources),
        )
        try:
            found = await toolkit.engine.search(query)
        except BankNotFound:  # the default bank is made by the first thing stored
            return Rows(results=[])
        best = _best_of_each(found.hits)
        if len(best) >= limit or not _has_more(found, query):
            break
        wanted *= CHUNKS_A_DOCUMENT
    rows = [await _row(toolkit, context.bank, hit) for hit in best[:limit]]
    rows.sort(key=lambda placed: placed[0])
    return Rows(results=[row for _, row in rows])


def _best_of_each(hits: Iterable[Hit]) -> list[Hit]:
    """The best hit of each document, best first; what is no document stands for itself."""
    best: dict[str, Hit] = {}
    for hit in hits:
        best.setdefault(hit.item.document or hit.item.id, hit)
    return list(best.values())


def _has_more(found: Found, query: Query) -> bool:
    return len(found.hits) == query.limit and query.limit < MOST_HITS


async def _row(toolkit: Toolkit, bank: str, hit: Hit) -> tuple[tuple[float, int, str], Row]:
    """A row and its place: the order does not depend on what else was found."""
    item = hit.item
    document = await toolkit.engine.document(bank, item.document) if item.document else None
    whole = of_document(document) if document else of_item(item)
    row = Row(
        id=whole.id,
        source=whole.source,
        source_id=whole.source_id,
        title=whole.title,
        score=round(hit.score, 4),
        snippet=hit.snippet,
        source_url=whole.source_url,
    )
    newest = document.updated_at if document else item.updated_at
    return (-row.score, -newest, row.id), row


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
        updated_at=iso(document.updated_at),
    )


def of_item(item: Item) -> Whole:
    """A memory as a document of one piece."""
    text = words_of(item)
    first_line = text.strip().partition("\n")[0]
    return Whole(
        id=item.id,
        # Not its dialect for want of one: `source` as a filter and `sources` would not agree.
        source=item.source or "",
        source_id=item.id,
        title=item.title or first_line[:TITLE_LENGTH],
        body=text,
        source_url=None,
        updated_at=iso(item.updated_at),
    )


async def list_sources(toolkit: Toolkit, _arguments: NoArguments, context: Context) -> Sources:
    try:
        stats = await toolkit.engine.stats(context.bank)
    except BankNotFound:
        return Sources(sources=[])
    counts = {source.source: source.documents for source in stats.by_source}
    for label, count in stats.by_label.items():
        counts[label] = counts.get(label, 0) + count
    return Sources(
        sources=[
            Source(name=name, configured=True, healthy=True, doc_count=count)
            for name, count in sorted(counts.items())
        ]
    )


# --- saying no -------------------------------------------------------------------------------


def error_body(code: str, message: str) -> dict[str, Any]:
    """What every refusal of this dialect looks like, here and over HTTP."""
    return {"error": {"code": code, "message": message}}


def _refuse(reason: str) -> CallToolResult:
    return error_result(_encoder.encode(error_body("bad_request", reason)).decode())


def _fail(failure: Exception) -> CallToolResult:
    if isinstance(failure, NotFound):
        body = error_body("not_found", f"document not found: {failure.id}")
    else:
        body = error_body("internal", str(failure))
    return error_result(_encoder.encode(body).decode())


#: The document's own schema, with the `source` of its table.
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
    ]


DIALECT: Final = Dialect(
    name="harness",
    tools=tools,
    refuse=_refuse,
    fail=_fail,
)

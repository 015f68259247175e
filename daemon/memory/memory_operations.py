"""Operations on single memories for the command line: add, search, list, show, change, count.

They run beside other operations on the bank, like the calls of a tool. The bank that was not named
by the caller reads as empty until something is stored in it.
"""

from typing import Annotated, Final

from msgspec import Meta

from daemon.memory.verbs import Done, Verb, moment
from store.engine import Engine, Progress
from store.errors import BankNotFound, InvalidInput, NotFound
from store.model import (
    Document,
    Filters,
    Found,
    Hit,
    Item,
    Kind,
    Mode,
    NewMemory,
    Page,
    Provenance,
    Query,
    Stage,
)
from store.ranking.freshness import newer_first

#: The source of memories that were stored at a prompt without naming one.
SOURCE: Final = "cli"
MOST: Final = 1_000

Limit = Annotated[int, Meta(ge=1, le=MOST)]


class _Reading(Verb, frozen=True, kw_only=True):
    is_alone = False
    is_change = False


class Add(Verb, frozen=True, kw_only=True):
    """Store texts, all of them or none."""

    texts: list[str]
    tags: tuple[str, ...] = ()
    source: str = SOURCE
    is_alone = False

    async def run(self, engine: Engine, progress: Progress) -> Done:
        new = [
            NewMemory(
                text=text,
                tags=_distinct(self.tags),
                source=self.source,
                provenance=Provenance(dialect="native", client="recalld", transport="cli"),
            )
            for text in self.texts
        ]
        puts = await engine.put_many(self.bank, new, progress=progress)
        return {
            "bank": self.bank,
            "ids": [put.id for put in puts],
            "known": sum(put.duplicate for put in puts),
        }


class Search(_Reading, frozen=True, kw_only=True):
    query: str
    limit: Limit = 10
    mode: Mode = "hybrid"
    tags: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    min_score: Annotated[float, Meta(ge=0, le=1)] = 0.1
    explain: bool = False

    async def run(self, engine: Engine, progress: Progress) -> Done:
        query = Query(
            bank=self.bank,
            text=self.query,
            mode=self.mode,
            limit=self.limit,
            filters=Filters(tags=self.tags, sources=self.sources),
            min_score=self.min_score,
            explain=True,
        )
        try:
            found = await engine.search(query)
            count = 0 if found.hits else (await engine.stats(self.bank)).items
        except BankNotFound:
            found, count = Found(mode=self.mode), 0
        return {
            "bank": self.bank,
            "query": self.query,
            "mode": found.mode,
            "hits": [self._hit(hit) for hit in newer_first(found.hits)],
            "below": found.below,
            "searched": count if not found.hits else None,
            "degraded": list(found.degraded),
        }

    def _hit(self, hit: Hit) -> Done:
        shown = _item(hit.item) | {"score": round(hit.score, 4), "snippet": hit.snippet}
        if self.explain:
            shown["parts"] = dict(hit.parts or {})
        return shown


class Items(_Reading, frozen=True, kw_only=True):
    """A page of items, newest first: by arrival, or by date."""

    limit: Limit = 20
    offset: Annotated[int, Meta(ge=0)] = 0
    tags: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    kinds: tuple[Kind, ...] = ()
    by_date: bool = False

    async def run(self, engine: Engine, progress: Progress) -> Done:
        filters = Filters(tags=self.tags, sources=self.sources)
        try:
            if self.by_date:
                page = await engine.timeline(
                    self.bank,
                    kinds=self.kinds,
                    filters=filters,
                    limit=self.limit,
                    offset=self.offset,
                )
            else:
                page = await engine.recent(
                    self.bank,
                    kinds=self.kinds,
                    filters=filters,
                    limit=self.limit,
                    offset=self.offset,
                )
        except BankNotFound:
            page = Page(items=(), total=0)
        return {
            "bank": self.bank,
            "items": [_item(item) for item in page.items],
            "total": page.total,
            "next": page.next,
        }


class Show(_Reading, frozen=True, kw_only=True):
    """Whole items, and whole documents."""

    ids: list[str]

    async def run(self, engine: Engine, progress: Progress) -> Done:
        return {"bank": self.bank, "items": [await self._shown(engine, id) for id in self.ids]}

    async def _shown(self, engine: Engine, id: str) -> Done:
        try:
            return _whole(await engine.get(self.bank, id))
        except NotFound:
            return _document(await engine.document(self.bank, id))


class Change(Verb, frozen=True, kw_only=True):
    """Change the text or the tags of an item, unless its text is not the expected one any more."""

    id: str
    text: str | None = None
    tags: list[str] | None = None
    expected: str | None = None
    is_alone = False

    async def run(self, engine: Engine, progress: Progress) -> Done:
        if self.text is not None and (await engine.get(self.bank, self.id)).kind == "chunk":
            raise InvalidInput("id", "is part of a document; change the document instead")
        changed = await engine.change(
            self.bank, self.id, text=self.text, tags=self.tags, expected_text=self.expected
        )
        return {"bank": self.bank} | _whole(changed)


class Statistics(_Reading, frozen=True, kw_only=True):
    async def run(self, engine: Engine, progress: Progress) -> Done:
        stats = await engine.stats(self.bank)
        return {
            "bank": self.bank,
            "items": stats.items,
            "documents": stats.documents,
            "forgotten": stats.forgotten,
            "sessions": stats.sessions,
            "kinds": dict(stats.by_kind),
            "sources": dict(stats.by_label),
            "pendingVectors": stats.pending_vectors,
            "bytes": stats.disk_bytes,
            "oldest": None if stats.oldest_at is None else moment(stats.oldest_at),
            "newest": None if stats.newest_at is None else moment(stats.newest_at),
            "model": stats.model,
        }


class Index(_Reading, frozen=True, kw_only=True):
    """Compute all vectors that are pending, and wait for them."""

    async def run(self, engine: Engine, progress: Progress) -> Done:
        def watch(stage: Stage) -> None:
            if stage.phase == "embedding":
                progress(stage.done, stage.total)

        await engine.settle(self.bank, watch=watch)
        left = (await engine.stats(self.bank)).pending_vectors
        return {"bank": self.bank, "pendingVectors": left}


def _distinct(tags: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(tags))


def _item(item: Item) -> Done:
    return {
        "id": item.id,
        "kind": item.kind,
        "date": moment(item.occurred_at),
        "source": item.source or "",
        "tags": list(item.tags),
        "title": item.title,
        "text": item.text,
    }


def _whole(item: Item) -> Done:
    given: dict[str, object] = {
        "context": item.context,
        "category": item.category,
        "status": item.status,
        "session": item.session,
        "document": item.document,
        "user": item.user,
        "role": item.role,
        "metadata": dict(item.metadata),
        "stored": moment(item.created_at),
        "changed": moment(item.updated_at),
        "client": item.provenance.client,
        "dialect": item.provenance.dialect,
        "repeats": item.repeats,
    }
    return _item(item) | {name: value for name, value in given.items() if value}


def _document(document: Document) -> Done:
    return {
        "id": document.id,
        "kind": "document",
        "date": moment(document.updated_at),
        "source": document.source,
        "tags": [],
        "title": document.title,
        "text": document.body,
    }

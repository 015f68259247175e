"""Background indexing of one bank: computes missing vectors and maintains the graph over them.

A put is durable and found by keywords at once; its vector is a row that is marked as pending.
`BankIndex` computes pending vectors in batches, builds a graph when there are too many for exact
comparison, moves the tail into the graph, and writes a snapshot now and then. Every step is a
short transaction, so a crash between two steps loses nothing but time.

A vector is stored only if its item has not changed since the text was read, which the row's change
number tells. Each stored vector gets a new change number, which is how searches notice it
(`VectorCache.refresh`).
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import anyio

from store import log
from store.bank import OpenBank
from store.database import Connection
from store.embedding.embedder import Embedder, Identity, TokenEmbedder, embedded, embedded_tokens
from store.errors import EmbedderFailed, StoreError
from store.files import errno_name
from store.model import Stage
from store.ranking.turns import names_of
from store.rows.transaction import counted
from store.vectors.ann import GraphBuilder
from store.vectors.cache import EXTEND_AT, VectorCache
from store.vectors.matrix import Vectors, pack, stored_size
from store.vectors.model_thread import ModelThread
from store.vectors.pending import (
    Computed,
    PendingVector,
    count_pending,
    next_pending,
    speakers,
    stale_turns,
    store,
)
from store.vectors.snapshot import SnapshotBroken, SnapshotHeader
from store.vectors.tokens import pack_tokens

PAGE: Final = 4_096  # vectors read at a time for a new graph
SAVE_GROWTH: Final = 1.1  # a graph that has grown by this factor is written to disk again
GRAPH_THREADS: Final = 2
HASHED: Final = "hashed-features"


class BankIndex:
    """The vectors of one bank: the model, the missing vectors, and the cache for searches."""

    def __init__(self, bank: OpenBank, embedder: Embedder, thread: ModelThread) -> None:
        self.bank = bank
        self.cache = VectorCache(embedder.identity)
        self.model: int | None = None
        self.degraded: set[str] = set()
        self._embedder = embedder
        self._thread = thread
        # Counts writes. A count of pending vectors that found none remembers the number it began
        # with, so that a put in the meantime is not missed.
        self._writes = 1
        self._writes_indexed = 0
        self._watch: Callable[[Stage], None] | None = None
        self._saved = 0
        self._has_looked = False
        self._looking = anyio.Lock()
        self._has_tokens = isinstance(embedder, TokenEmbedder)
        self._has_stale_turns = self._has_tokens  # until a look at the bank has found none
        self._names: frozenset[str] | None = None

    async def adopt_model(self) -> int | None:
        """The number of our model in this bank; None if the vectors of another model must stay."""
        if self.model is None:
            identity = self._embedder.identity
            known = await self.bank.database.read(partial(_known_model, identity=identity))
            if known is None:
                known = await self.bank.database.write(
                    partial(_adopt, identity=identity, is_semantic=self._embedder.is_semantic)
                )
                log.info(
                    "model.adopted" if known is not None else "model.refused",
                    bank=self.bank.bank.id,
                    model=str(identity),
                )
            self.model = known
            self._mark("model-missing", known is None)
        return self.model

    def note_written(self) -> None:
        """Items were added or changed, so vectors may be missing."""
        self._writes += 1

    def note_reset(self) -> None:
        """The cache was reset and the snapshot deleted."""
        self._saved = 0
        self.degraded -= {"snapshot-broken", "snapshot-not-written"}

    async def count_pending(self, most: int) -> int:
        """The number of missing vectors, counted up to `most`."""
        if self._writes_indexed == self._writes and not self.bank.is_shared:
            return 0
        writes = self._writes
        count = await self.bank.database.read(partial(count_pending, most=most))
        if not count:
            self._writes_indexed = writes
        return count

    @property
    def has_stale_turns(self) -> bool:
        """Whether turns from before an upgrade wait for their tokens. Their vectors exist."""
        return self._has_stale_turns

    async def names(self) -> frozenset[str]:
        """The words of the speakers' names in this bank."""
        if not self._has_tokens:
            return frozenset()
        if self._names is None:
            self._names = names_of(await self.bank.database.read(speakers))
        return self._names

    async def update(self, watch: Callable[[Stage], None] | None = None) -> None:
        """Do all work that is due, and report progress to `watch`.

        Raises nothing: failures appear in `degraded` and in the log.
        """
        self._watch = watch
        try:
            if await self.adopt_model() is None:
                return
            await self.embed_pending()
            await self._compute_stale_turns()
            await self._maintain_graph()
        except EmbedderFailed:
            self.degraded.add("embedder-failed")
        except Exception as error:  # noqa: BLE001  (one bank's failure must not end the engine)
            # If the bank is closed, full or damaged, its operations report that. Anything else is
            # a bug.
            if "indexing-stopped" not in self.degraded or not isinstance(error, StoreError):
                log.warning("index.failed", bank=self.bank.bank.id, error=type(error).__name__)
            self.degraded.add("indexing-stopped")
        else:
            self.degraded -= {"embedder-failed", "indexing-stopped"}
        finally:
            self._watch = None

    async def embed_pending(self) -> int:
        """Compute every missing vector; returns how many."""
        done = 0
        model = self.model
        total = await self.count_pending(2**31)
        while model is not None and total:
            batch = await self.bank.database.read(next_pending)
            if not batch:
                break
            await self._compute(model, batch)
            done += len(batch)
            self._report(Stage(phase="embedding", done=done, total=max(done, total)))
        return done

    async def _compute_stale_turns(self) -> None:
        """Compute the tokens of turns that were stored by a version without them."""
        while self._has_stale_turns and self.model is not None:
            batch = await self.bank.database.read(stale_turns)
            if not batch:
                self._has_stale_turns = False
                break
            await self._compute(self.model, batch)

    async def _compute(self, model: int, batch: Sequence[PendingVector]) -> None:
        computed = await self._thread.call(partial(self._embed, batch))
        await self.bank.database.write(partial(store, model=model, batch=batch, computed=computed))
        if any(pending.turn is not None and pending.turn.speaker for pending in batch):
            self._names = None

    def _embed(self, batch: Sequence[PendingVector]) -> list[Computed]:
        texts = [pending.text for pending in batch]
        if any(pending.turn for pending in batch):
            vectors, tokens = embedded_tokens(self._embedder, texts)
        else:
            vectors, tokens = embedded(self._embedder, texts), None
        return [
            Computed(
                vector,
                pack_tokens(tokens[at]) if tokens is not None and batch[at].turn else None,
            )
            for at, vector in enumerate(pack(vectors))
        ]

    # --- the graph ------------------------------------------------------------------------

    async def look(self) -> None:
        """Before the first search: load the snapshot, if the bank is large enough for a graph.

        That takes a second at a million items; a search without the graph would scan for longer.
        """
        if self._has_looked:
            return
        async with self._looking:
            if not self._has_looked and self.model is not None:
                await self.bank.database.read(self._refresh)
                if self.cache.needs_graph:
                    await self._load()
                self._has_looked = True

    async def _maintain_graph(self) -> None:
        await self.look()
        await self.bank.database.read(self._refresh)
        if self.cache.needs_graph:
            await self._build()
            await self.bank.database.read(self._refresh)
        coverage = self.cache.coverage()
        if coverage.graph and coverage.matrix >= EXTEND_AT:
            self._report(Stage(phase="extending", done=0, total=coverage.matrix))
            await self._thread.call(self.cache.extend)
        await self.save()

    async def save(self) -> None:
        """Write the graph to disk if it has grown enough since the last time."""
        count = self.cache.coverage().graph
        if self.bank.snapshot is None or count < max(1, self._saved * SAVE_GROWTH):
            return
        self._report(Stage(phase="saving", done=0, total=count))
        began = time.monotonic()
        try:
            header = await self._thread.call(self._save)
        except OSError as error:
            self.degraded.add("snapshot-not-written")  # only a cache: the bank is complete
            log.warning("snapshot.failed", bank=self.bank.bank.id, error=errno_name(error))
        else:
            self.degraded.discard("snapshot-not-written")
            self._saved = count
            if header is not None:
                self._log("snapshot.written", began, vectors=count, bytes=header.graph_bytes)

    def _save(self) -> SnapshotHeader | None:
        if self.bank.snapshot is None:
            return None
        return self.cache.save(self.bank.snapshot, self.bank.bank.id, self.bank.files)

    async def _load(self) -> None:
        """Use the snapshot on disk, if it is intact and belongs to this bank."""
        if self.bank.snapshot is None:
            return
        self._report(Stage(phase="loading", done=0, total=1))
        change, _ = await self.bank.database.read(_counters)
        load = partial(self.cache.load, self.bank.snapshot, self.bank.bank.id, change)
        began = time.monotonic()
        try:
            is_loaded = await self._thread.call(load)
        except SnapshotBroken as broken:
            self.degraded.add("snapshot-broken")
            log.warning("snapshot.quarantined", bank=self.bank.bank.id, reason=broken.why)
        else:
            self._saved = self.cache.coverage().graph
            if is_loaded:
                self._log("snapshot.loaded", began, vectors=self._saved)

    async def _build(self) -> None:
        """Build a graph over all vectors; searches scan the table meanwhile."""
        model = self.model
        size = stored_size(self.cache.identity.dims)
        began = time.monotonic()
        builder = await self._thread.call(self.cache.new_graph)
        change, items = await self.bank.database.read(_counters)
        page: Callable[[Connection], Vectors]
        while model is not None:
            page = partial(_page, after=builder.covered, model=model, size=size)
            rows = await self.bank.database.read(page)
            if not rows:
                break
            await self._thread.call(partial(builder.add, rows, threads=GRAPH_THREADS))
            done = len(builder.graph)
            self._report(Stage(phase="building", done=done, total=max(done, items)))
        keys = await self._thread.call(builder.keys)
        for start in range(0, len(keys), PAGE):
            some = keys[start : start + PAGE]
            await self._thread.call(partial(builder.find_strays, some, threads=GRAPH_THREADS))
            self._report(Stage(phase="checking", done=start + len(some), total=len(keys)))
        if await self._thread.call(partial(self._adopt_graph, builder, change)):
            self._saved = 0
            self.degraded.discard("snapshot-broken")
            self._log("index.built", began, vectors=len(keys), strays=len(builder.strays))

    def _adopt_graph(self, builder: GraphBuilder, change: int) -> bool:
        """Use a finished graph; it covers the bank up to `change`, with or without vectors."""
        builder.covered = max(builder.covered, change)
        return self.cache.adopt(builder)

    def _refresh(self, connection: Connection) -> None:
        if self.model is not None:
            self.cache.refresh(connection, self.model)

    def _report(self, stage: Stage) -> None:
        if self._watch is not None:
            self._watch(stage)

    def _log(self, event: str, began: float, **fields: object) -> None:
        ms = round((time.monotonic() - began) * 1000)
        log.info(event, bank=self.bank.bank.id, ms=ms, **fields)

    def _mark(self, name: str, holds: bool) -> None:
        if holds:
            self.degraded.add(name)
        else:
            self.degraded.discard(name)


# --- units of work ------------------------------------------------------------------------------


def _counters(connection: Connection) -> tuple[int, int]:
    row: tuple[int, int] = connection.execute("SELECT change, items FROM state").fetchone()
    return row


def _known_model(connection: Connection, identity: Identity) -> int | None:
    """The number of the bank's model, if it is the given one."""
    row = connection.execute(
        "SELECT models.id FROM state JOIN models ON models.id = state.model"
        " WHERE name = ? AND revision = ? AND dims = ?",
        (identity.name, identity.revision, identity.dims),
    ).fetchone()
    return None if row is None else int(row[0])


def _adopt(connection: Connection, identity: Identity, is_semantic: bool) -> int | None:
    """Make this model the bank's: all vectors of another model become pending.

    Vectors of a semantic model are not replaced by hashed features, because a missing package
    must not discard a night of embedding. Searches use keywords only until the model is back.
    """
    current = connection.execute(
        "SELECT name FROM state JOIN models ON models.id = state.model"
    ).fetchone()
    if current is not None and current[0] != HASHED and not is_semantic:
        return None
    model = model_number(connection, identity)
    connection.execute("UPDATE state SET model = ?", (model,))
    stale = connection.execute("SELECT 1 FROM vectors WHERE model IS NOT NULL LIMIT 1").fetchone()
    if stale is not None:
        connection.execute("DELETE FROM turns")
        with counted(connection) as changes:
            connection.execute(
                "UPDATE vectors SET model = NULL, bytes = NULL, change = ? WHERE model <> ?",
                (changes.next(), model),
            )
    return model


def model_number(connection: Connection, identity: Identity) -> int:
    """The number of a model in this bank, which is added if it is new."""
    values = (identity.name, identity.revision, identity.dims)
    found = connection.execute(
        "SELECT id FROM models WHERE name = ? AND revision = ? AND dims = ?", values
    ).fetchone()
    if found is not None:
        return int(found[0])
    (last,) = connection.execute("SELECT coalesce(max(id), 0) FROM models").fetchone()
    connection.execute(
        "INSERT INTO models (id, name, revision, dims) VALUES (?, ?, ?, ?)", (last + 1, *values)
    )
    return int(last) + 1


def _page(connection: Connection, after: int, model: int, size: int) -> Vectors:
    return connection.execute(
        "SELECT item, change, bytes FROM vectors WHERE change > ? AND model = ?"
        " AND length(bytes) = ? ORDER BY change LIMIT ?",
        (after, model, size, PAGE),
    ).fetchall()

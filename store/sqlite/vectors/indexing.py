"""What happens to a bank behind its answers: vectors are made, and a graph is kept over them.

A put is durable and found by its words at once; its vector is a row marked "to be made".
`BankIndex` makes those rows' vectors in batches, builds a graph when there are too many to compare
one by one, moves the tail into it, and writes it to disk now and then. Every step is a short
transaction, so that a crash between two loses nothing but time.

A vector is stored only if its item's row has not changed since its text was read: the row's
change number says so. Each vector stored takes a change number of its own, which is how searches
hear of it (`VectorCache.refresh`).
"""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import anyio
from msgspec import Struct

from store.embedding.embedder import Embedder, Identity, embedded
from store.errors import EmbedderFailed, StoreError
from store.model import Stage
from store.sqlite.banks import OpenBank
from store.sqlite.database import Connection
from store.sqlite.rows.items import SELECT, RowDamaged, item_of, searchable
from store.sqlite.rows.memories import changing
from store.sqlite.vectors.ann import GraphBuilder
from store.sqlite.vectors.cache import EXTEND_AT, SnapshotBroken, VectorCache
from store.sqlite.vectors.matrix import Vectors, pack, stored_size
from store.sqlite.vectors.model_thread import ModelThread

log: Final = logging.getLogger("recalld.store")

BATCH: Final = 128  # texts embedded between two commits: a quarter of a second
PAGE: Final = 4_096  # vectors read at a time for a new graph
SAVE_GROWTH: Final = 1.1  # a graph this much larger than its snapshot is written again
GRAPH_THREADS: Final = 2
HASHED: Final = "hashed-features"


class Pending(Struct, frozen=True):
    """An item whose vector is to be made, as it was when its text was read."""

    item: int
    change: int
    text: str


class BankIndex:
    """One bank's vectors: which model's, how many are missing, and the cache searches use."""

    def __init__(self, bank: OpenBank, embedder: Embedder, worker: ModelThread) -> None:
        self.bank = bank
        self.cache = VectorCache(embedder.identity)
        self.model: int | None = None
        self._written = 1  # how often something was written, and after which time
        self._drained = 0  # a look found nothing pending: puts in between are not missed
        self._watch: Callable[[Stage], None] | None = None
        self.degraded: set[str] = set()
        self._embedder = embedder
        self._worker = worker
        self._saved = 0
        self._has_looked = False
        self._looking = anyio.Lock()

    async def adopt_model(self) -> int | None:
        """The number of our model in this bank; None when its vectors are to be left alone."""
        if self.model is None:
            identity = self._embedder.identity
            known = await self.bank.database.read(partial(_known_model, identity=identity))
            if known is None:
                known = await self.bank.database.write(
                    partial(_adopt, identity=identity, is_semantic=self._embedder.is_semantic)
                )
            self.model = known
            self._mark("model-missing", known is None)
        return self.model

    def note_written(self) -> None:
        """Something was put or changed: vectors may be missing."""
        self._written += 1

    async def count_pending(self, most: int) -> int:
        """How many vectors are missing, counted up to `most`."""
        if self._drained == self._written:
            return 0
        written = self._written
        count = await self.bank.database.read(partial(_count_pending, most=most))
        if not count:
            self._drained = written
        return count

    async def tend(self, watch: Callable[[Stage], None] | None = None) -> None:
        """Do all that is to be done now, telling `watch` how far it is.

        Raises nothing: what fails is named in `degraded`.
        """
        self._watch = watch
        try:
            if await self.adopt_model() is None:
                return
            await self.embed_pending()
            await self._keep_graph()
        except EmbedderFailed:
            self.degraded.add("embedder-failed")
        except Exception as error:  # noqa: BLE001  (one bank's trouble must not end the engine)
            # Closing, full or damaged: its own verbs tell their callers. Anything else is a bug.
            self.degraded.add("indexing-stopped")
            if not isinstance(error, StoreError):
                log.warning("indexing bank %s failed: %s", self.bank.bank.id, type(error).__name__)
        else:
            self.degraded -= {"embedder-failed", "indexing-stopped"}
        finally:
            self._watch = None

    async def embed_pending(self) -> int:
        """Make every missing vector; how many were made."""
        done = 0
        model = self.model
        total = await self.count_pending(2**31)
        while model is not None and total:
            batch = await self.bank.database.read(_next_pending)
            if not batch:
                break
            contents = await self._worker.call(partial(self._embed, batch))
            await self.bank.database.write(
                partial(_store, model=model, batch=batch, contents=contents)
            )
            done += len(batch)
            self._tell(Stage(phase="embedding", done=done, total=max(done, total)))
        return done

    def _embed(self, batch: Sequence[Pending]) -> list[bytes]:
        return pack(embedded(self._embedder, [pending.text for pending in batch]))

    # --- the graph ------------------------------------------------------------------------

    async def look(self) -> None:
        """Before the first search: put the graph on disk to use, if the bank is large enough.

        That takes a second at a million items; a search without it would scan for longer.
        """
        if self._has_looked:
            return
        async with self._looking:
            if not self._has_looked and self.model is not None:
                await self.bank.database.read(self._refresh)
                if self.cache.needs_graph:
                    await self._load()
                self._has_looked = True

    async def _keep_graph(self) -> None:
        await self.look()
        await self.bank.database.read(self._refresh)
        if self.cache.needs_graph:
            await self._build()
            await self.bank.database.read(self._refresh)
        coverage = self.cache.coverage()
        if coverage.graph and coverage.matrix >= EXTEND_AT:
            self._tell(Stage(phase="extending", done=0, total=coverage.matrix))
            await self._worker.call(self.cache.extend)
        await self.save()

    async def save(self) -> None:
        """Write the graph to disk when it has grown enough to be worth it."""
        count = self.cache.coverage().graph
        if count < max(1, self._saved * SAVE_GROWTH):
            return
        self._tell(Stage(phase="saving", done=0, total=count))
        try:
            await self._worker.call(self._save)
        except OSError:
            self.degraded.add("snapshot-not-written")  # it is a cache: the bank is whole
        else:
            self.degraded.discard("snapshot-not-written")
            self._saved = count

    def _save(self) -> None:
        self.cache.save(self.bank.snapshot, self.bank.bank.id, self.bank.files)

    async def _load(self) -> None:
        """Put the snapshot on disk to use, if it is sound and of this bank."""

        def load(change: int) -> None:
            self.cache.load(self.bank.snapshot, self.bank.bank.id, change)

        self._tell(Stage(phase="loading", done=0, total=1))
        change, _ = await self.bank.database.read(_counters)
        try:
            await self._worker.call(partial(load, change))
        except SnapshotBroken:
            self.degraded.add("snapshot-broken")
        else:
            self._saved = self.cache.coverage().graph

    async def _build(self) -> None:
        """A graph over every vector there is, while searches scan."""
        model = self.model
        size = stored_size(self.cache.identity.dims)
        builder = await self._worker.call(self.cache.new_graph)
        change, items = await self.bank.database.read(_counters)
        page: Callable[[Connection], Vectors]
        while model is not None:
            page = partial(_page, after=builder.covered, model=model, size=size)
            rows = await self.bank.database.read(page)
            if not rows:
                break
            await self._worker.call(partial(builder.add, rows, threads=GRAPH_THREADS))
            done = len(builder.graph)
            self._tell(Stage(phase="building", done=done, total=max(done, items)))
        keys = await self._worker.call(builder.keys)
        for start in range(0, len(keys), PAGE):
            some = keys[start : start + PAGE]
            await self._worker.call(partial(builder.look_for, some, threads=GRAPH_THREADS))
            self._tell(Stage(phase="checking", done=start + len(some), total=len(keys)))
        if self.cache.adopt(_through(builder, change)):
            self._saved = 0
            self.degraded.discard("snapshot-broken")

    def _refresh(self, connection: Connection) -> None:
        if self.model is not None:
            self.cache.refresh(connection, self.model)

    def _tell(self, stage: Stage) -> None:
        if self._watch is not None:
            self._watch(stage)

    def _mark(self, name: str, holds: bool) -> None:
        if holds:
            self.degraded.add(name)
        else:
            self.degraded.discard(name)


def _through(builder: GraphBuilder, change: int) -> GraphBuilder:
    """What the bank had written before the last page was read is covered, vectors or not."""
    builder.covered = max(builder.covered, change)
    return builder


# --- units of work ------------------------------------------------------------------------------


def _counters(connection: Connection) -> tuple[int, int]:
    row: tuple[int, int] = connection.execute("SELECT change, items FROM state").fetchone()
    return row


def _known_model(connection: Connection, identity: Identity) -> int | None:
    """The number of the bank's model, if it is this one."""
    row = connection.execute(
        "SELECT models.id FROM state JOIN models ON models.id = state.model"
        " WHERE name = ? AND revision = ? AND dims = ?",
        (identity.name, identity.revision, identity.dims),
    ).fetchone()
    return None if row is None else int(row[0])


def _adopt(connection: Connection, identity: Identity, is_semantic: bool) -> int | None:
    """Make this model the bank's: all vectors of another are to be made anew.

    Vectors with meaning are not thrown away for ones without: a missing package must not cost a
    night of embedding. Searches go by words until the model is back.
    """
    current = connection.execute(
        "SELECT name FROM state JOIN models ON models.id = state.model"
    ).fetchone()
    if current is not None and current[0] != HASHED and not is_semantic:
        return None
    values = (identity.name, identity.revision, identity.dims)
    connection.execute(
        "INSERT OR IGNORE INTO models (name, revision, dims) VALUES (?, ?, ?)", values
    )
    (model,) = connection.execute(
        "SELECT id FROM models WHERE name = ? AND revision = ? AND dims = ?", values
    ).fetchone()
    connection.execute("UPDATE state SET model = ?", (model,))
    stale = connection.execute("SELECT 1 FROM vectors WHERE model IS NOT NULL LIMIT 1").fetchone()
    if stale is not None:
        with changing(connection) as changes:
            connection.execute(
                "UPDATE vectors SET model = NULL, bytes = NULL, change = ? WHERE model <> ?",
                (changes.next(), model),
            )
    return int(model)


def _count_pending(connection: Connection, most: int) -> int:
    (count,) = connection.execute(
        "SELECT count(*) FROM (SELECT 1 FROM vectors WHERE bytes IS NULL LIMIT ?)", (most,)
    ).fetchone()
    return int(count)


def _next_pending(connection: Connection) -> list[Pending]:
    """Items whose vectors are missing, the newest first: what was just said is asked for first."""
    rows = connection.execute(
        "SELECT item, change FROM vectors WHERE bytes IS NULL ORDER BY item DESC LIMIT ?", (BATCH,)
    ).fetchall()
    changes = dict(rows)
    found: list[Pending] = []
    marks = ",".join("?" * len(changes))
    for row in connection.execute(f"{SELECT} WHERE items.id IN ({marks})", list(changes)):
        try:
            text = searchable(item_of(row))
        except RowDamaged:
            text = ""  # it cannot be returned either; a vector ends the waiting for one
        found.append(Pending(row[0], changes[row[0]], text))
    return found


def _store(
    connection: Connection, model: int, batch: Sequence[Pending], contents: Sequence[bytes]
) -> None:
    with changing(connection) as changes:
        for pending, content in zip(batch, contents, strict=True):
            connection.execute(
                "UPDATE vectors SET model = ?, bytes = ?, change = ?"
                " WHERE item = ? AND change = ? AND bytes IS NULL",
                (model, content, changes.next(), pending.item, pending.change),
            )


def _page(connection: Connection, after: int, model: int, size: int) -> Vectors:
    return connection.execute(
        "SELECT item, change, bytes FROM vectors WHERE change > ? AND model = ?"
        " AND length(bytes) = ? ORDER BY change LIMIT ?",
        (after, model, size, PAGE),
    ).fetchall()

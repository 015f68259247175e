"""Search by keywords and by meaning in all banks of an engine: the engine's `Ranking`.

Nothing heavy is loaded before it is needed. The first semantic search loads the model, so a process
that only stores and searches keywords stays small. From then on vectors are computed as items
arrive. A search computes the last few missing vectors itself before it answers, so that a new item
is found by its meaning at once. If many are missing, it answers without them and says so.

The model computes the vector of a query while another thread looks up the keywords. That thread
then waits for the vector inside its read transaction, but only if recent vectors came quickly. If
the model is still loading, or is an endpoint across a network, the vector is awaited first.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, Final

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup
from msgspec.structs import replace

from store import log
from store.bank import OpenBank
from store.clock import wall_clock
from store.embedding.embedder import (
    Embedder,
    TokenEmbedder,
    TokenVectors,
    embedded,
    embedded_tokens,
)
from store.embedding.hashed import HashedFeatures
from store.embedding.selection import choose_embedder
from store.errors import EmbedderFailed, StorageError
from store.model import Found, Mode, Query, Stage
from store.ranking.fusion import MEANINGFUL, SPELLING_ONLY, Weights
from store.ranking.passages import Passages
from store.ranking.turns import without_names
from store.search.plan import answer
from store.search.prepared_query import PreparedQuery, SemanticQuery
from store.vectors.indexing import BankIndex
from store.vectors.model_thread import ModelThread

AT_ONCE: Final = 128  # missing vectors that a search computes itself: a quarter of a second
VECTORS_KEPT: Final = 32  # vectors of recent queries
QUICK_SECONDS: Final = 0.05  # a reader's thread may wait if the last vector took at most this …
LATE_SECONDS: Final = 0.5  # … and waits no longer than this
JOIN_SECONDS: Final = 1.0  # a batch of vectors takes a quarter of that


class _Late(Exception):
    """The query's vector takes too long to wait for it inside a transaction."""


class HybridRanking:
    """See `store.operations.bank_access.Ranking`, which this implements."""

    def __init__(
        self,
        background: TaskGroup,
        embedder: Embedder | None = None,
        *,
        now: Callable[[], int] = wall_clock,
        eager: bool = False,
    ) -> None:
        self._background = background
        self._embedder = embedder or choose_embedder()
        self._now = now
        self._is_awake = eager  # whether vectors are computed as items arrive
        self._query_thread = ModelThread("store-query")
        self._index_thread = ModelThread("store-index")
        self._vectors: dict[tuple[str, str], Future[TokenVectors]] = {}  # by bank and text
        self._is_quick = False  # whether the last query's vector came quickly
        self._indexers: dict[str, _Indexer] = {}
        self._failed: str | None = None

    @property
    def embedder(self) -> str | None:
        return str(self._embedder.identity)

    def degraded(self) -> tuple[str, ...]:
        """The names of everything that works less well than it should."""
        reasons = {name for indexer in self._indexers.values() for name in indexer.index.degraded}
        is_chosen = isinstance(self._embedder, HashedFeatures) and self._embedder.is_chosen
        if not self._embedder.is_semantic and not is_chosen:
            reasons.add("embedder-without-meaning")
        if self._failed is not None:
            reasons.add(self._failed)
        return tuple(sorted(reasons))

    def cached_bytes(self, bank: OpenBank) -> int:
        indexer = self._indexers.get(bank.bank.id)
        if indexer is None:
            return 0
        coverage = indexer.index.cache.coverage()
        return (coverage.matrix + coverage.graph) * self._embedder.identity.dims

    async def search(self, bank: OpenBank, query: Query) -> Found:
        degraded: set[str] = set()
        meaning = None if query.mode == "keyword" else await self._semantic(bank, query, degraded)
        try:
            found = await self._answer(bank, query, meaning, degraded)
        except _Late:
            names = await self._of(bank).index.names()
            vector = self._query_vector(bank.bank.id, query.text, names)
            await asyncio.wait([asyncio.wrap_future(vector)])
            return await self.search(bank, query)
        except EmbedderFailed:
            self._note_failed(degraded)
            found = await self._answer(bank, query, None, degraded)
        else:
            if meaning is not None and query.passages:
                found = await self._with_passages(bank, query, meaning, found)
        index = self._of(bank).index
        is_behind = "vectors-pending" in degraded or index.has_stale_turns
        if meaning is not None and (meaning.cache.needs_graph or is_behind):
            self._wake(bank)
        return found

    async def _answer(
        self, bank: OpenBank, query: Query, meaning: SemanticQuery | None, degraded: set[str]
    ) -> Found:
        mode: Mode = query.mode if meaning is not None else "keyword"
        if mode == "semantic" and "vectors-pending" in degraded:
            mode = "hybrid"  # an item without a vector is found by its words meanwhile
        prepared = PreparedQuery(
            query=query,
            mode=mode,
            weights=self._weights(query),
            now=self._now(),
            meaning=meaning,
            degraded=tuple(degraded),
        )
        return await bank.database.read(partial(answer, prepared=prepared))

    async def vectors(self, texts: Sequence[str]) -> Any:
        if not self._embedder.is_semantic:
            return None
        try:
            return await self._index_thread.call(partial(self._embedder.embed, texts))
        except EmbedderFailed:
            self._note_failed(set())
            return None

    async def _with_passages(
        self, bank: OpenBank, query: Query, meaning: SemanticQuery, found: Found
    ) -> Found:
        """Show the passages that answer; see `store.ranking.passages`.

        Only with a model in this process: an endpoint would be sent some sixty texts per search.
        """
        if not isinstance(self._embedder, TokenEmbedder):
            return found
        passages = Passages(query.text, found.hits, query.passages)
        texts = passages.texts()
        if not texts:
            return found
        vector = self._query_vector(bank.bank.id, query.text, meaning.names)
        try:
            asked = await asyncio.wrap_future(vector)
            vectors = await self._query_thread.call(partial(embedded, self._embedder, texts))
        except EmbedderFailed:
            return found  # the snippets by words stay
        return replace(found, hits=passages.chosen(asked.vectors[0], vectors))

    async def written(self, bank: OpenBank) -> None:
        self._of(bank).index.note_written()
        if self._is_awake:
            self._wake(bank)

    async def reset(self, bank: OpenBank) -> None:
        # Even if nothing is cached yet: a search that starts meanwhile gets this index, and a
        # snapshot that it may be loading is then of an older generation.
        indexer = self._of(bank)
        await indexer.stop()
        cache = indexer.index.cache
        await anyio.to_thread.run_sync(partial(bank.delete_snapshot, then=cache.reset))
        indexer.index.note_reset()

    async def leave(self, bank: OpenBank) -> None:
        indexer = self._indexers.pop(bank.bank.id, None)
        if indexer is not None:
            await indexer.stop()
            await indexer.index.save()

    async def settle(self, bank: OpenBank, watch: Callable[[Stage], None] | None = None) -> None:
        """Wait until every vector is computed and the graph is up to date."""
        self._is_awake = True
        indexer = self._of(bank)
        await indexer.stop()
        await indexer.index.update(watch)

    async def close(self) -> None:
        """End the threads; one that is still inside the model at exit would crash the process."""
        with anyio.CancelScope(shield=True):
            for thread in (self._query_thread, self._index_thread):
                thread.stop()
                await anyio.to_thread.run_sync(thread.join, JOIN_SECONDS)

    def _query_vector(self, bank: str, text: str, names: frozenset[str]) -> Future[TokenVectors]:
        """The vector of a query without the names of speakers.

        The last few are kept, because queries are often repeated. They are kept by bank: the time
        of an answer must not tell a caller whether another one, who has other banks, asked the
        same question.
        """
        text = without_names(text, names)
        key = (bank, text)
        vector = self._vectors.pop(key, None)
        if vector is None or (vector.done() and vector.exception() is not None):
            vector = Future[TokenVectors]()
            vector.set_running_or_notify_cancel()  # several callers share it: none may cancel it
            self._query_thread.call(partial(self._embed_query, text, vector))
        self._vectors[key] = vector
        if len(self._vectors) > VECTORS_KEPT:
            del self._vectors[next(iter(self._vectors))]
        return vector

    def _embed_query(self, text: str, vector: Future[TokenVectors]) -> None:
        began = time.monotonic()
        try:
            result = embedded_tokens(self._embedder, [text])
        except BaseException as error:  # noqa: BLE001  (raised again where it is awaited)
            vector.set_exception(error)
        else:
            self._is_quick = time.monotonic() - began < QUICK_SECONDS
            vector.set_result(result)

    async def _semantic(
        self, bank: OpenBank, query: Query, degraded: set[str]
    ) -> SemanticQuery | None:
        """The query's vector and the vectors to compare it with; None to use keywords only."""
        self._is_awake = True
        index = self._of(bank).index
        names = await index.names()
        vector = self._query_vector(bank.bank.id, query.text, names)
        try:
            if not self._is_quick:
                await asyncio.wrap_future(vector)
            self._failed = None
            if await index.adopt_model() is None:
                degraded.add("model-missing")
                return None
            await index.look()
            missing = await index.count_pending(AT_ONCE + 1)
            if 0 < missing <= AT_ONCE:
                await index.embed_pending()
            elif missing:
                degraded.add("vectors-pending")
        except EmbedderFailed:
            self._note_failed(degraded)
            return None
        except StorageError:
            # Full or read-only: existing vectors are still found. Other errors recur when reading.
            degraded.add("vectors-pending")
        if index.model is None:
            return None
        if index.cache.coverage().is_waiting:
            degraded.add("vectors-scanned")
        return SemanticQuery(partial(_wait_for, vector), index.model, index.cache, names)

    def _note_failed(self, degraded: set[str]) -> None:
        if self._failed is None:
            log.warning("embedder.failed", model=str(self._embedder.identity))
        self._failed = "embedder-failed"
        degraded.add("embedder-failed")

    def _weights(self, query: Query) -> Weights:
        usual = MEANINGFUL if self._embedder.is_semantic else SPELLING_ONLY
        given = (query.keyword_weight, query.vector_weight)
        if given == (None, None):
            return usual
        keyword, vector = given
        if keyword is None:
            keyword = max(0.0, 1.0 - (vector or 0.0))
        if vector is None:
            vector = max(0.0, 1.0 - keyword)
        return Weights(keyword=keyword, vector=vector)

    def _of(self, bank: OpenBank) -> "_Indexer":
        indexer = self._indexers.get(bank.bank.id)
        if indexer is None or indexer.index.bank is not bank:
            index = BankIndex(bank, self._embedder, self._index_thread)
            indexer = self._indexers[bank.bank.id] = _Indexer(index, self._background)
        return indexer

    def _wake(self, bank: OpenBank) -> None:
        self._of(bank).wake()


def _wait_for(vector: Future[TokenVectors]) -> TokenVectors:
    """Wait for the query's vector; on a reader's thread, never on the event loop."""
    try:
        return vector.result(LATE_SECONDS)
    except TimeoutError:
        raise _Late from None


class _Indexer:
    """A bank's index, and the background task that updates it while there is work."""

    def __init__(self, index: BankIndex, background: TaskGroup) -> None:
        self.index = index
        self._background = background
        self._scope: anyio.CancelScope | None = None
        self._again = False
        self._done = anyio.Event()

    def wake(self) -> None:
        """Update the index soon, or once more if an update is running."""
        if self._scope is not None:
            self._again = True
            return
        self._scope = anyio.CancelScope()
        self._done = anyio.Event()
        self._background.start_soon(self._update, self._scope)

    async def stop(self) -> None:
        """End the update after its current step."""
        if self._scope is not None:
            self._scope.cancel()
            with anyio.CancelScope(shield=True):
                await self._done.wait()

    async def _update(self, scope: anyio.CancelScope) -> None:
        try:
            with scope:
                self._again = True
                while self._again:
                    self._again = False
                    await self.index.update()
        finally:
            self._scope = None
            self._done.set()

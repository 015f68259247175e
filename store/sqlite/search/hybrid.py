"""Finding by words and meaning, for every bank of an engine: the engine's `Ranking`.

Nothing heavy happens before it is needed. The model is loaded by the first search that asks for
meaning; a process that only stores and looks up words stays small. From then on vectors are made
as items come. A search makes the last few missing vectors itself before it answers, so what was put
is found by its meaning at once; when many are missing it answers with what there is and says so.

The model works on a question while its words are looked up on another thread, which then waits for
the vector inside its read transaction. Only if vectors have been coming quickly: a model that is
still loading, or an endpoint across a network, is awaited before the transaction begins.
"""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, Final

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from store.embedding.embedder import Embedder, choose_embedder, embedded
from store.embedding.hashed import HashedFeatures
from store.errors import EmbedderFailed, StorageError
from store.model import Found, Mode, Query, Stage
from store.ranking.fusion import MEANINGFUL, SPELLING_ONLY, Weights
from store.sqlite.banks import OpenBank
from store.sqlite.catalogue import wall_clock
from store.sqlite.search.plan import Meaning, Question, answer
from store.sqlite.vectors.indexing import BankIndex
from store.sqlite.worker import Worker

AT_ONCE: Final = 128  # missing vectors that a search makes before it answers: a quarter of a second
VECTORS_KEPT: Final = 32  # of the questions asked last
QUICK_SECONDS: Final = 0.05  # a vector made in this time may be waited for on a reader's thread …
LATE_SECONDS: Final = 0.5  # … but not longer than this
JOIN_SECONDS: Final = 1.0  # a batch of vectors takes a quarter of that


class _Late(Exception):
    """The question's vector takes too long to wait for it inside a transaction."""


class HybridRanking:
    """See `store.sqlite.bank_access.Ranking`, which this implements."""

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
        self._is_awake = eager  # whether vectors are made as items come
        self._asking = Worker("store-ask")
        self._making = Worker("store-embed")
        self._vectors: dict[str, Future[Any]] = {}
        self._is_quick = False  # whether the last vector was made quickly
        self._tended: dict[str, _Tended] = {}
        self._failed: str | None = None

    @property
    def embedder(self) -> str | None:
        return str(self._embedder.identity)

    def degraded(self) -> tuple[str, ...]:
        """By name, what works less well than it should."""
        reasons = {reason for tended in self._tended.values() for reason in tended.index.degraded}
        is_chosen = isinstance(self._embedder, HashedFeatures) and self._embedder.is_chosen
        if not self._embedder.is_semantic and not is_chosen:
            reasons.add("embedder-without-meaning")
        if self._failed is not None:
            reasons.add(self._failed)
        return tuple(sorted(reasons))

    async def search(self, bank: OpenBank, query: Query) -> Found:
        degraded: set[str] = set()
        meaning = None if query.mode == "keyword" else await self._meaning(bank, query, degraded)
        try:
            found = await self._answer(bank, query, meaning, degraded)
        except _Late:
            await asyncio.wait([asyncio.wrap_future(self._ask(query.text))])
            return await self.search(bank, query)
        except EmbedderFailed:
            self._note_failed(degraded)
            found = await self._answer(bank, query, None, degraded)
        if meaning is not None and (meaning.cache.needs_graph or "vectors-pending" in degraded):
            self._wake(bank)
        return found

    async def _answer(
        self, bank: OpenBank, query: Query, meaning: Meaning | None, degraded: set[str]
    ) -> Found:
        mode: Mode = query.mode if meaning is not None else "keyword"
        question = Question(
            query=query,
            mode=mode,
            weights=self._weights(query),
            now=self._now(),
            meaning=meaning,
            degraded=tuple(degraded),
        )
        return await bank.database.read(partial(answer, question=question))

    async def written(self, bank: OpenBank) -> None:
        tended = self._of(bank)
        tended.index.note_written()
        if self._is_awake:
            self._wake(bank)

    async def reset(self, bank: OpenBank) -> None:
        tended = self._tended.get(bank.bank.id)
        if tended is not None:
            await tended.stop()
            tended.index.cache.reset()
            if self._tended.get(bank.bank.id) is tended:  # others may reset at the same time
                del self._tended[bank.bank.id]

    async def leave(self, bank: OpenBank) -> None:
        tended = self._tended.pop(bank.bank.id, None)
        if tended is not None:
            await tended.stop()
            await tended.index.save()

    async def settle(self, bank: OpenBank, watch: Callable[[Stage], None] | None = None) -> None:
        """Wait until every vector is made and the graph is as it should be."""
        self._is_awake = True
        tended = self._of(bank)
        await tended.stop()
        await tended.index.tend(watch)

    async def close(self) -> None:
        """Let go of the threads; a thread cut off inside the model would end the process."""
        with anyio.CancelScope(shield=True):
            for worker in (self._asking, self._making):
                worker.stop()
                await anyio.to_thread.run_sync(worker.join, JOIN_SECONDS)

    def _ask(self, text: str) -> Future[Any]:
        """The vector of a question; the last few are kept, for one question is asked in turns."""
        asked = self._vectors.pop(text, None)
        if asked is None or (asked.done() and asked.exception() is not None):
            asked = Future[Any]()
            asked.set_running_or_notify_cancel()  # one caller's cancellation is not the others'
            self._asking.call(partial(self._make, text, asked))
        self._vectors[text] = asked
        if len(self._vectors) > VECTORS_KEPT:
            del self._vectors[next(iter(self._vectors))]
        return asked

    def _make(self, text: str, asked: Future[Any]) -> None:
        began = time.monotonic()
        try:
            vector = embedded(self._embedder, [text])[0]
        except BaseException as error:  # noqa: BLE001  (raised again where it is waited for)
            asked.set_exception(error)
        else:
            self._is_quick = time.monotonic() - began < QUICK_SECONDS
            asked.set_result(vector)

    async def _meaning(self, bank: OpenBank, query: Query, degraded: set[str]) -> Meaning | None:
        """The query's vector and what it may be compared with; None to go by words alone."""
        self._is_awake = True
        index = self._of(bank).index
        asked = self._ask(query.text)
        try:
            if not self._is_quick:
                await asyncio.wrap_future(asked)
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
            # Full or read-only: what is there is still found; whatever else it is, reading tells.
            degraded.add("vectors-pending")
        if index.model is None:
            return None
        if index.cache.coverage().is_waiting:
            degraded.add("vectors-scanned")
        return Meaning(partial(_waited, asked), index.model, index.cache)

    def _note_failed(self, degraded: set[str]) -> None:
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

    def _of(self, bank: OpenBank) -> "_Tended":
        tended = self._tended.get(bank.bank.id)
        if tended is None or tended.index.bank is not bank:
            tended = _Tended(BankIndex(bank, self._embedder, self._making), self._background)
            self._tended[bank.bank.id] = tended
        return tended

    def _wake(self, bank: OpenBank) -> None:
        self._of(bank).wake()


def _waited(asked: Future[Any]) -> Any:
    """The vector, on a thread that has nothing else to do until it is there."""
    try:
        return asked.result(LATE_SECONDS)
    except TimeoutError:
        raise _Late from None


class _Tended:
    """A bank's index and the one task that tends it, when there is something to do."""

    def __init__(self, index: BankIndex, background: TaskGroup) -> None:
        self.index = index
        self._background = background
        self._scope: anyio.CancelScope | None = None
        self._again = False
        self._done = anyio.Event()

    def wake(self) -> None:
        """Tend the index soon; once more when it is being tended."""
        if self._scope is not None:
            self._again = True
            return
        self._scope = anyio.CancelScope()
        self._done = anyio.Event()
        self._background.start_soon(self._tend, self._scope)

    async def stop(self) -> None:
        """End the tending, after the step it is in."""
        if self._scope is not None:
            self._scope.cancel()
            with anyio.CancelScope(shield=True):
                await self._done.wait()

    async def _tend(self, scope: anyio.CancelScope) -> None:
        try:
            with scope:
                self._again = True
                while self._again:
                    self._again = False
                    await self.index.tend()
        finally:
            self._scope = None
            self._done.set()

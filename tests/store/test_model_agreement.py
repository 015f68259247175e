"""The engine agrees with a plain dictionary after any run of puts, forgets, erases and crashes."""

import shutil
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from anyio.abc import TaskGroup
from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
)

from store.errors import NotFound
from store.model import NewMemory, Query
from store.operations.bank_access import Ranking
from store.ranking.tokenizer import index_text
from store.sqlite.engine import EmbeddedEngine, open_engine
from tests.support.clock import Clock
from tests.support.plain_ranking import PlainRanking
from tests.support.real_ranking import real_ranking, small_graphs

WORDS = ("boat", "red", "river", "snake_case", "東京", "née", "C++", "the")
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)


class EngineAgreesWithDictionary(RuleBasedStateMachine):
    """The dictionary maps ids of live items to texts, and undo tokens to forgotten items."""

    ids = Bundle("ids")
    tokens = Bundle("tokens")
    ranking: Callable[[TaskGroup], Ranking] = staticmethod(PlainRanking)

    def __init__(self) -> None:
        super().__init__()
        self.live: dict[str, str] = {}
        self.forgotten: dict[str, dict[str, str]] = {}
        self.erased: set[str] = set()
        self.place = Path(tempfile.mkdtemp(prefix="recalld-model-"))
        self.generation = 0
        self.clock = Clock()

    @initialize()
    def start(self) -> None:
        self.portal_manager = start_blocking_portal()
        self.portal: BlockingPortal = self.portal_manager.__enter__()
        self.opened: AbstractContextManager[EmbeddedEngine] | None = None
        self.open()
        self.call(self.engine.create_bank, "w")

    def open(self) -> None:
        engine = open_engine(self.directory, ranking=self.ranking, now=self.clock)
        self.opened = self.portal.wrap_async_context_manager(engine)
        self.engine = self.opened.__enter__()

    def close(self) -> None:
        if self.opened is not None:
            self.opened.__exit__(None, None, None)
            self.opened = None

    def call(self, verb: Any, *arguments: Any) -> Any:
        return self.portal.call(verb, *arguments)

    @property
    def directory(self) -> Path:
        return self.place / f"data{self.generation}"

    # --- operations -----------------------------------------------------------------------

    @rule(target=ids, text=texts)
    def put(self, text: str) -> str:
        known = {old for old, said in self.live.items() if said == text}
        put = self.call(self.engine.put, "w", NewMemory(text=text))
        assert not put.duplicate or put.id in known
        assert put.id not in self.erased
        self.live[put.id] = text
        return str(put.id)

    @rule(target=ids, several=st.lists(texts, min_size=1, max_size=4))
    def put_many(self, several: list[str]) -> Any:
        puts = self.call(
            self.engine.put_many, "w", [NewMemory(text=t, allow_duplicate=True) for t in several]
        )
        for put, text in zip(puts, several, strict=True):
            assert not put.duplicate
            self.live[put.id] = text
        return multiple(*(put.id for put in puts))

    @rule(id=ids, text=texts)
    def change(self, id: str, text: str) -> None:
        async def change() -> None:
            await self.engine.change("w", id, text=text)

        if id in self.live:
            self.call(change)
            self.live[id] = text
        else:
            self.expect_unknown(change)

    @rule(target=tokens, id=ids)
    def forget(self, id: str) -> Any:
        async def forget() -> Any:
            return await self.engine.forget("w", [id])

        if id not in self.live:
            self.expect_unknown(forget)
            return multiple()
        forgotten = self.call(forget)
        self.forgotten[forgotten.token] = {id: self.live.pop(id)}
        return forgotten.token

    @rule(token=consumes(tokens))
    def undo(self, token: str) -> None:
        back = {id: text for id, text in self.forgotten.pop(token).items() if id not in self.erased}
        if back:
            assert self.call(self.engine.undo, "w", token) == len(back)
        self.live |= back

    @rule(id=consumes(ids))
    def erase(self, id: str) -> None:
        async def erase() -> None:
            await self.engine.erase("w", [id])

        if id in self.erased:
            self.expect_unknown(erase)
            return
        self.call(erase)
        self.erased.add(id)
        self.live.pop(id, None)

    @rule()
    def restart(self) -> None:
        self.close()
        self.open()

    @rule()
    def crash(self) -> None:
        """Continue with a copy of the files as they are, as after a crash."""
        self.hold_still()
        before = self.directory
        self.generation += 1
        shutil.copytree(before, self.directory)
        self.close()
        shutil.rmtree(before)
        self.open()

    def hold_still(self) -> None:
        """Stop background work, so that the copy is consistent."""

    # --- invariants -----------------------------------------------------------------------

    @rule(word=st.sampled_from(WORDS[:-1]))
    def search_finds_exactly_the_texts_with_the_word(self, word: str) -> None:
        query = Query(bank="w", text=word, limit=1000, mode="keyword")
        found = self.call(self.engine.search, query)
        wanted = set(index_text(word).split())
        said = {id for id, text in self.live.items() if wanted & set(index_text(text).split())}
        assert {hit.item.id for hit in found.hits} == said

    @invariant()
    def rows_words_and_vectors_are_one_set_and_nothing_is_missing(self) -> None:
        if not hasattr(self, "engine") or self.opened is None:
            return
        checked = self.call(self.engine.check, "w")
        assert checked.problems == ()
        assert checked.items == checked.words == checked.vectors == len(self.live)

        async def all_of_it() -> dict[str, str]:
            page = await self.engine.recent("w", limit=1000)
            return {item.id: item.text for item in page.items}

        assert self.call(all_of_it) == self.live

    def expect_unknown(self, verb: Any) -> None:
        try:
            self.call(verb)
        except NotFound:
            return
        raise AssertionError("something unknown was found")

    def teardown(self) -> None:
        if hasattr(self, "portal"):
            self.close()
            self.portal_manager.__exit__(None, None, None)
        shutil.rmtree(self.place)


class RealRankingAgreesWithDictionary(EngineAgreesWithDictionary):
    """The same with vectors, graphs, deleted vectors and snapshots."""

    ranking = staticmethod(real_ranking)

    def __init__(self) -> None:
        super().__init__()
        self.small = small_graphs()
        self.small.__enter__()

    @rule(target=EngineAgreesWithDictionary.ids, count=st.integers(15, 30), word=texts)
    def put_a_crowd(self, count: int, word: str) -> Any:
        return self.put_many([f"{word} {number}" for number in range(count)])

    @rule()
    def settle(self) -> None:
        self.call(self.engine.settle, "w")

    def hold_still(self) -> None:
        self.settle()

    @rule(text=texts)
    def search_by_meaning_finds_all_there_is_and_nothing_else(self, text: str) -> None:
        query = Query(bank="w", text=text, limit=1000, mode="semantic")
        self.call(self.engine.settle, "w")
        found = self.call(self.engine.search, query)
        assert found.degraded == ()
        assert {hit.item.id for hit in found.hits} == set(self.live)
        few = self.call(self.engine.search, Query(bank="w", text=text, limit=3, mode="semantic"))
        assert len(few.hits) == min(3, len(self.live)), "nothing that is gone stands in the way"

    def teardown(self) -> None:
        super().teardown()
        self.small.__exit__(None, None, None)


STATEFUL = settings(
    max_examples=max(10, settings().max_examples // 4), stateful_step_count=25, deadline=None
)
TestEngineAgreesWithDictionary = EngineAgreesWithDictionary.TestCase
TestEngineAgreesWithDictionary.settings = STATEFUL
TestRealRankingAgreesWithDictionary = RealRankingAgreesWithDictionary.TestCase
TestRealRankingAgreesWithDictionary.settings = STATEFUL

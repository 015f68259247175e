"""Large texts: answers stay within `limits.answer_bytes`, and the event loop stays free.

The event loop's own processor time is measured, not the wall-clock time, so that other load on the
machine does not matter.
"""

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, cast

import msgspec
import pytest
from msgspec import Raw

from daemon.dialect_names import DIALECTS
from daemon.dialects import hindsight
from daemon.dialects.awareness.arguments import RecordArguments
from daemon.dialects.awareness.tools.record import Record
from daemon.dialects.registry import build
from daemon.rpc.failures import refusal
from daemon.tools.answer_size import AnswerTooLarge
from daemon.tools.toolkit import Toolkit
from protocol.mcp import CallToolResult, TextContent
from protocol.revisions import R2025_11_25
from store.engine import Progress
from store.model import Bank, Found, NewMemory, Put, Query
from store.sqlite.engine import open_engine
from tests.daemon.dialects.awareness.test_laws import OneCaller
from tests.daemon.dialects.test_hindsight import hit
from tests.support.clock import Clock
from tests.support.plain_ranking import PlainRanking

pytestmark = pytest.mark.anyio

MIB: Final = 1024 * 1024
LIMIT: Final = 65_536
SENTENCE: Final = "The quick brown fox wrote docs/auth_guide.md on Tuesday, 12 May. "
#: Processor time on the event loop's thread for one call of a few MiB.
LOOP_SECONDS: Final = 0.4

Call = Callable[..., Awaitable[CallToolResult]]


@asynccontextmanager
async def called(home: Path, answer_bytes: int = LIMIT) -> AsyncGenerator[Call]:
    """The tools of all dialects over an engine; a refusal comes back in the dialect's form."""
    async with open_engine(home, ranking=PlainRanking, now=Clock()) as engine:
        toolkit = Toolkit(engine=engine, now=Clock(), answer_bytes=answer_bytes)
        registry = build(DIALECTS, toolkit)

        async def call(name: str, **arguments: Any) -> CallToolResult:
            tool = registry.find(name)
            assert tool is not None
            try:
                answer = tool.call(Raw(msgspec.json.encode(arguments)), OneCaller("big"))
                given = await answer if isinstance(answer, Awaitable) else answer
            except AnswerTooLarge as failure:
                given = refusal(tool, failure, R2025_11_25)
            assert isinstance(given, CallToolResult)
            return given

        yield call


def text_of(answer: CallToolResult) -> str:
    (block,) = answer.content
    assert isinstance(block, TextContent)
    return block.text


def json_of(answer: CallToolResult) -> Any:
    assert not answer.is_error, text_of(answer)[:300]
    text = text_of(answer)
    assert len(text.encode()) <= LIMIT
    return msgspec.json.decode(text)


async def test_a_lookup_that_is_cut_says_where_the_next_page_begins(tmp_path: Path) -> None:
    async with called(tmp_path) as call:
        steps = [f"event {number} {'x' * 9_000}" for number in range(30)]
        await call("awareness_record", action="remember_batch", steps=steps)
        seen: list[str] = []
        offset: int | None = 0
        while offset is not None:
            page = json_of(await call("awareness_lookup", type="timeline", offset=offset, limit=50))
            assert page["total"] == 30
            seen += [event["content"] for event in page["events"]]
            offset = page.get("next_offset")

        assert sorted(seen) == sorted(steps)


async def test_a_search_of_claude_recall_that_is_cut_says_how_many_are_missing(
    tmp_path: Path,
) -> None:
    async with called(tmp_path) as call:
        for number in range(12):
            await call("mcp__claude-recall__store_memory", content=f"fox {number} {'y ' * 5_000}")

        found = json_of(
            await call("mcp__claude-recall__search", query="fox", threshold=0, limit=12)
        )
        recent = json_of(await call("mcp__claude-recall__retrieve_memory", limit=12))

        assert 0 < found["total"] == len(found["results"]) < 12
        assert found["hint"].startswith(f"{12 - found['total']} more left out")
        assert 0 < recent["total"] == len(recent["memories"]) < 12
        assert recent["hint"].startswith(f"{12 - recent['total']} more left out")


async def test_hindsight_packs_no_more_than_an_answer_holds(tmp_path: Path) -> None:
    async with called(tmp_path) as call:
        for number in range(12):
            await call(
                "hindsight_put", bank_id="big", content=f"fox {number} {'z ' * 5_000}", context="t"
            )

        found = json_of(
            await call("hindsight_search", bank_id="big", query="fox", max_tokens=10**9)
        )

        assert 0 < len(found["results"]) < 12


async def test_an_answer_without_room_for_a_remark_is_refused_with_the_limit_and_a_remedy(
    tmp_path: Path,
) -> None:
    async with called(tmp_path) as call:
        content = [{"title": "Big", "text": "w" * 2 * LIMIT}]
        kept = await call(
            "awareness_record", action="ingest", content_scope="knowledge", content=content
        )
        id = msgspec.json.decode(text_of(kept))["documents"][0]["id"]

        refused = await call("get", id=id)

        assert refused.is_error
        error = msgspec.json.decode(text_of(refused))["error"]
        assert error["code"] == "bad_request"
        assert f"limits.answer_bytes is {LIMIT}" in error["message"]
        assert "raise limits.answer_bytes" in error["message"]


async def test_the_answer_of_a_write_is_never_refused_for_its_size(tmp_path: Path) -> None:
    async with called(tmp_path) as call:
        kept = await call("awareness_record", action="remember", text="v" * 2 * LIMIT)
        assert not kept.is_error


# --- the event loop ---------------------------------------------------------------------------


async def loop_seconds(work: Awaitable[Any]) -> float:
    """The processor time that the event loop's thread spends until `work` is done."""
    before = time.thread_time()
    await work
    return time.thread_time() - before


class Finds:
    """An engine whose every search finds the same hits."""

    def __init__(self, *texts: str) -> None:
        self._hits = tuple(hit(text, number) for number, text in enumerate(texts))

    async def search(self, query: Query) -> Found:
        return Found(hits=self._hits)


@pytest.mark.parametrize("budget", [100_000, 10**9])
async def test_counting_the_tokens_of_many_large_facts_leaves_the_event_loop_free(
    budget: int,
) -> None:
    engine = Finds(*[f"{number} {SENTENCE * 15_000}" for number in range(20)])
    toolkit = Toolkit(engine=cast("Any", engine), now=lambda: 0)
    arguments = hindsight.SearchArguments(bank_id="b", query="fox", max_tokens=budget)

    spent = await loop_seconds(hindsight.search(toolkit, arguments, OneCaller("b")))

    assert spent < LOOP_SECONDS


async def test_remembering_a_large_text_leaves_the_event_loop_free(tmp_path: Path) -> None:
    text = SENTENCE * (MIB // len(SENTENCE))
    async with called(tmp_path) as call:
        spent = await loop_seconds(call("awareness_record", action="remember", text=text))
    assert spent < LOOP_SECONDS


class StoresNothing:
    """An engine that accepts events without work, so that only the dialect's work is measured."""

    async def bank(self, name: str) -> Bank:
        return Bank(id="b", name=name, created_at=0)

    async def put_many(
        self, bank: str, new: Sequence[NewMemory], *, progress: Progress | None = None
    ) -> list[Put]:
        return [Put(id=str(number), rowid=number + 1) for number in range(len(new))]

    async def search(self, query: Query) -> Found:
        return Found()


async def test_importing_a_long_history_leaves_the_event_loop_free() -> None:
    history = [{"role": "user", "content": f"{number}: {SENTENCE}"} for number in range(5_000)]
    record = Record(Toolkit(engine=cast("Any", StoresNothing()), now=lambda: 0))
    arguments = RecordArguments(
        action="backfill", history=history, max_events=5_000, generate_summary=False
    )

    spent = await loop_seconds(record(arguments, OneCaller("b")))

    assert spent < LOOP_SECONDS / 4


async def test_ingesting_a_large_document_leaves_the_event_loop_free(tmp_path: Path) -> None:
    content = [{"text": SENTENCE * (8 * MIB // len(SENTENCE))}]
    async with called(tmp_path) as call:
        spent = await loop_seconds(
            call("awareness_record", action="ingest", content_scope="knowledge", content=content)
        )
    assert spent < LOOP_SECONDS

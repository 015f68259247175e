"""Properties of the Awareness tools: no accepted item is lost, and memories are isolated."""

import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Raw

from daemon.dialects.awareness import tools
from daemon.tools.authority import OWNER
from daemon.tools.bound_tool import BoundTool
from daemon.tools.toolkit import Toolkit
from protocol.lifecycle import ClientCapabilities, Implementation
from protocol.mcp import CallToolResult
from protocol.revisions import LATEST_LEGACY
from store.sqlite.engine import open_engine
from tests.contracts.tables.awareness import CATEGORIES
from tests.support.clock import Clock
from tests.support.plain_ranking import PlainRanking

Call = Callable[..., Awaitable[Any]]


class OneCaller:
    """The context of one client with one session."""

    revision = LATEST_LEGACY
    client: Implementation | None = None
    capabilities = ClientCapabilities()
    principal = OWNER
    transport = "test"
    principal = OWNER
    inputs: dict[str, Any] = {}  # noqa: RUF012 - read-only in the protocol
    state: str | None = None
    headers = None

    def __init__(self, bank: str) -> None:
        self.bank = bank

    async def session(self) -> str:
        return "wire-session"

    async def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None: ...

    async def log(self, level: str, data: Any) -> None: ...

    async def ask(self, method: str, params: dict[str, Any]) -> Any: ...

    def announce(self, change: str, uri: str | None = None) -> None: ...

    def changed(self, bank: str) -> None: ...

    def detach(self) -> None: ...


@asynccontextmanager
async def surface() -> AsyncGenerator[Callable[[str], Call]]:
    """Open a new engine and yield a function that calls the tools in a named memory."""
    with tempfile.TemporaryDirectory() as directory:
        clock = Clock()
        async with open_engine(Path(directory), ranking=PlainRanking, now=clock) as engine:
            toolkit = Toolkit(engine=engine, now=clock)
            bound = {spec.name: BoundTool(spec) for spec in tools(toolkit)}

            def caller(bank: str) -> Call:
                async def call(tool: str, **arguments: Any) -> Any:
                    raw = Raw(msgspec.json.encode(arguments))
                    answer = bound[tool].call(raw, OneCaller(bank))
                    assert isinstance(answer, Awaitable)
                    given = await answer
                    assert isinstance(given, CallToolResult)
                    assert not given.is_error, given
                    return msgspec.json.decode(given.structured_content)

                return call

            yield caller


words = st.text(alphabet="abcdefgh ", min_size=1, max_size=24).filter(lambda text: text.strip())
people = st.sampled_from(["", "ana", "ben"])
events = st.fixed_dictionaries(
    {
        "action": st.just("remember_batch"),
        "steps": st.lists(words | st.fixed_dictionaries({"text": words}), min_size=1, max_size=4),
        "session_id": st.sampled_from(["", "s1", "s2"]),
        "user_id": people,
    }
)
one_event = st.fixed_dictionaries(
    {"action": st.just("remember"), "text": words, "agent_role": st.sampled_from(["", "dev"])}
)
cards = st.fixed_dictionaries(
    {"category": st.sampled_from(CATEGORIES), "title": words, "summary": words}
)
insights = st.fixed_dictionaries(
    {
        "action": st.just("submit_insights"),
        "user_id": people,
        "content": st.fixed_dictionaries(
            {
                "knowledge_cards": st.lists(cards, max_size=3),
                "risks": st.lists(
                    st.fixed_dictionaries(
                        {
                            "title": words,
                            "level": st.sampled_from(["high", "medium", "low"]),
                            "status": st.sampled_from(["active", "mitigated", "resolved"]),
                        }
                    ),
                    max_size=2,
                ),
                "action_items": st.lists(
                    st.fixed_dictionaries(
                        {
                            "title": words,
                            "status": st.sampled_from(["pending", "in_progress", "completed"]),
                        }
                    ),
                    max_size=2,
                ),
            }
        ),
    }
)
documents = st.fixed_dictionaries(
    {
        "action": st.just("ingest"),
        "content_scope": st.just("knowledge"),
        "content": st.fixed_dictionaries({"text": words, "id": st.sampled_from("xyz")}),
    }
)
writes = st.lists(events | one_event | insights | documents, min_size=1, max_size=8)


def accepted(answer: Any) -> set[str]:
    """The ids of stored items in a result of `awareness_record`."""
    ids = {step["id"] for part in ("events", "cards", "risks", "action_items", "documents")
           for step in answer.get(part, [])}  # fmt: skip
    return ids | ({answer["event"]["id"]} if "event" in answer else set())


async def walk(call: Call, **arguments: Any) -> list[str]:
    """Page through a lookup, three items at a time, and return the ids."""
    ids: list[str] = []
    offset: int | None = 0
    while offset is not None:
        page = await call("awareness_lookup", limit=3, offset=offset, **arguments)
        (items,) = (value for value in page.values() if isinstance(value, list))
        ids += [item["id"] for item in items]
        assert len(ids) <= page["total"]
        offset = page.get("next_offset")
    assert len(ids) == page["total"]
    return ids


async def reachable(call: Call) -> set[str]:
    """Return every id that a documented lookup returns."""
    found: set[str] = set()
    for arguments in (
        {"type": "timeline"},
        {"type": "knowledge"},
        {"type": "knowledge", "status": "superseded"},
        {"type": "tasks", "include_completed": True},
        {"type": "risks"},
        {"type": "risks", "status": "resolved"},
    ):
        ids = await walk(call, **arguments)
        assert len(ids) == len(set(ids)), arguments
        found |= set(ids)
    return found


#: Each example opens an engine of its own, so a quarter of the usual examples must do.
slow = settings(
    max_examples=max(10, settings().max_examples // 4),
    suppress_health_check=[HealthCheck.too_slow],
    deadline=None,
)


@slow
@given(writes)
def test_every_accepted_item_is_reachable_by_a_documented_call(sent: list[dict[str, Any]]) -> None:
    async def check() -> None:
        async with surface() as caller:
            call = caller("mine")
            kept: set[str] = set()
            last: dict[str, str] = {}
            for arguments in sent:
                answer = await call("awareness_record", **arguments)
                kept |= accepted(answer)
                for document in answer.get("documents", []):
                    last[document["id"]] = arguments["content"]["text"]
                    kept.discard(document["id"])
            if not kept and not last:
                return
            assert kept <= await reachable(call)
            for id, text in last.items():
                found = await call(
                    "awareness_recall",
                    semantic_query=text,
                    keyword_query=text,
                    scope="knowledge",
                    recall_mode="precise",
                    limit=30,
                )
                assert id in {hit["metadata"]["document_id"] for hit in found["results"]}

    anyio.run(check)


@slow
@given(writes)
def test_repeating_every_write_creates_no_duplicate_events(sent: list[dict[str, Any]]) -> None:
    async def check() -> None:
        async with surface() as caller:
            call = caller("mine")
            for _ in range(2):
                for arguments in sent:
                    await call("awareness_record", **arguments)
            timeline = await call("awareness_lookup", type="timeline", limit=500)
            said = [(e["content"], e.get("session_id"), e.get("user_id"), e.get("agent_role"))
                    for e in timeline["events"]]  # fmt: skip
            assert len(said) == len(set(said))

    anyio.run(check)


async def everything(call: Call, question: str) -> list[Any]:
    answers = [
        await call("awareness_recall", semantic_query=question, recall_mode=mode)
        for mode in ("hybrid", "auto", "precise", "session", "structured")
    ]
    answers += [
        await call("awareness_lookup", type=type)
        for type in ("context", "tasks", "knowledge", "risks", "timeline", "handoff")
    ]
    return answers


@slow
@given(writes, writes)
def test_results_of_one_memory_do_not_depend_on_another(
    mine: list[dict[str, Any]], theirs: list[dict[str, Any]]
) -> None:
    async def check() -> None:
        async with surface() as caller:
            call, other = caller("mine"), caller("theirs")
            for arguments in mine:
                await call("awareness_record", **arguments)
            question = "abc def"
            before = await everything(call, question)
            for arguments in [*theirs, *mine]:
                await other("awareness_record", **arguments)
            assert await everything(call, question) == before

    anyio.run(check)


@slow
@given(st.lists(words, min_size=1, max_size=12, unique=True), st.data())
def test_every_write_action_stores_the_text_verbatim(texts: list[str], data: st.DataObject) -> None:
    async def check() -> None:
        async with surface() as caller:
            call = caller("mine")
            for text in texts:
                way = data.draw(st.sampled_from(["remember", "batch", "backfill", "ingest"]))
                if way == "remember":
                    await call("awareness_record", action="remember", text=text)
                elif way == "batch":
                    await call("awareness_record", action="remember_batch", steps=[text])
                elif way == "backfill":
                    await call("awareness_record", action="backfill", history=[{"text": text}])
                else:
                    await call("awareness_record", action="ingest", content=text)
            timeline = await call("awareness_lookup", type="timeline", limit=500)
            assert sorted(event["content"] for event in timeline["events"]) == sorted(texts)

    anyio.run(check)

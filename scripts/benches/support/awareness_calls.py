"""Calls of the awareness tools for the dialects bench, and the engine operations behind each."""

import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

from daemon.dialects.awareness.tools.recall import FLOOR
from store.clock import wall_clock
from store.engine import Engine
from store.errors import NotFound
from store.model import (
    Filters,
    NewCard,
    NewMemory,
    NewNarrative,
    NewNotes,
    NewRisk,
    NewTask,
    Query,
)

Text = Callable[[int], str]
#: (name, tool, arguments of call n, engine operations, whether the structured limits apply)
Row = tuple[
    str,
    str,
    Callable[[int], dict[str, Any]],
    Callable[[Engine, int], Awaitable[Any]],
    bool,
]

CARDS: Final = 300
TASKS: Final = 60
RISKS: Final = 40
LIVE: Final = Filters(statuses=("open", "in_progress", "resolved", "noted"))
OPEN: Final = Filters(statuses=("pending", "in_progress"))
ACTIVE: Final = Filters(statuses=("active", "mitigated"))


def notes(sentence: Text) -> NewNotes:
    """Notes of a bank in use: everything besides its events."""

    def words(number: int, count: int) -> str:
        return " ".join(sentence(number).split()[:count])

    return NewNotes(
        cards=tuple(
            NewCard(category="key_point", title=words(n, 4), summary=sentence(n + 70_000))
            for n in range(CARDS)
        ),
        tasks=tuple(NewTask(title=words(n + 80_000, 6)) for n in range(TASKS)),
        risks=tuple(NewRisk(title=words(n + 90_000, 6)) for n in range(RISKS)),
    )


def rows(bank: str, sentence: Text, question: Text) -> list[Row]:
    def query(n: int, **more: Any) -> Query:
        return Query(bank=bank, text=question(n), min_score=FLOOR, **more)

    def since(days: int) -> Filters:
        return Filters(since=wall_clock() // 86_400_000 * 86_400_000 - (days - 1) * 86_400_000)

    async def days(engine: Engine) -> None:
        await engine.days(bank, filters=since(7), each=12, limit=7)

    async def overview(engine: Engine, _n: int, cards: int = 50, tasks: int = 20) -> None:
        await days(engine)
        await engine.tasks(bank, filters=OPEN, limit=tasks)
        await engine.cards(bank, filters=LIVE, limit=cards)
        sessions = Filters(categories=("session",))
        await engine.recent(bank, kinds=("narrative",), filters=sessions, limit=3)

    async def init(engine: Engine, n: int) -> None:
        await overview(engine, n)
        skills = Filters(categories=("skill",), statuses=LIVE.statuses)
        await engine.cards(bank, filters=skills, limit=10)
        await engine.skills(bank, limit=10)
        await engine.profiles(bank)
        await engine.sessions.mint(transport="bench", bank=bank)

    async def structure(engine: Engine, n: int, met: int = 0) -> None:
        found = await engine.search(query(n, kinds=("card",), mode="keyword", limit=6))
        for hit in found.hits[: 6 - met]:
            await engine.card(bank, hit.item.id)
        await engine.risks(bank, filters=ACTIVE, limit=6)
        await days(engine)
        await engine.tasks(bank, filters=OPEN, limit=6)

    async def structured(engine: Engine, n: int) -> None:
        await structure(engine, n)
        await engine.cards(bank, filters=LIVE, limit=6)

    async def hybrid(engine: Engine, n: int) -> None:
        await engine.search(query(n, limit=28))
        await structure(engine, n)

    async def precise(engine: Engine, n: int) -> None:
        found = await engine.search(query(n, limit=6))
        for hit in found.hits:
            if hit.item.document is not None:
                await engine.chunks(bank, hit.item.document)

    async def session(engine: Engine, n: int) -> None:
        found = await engine.search(query(n, limit=6))
        for name in {hit.item.session for hit in found.hits if hit.item.session}:
            await engine.timeline(
                bank, filters=Filters(session=name), limit=100, newest_first=False
            )

    async def tasks(engine: Engine, _n: int) -> None:
        await engine.tasks(bank, filters=OPEN, limit=50)
        for status in OPEN.statuses:
            await engine.tasks(bank, filters=Filters(statuses=(status,)), limit=1)

    async def history(engine: Engine, n: int) -> None:
        name = f"session_{n % 40}"
        await engine.timeline(bank, filters=Filters(session=name), newest_first=False)
        told = Filters(session=name, categories=("session",))
        await engine.recent(bank, kinds=("narrative",), filters=told, limit=1)

    async def known(engine: Engine, n: int) -> None:
        await engine.search(
            Query(bank=bank, text=sentence(n), mode="keyword", kinds=("card",), limit=5)
        )

    def event(n: int) -> NewMemory:
        return NewMemory(kind="event", text=f"Event: {sentence(n)}", session="bench-direct")

    async def remember(engine: Engine, n: int) -> None:
        (put,) = await engine.put_many(bank, [event(n)])
        await engine.get(bank, put.id)
        await known(engine, n)

    async def batch(engine: Engine, n: int) -> None:
        await engine.put_many(bank, [event(4 * n + k) for k in range(4)])
        here = Filters(session="bench-direct")
        page = await engine.timeline(bank, filters=here, limit=200)
        text = "\n".join(item.text for item in page.items[:8])
        await engine.put_narrative(
            bank, NewNarrative(span="session", name="bench-direct", text=text, count=page.total)
        )
        await known(engine, n)

    def card(n: int) -> dict[str, str]:
        title = " ".join(random.Random(n).sample(sentence(n).split(), 5))
        return {"category": "insight", "title": title, "summary": sentence(n + 1)}

    async def submit(engine: Engine, n: int) -> None:
        fields = card(n)
        new = NewCard(category=fields["category"], title=fields["title"], summary=fields["summary"])
        await engine.put_notes(bank, NewNotes(cards=(new,)))

    async def prompt(engine: Engine, _n: int) -> None:
        with suppress(NotFound):
            await engine.profile(bank, "developer_agent")

    def lookup(type: str, **more: Any) -> Callable[[int], dict[str, Any]]:
        return lambda n: {"type": type, **more}

    def recall(mode: str) -> Callable[[int], dict[str, Any]]:
        return lambda n: {"semantic_query": question(n), "recall_mode": mode}

    def record(action: str, **more: Callable[[int], Any]) -> Callable[[int], dict[str, Any]]:
        return lambda n: {"action": action, **{name: make(n) for name, make in more.items()}}

    look, ask, write = "awareness_lookup", "awareness_recall", "awareness_record"
    return [
        ("awareness_init", "awareness_init", lambda n: {"source": "cursor"}, init, False),
        (
            "get_agent_prompt",
            "awareness_get_agent_prompt",
            lambda n: {"agent_role": "developer_agent"},
            prompt,
            False,
        ),
        ("lookup context", look, lookup("context"), overview, True),
        ("lookup tasks", look, lookup("tasks"), tasks, True),
        (
            "lookup knowledge",
            look,
            lookup("knowledge"),
            lambda engine, n: engine.cards(bank, filters=LIVE),
            True,
        ),
        (
            "lookup risks",
            look,
            lookup("risks"),
            lambda engine, n: engine.risks(bank, filters=ACTIVE),
            True,
        ),
        (
            "lookup session_history",
            look,
            lambda n: {"type": "session_history", "session_id": f"session_{n % 40}"},
            history,
            True,
        ),
        (
            "lookup timeline",
            look,
            lookup("timeline"),
            lambda engine, n: engine.timeline(bank),
            True,
        ),
        (
            "lookup timeline deep",
            look,
            lookup("timeline", offset=5000),
            lambda engine, n: engine.timeline(bank, offset=5000),
            True,
        ),
        ("lookup handoff", look, lookup("handoff"), overview, True),
        ("recall structured", ask, recall("structured"), structured, True),
        ("recall hybrid", ask, recall("hybrid"), hybrid, False),
        ("recall auto", ask, recall("auto"), lambda e, n: e.search(query(n, limit=6)), False),
        ("recall precise", ask, recall("precise"), precise, False),
        ("recall session", ask, recall("session"), session, False),
        (
            "record remember",
            write,
            record("remember", text=lambda n: f"Tool event: {sentence(n)}"),
            remember,
            False,
        ),
        (
            "record remember_batch",
            write,
            record(
                "remember_batch",
                steps=lambda n: [{"text": f"Step: {sentence(4 * n + k)}"} for k in range(4)],
            ),
            batch,
            False,
        ),
        (
            "record submit_insights",
            write,
            record("submit_insights", content=lambda n: {"knowledge_cards": [card(n)]}),
            submit,
            False,
        ),
    ]

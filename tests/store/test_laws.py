"""Accepted values are returned unchanged, and refused values change nothing."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from store.errors import StoreError
from store.model import (
    CARD_STATUSES,
    KINDS,
    LEVELS,
    RISK_STATUSES,
    TASK_STATUSES,
    AgentProfile,
    Evidence,
    NewCard,
    NewDocument,
    NewMemory,
    NewNarrative,
    NewRisk,
    NewSkill,
    NewTask,
    Provenance,
)
from store.sqlite.engine import EmbeddedEngine, open_engine
from tests.support.plain_ranking import PlainRanking

# Words that meet again, so that duplicates, renewals and replaced keys happen too.
text = st.sampled_from(["the deploy port is 80", "Tabs", "Ångström 猫", "x\ny", "a"]) | st.text(
    max_size=20
)
maybe_text = st.none() | text
number = st.one_of(
    st.none(),
    st.sampled_from([0, 1, -0.0, 1.0, 2.0, 5, 0.1, 1e22, 2**53 + 1, -(2**63)]),
    st.floats(0, 1),
    st.floats(),
    st.integers(),
)
time = st.one_of(st.none(), st.sampled_from([0, 2.0, -1, 1_700_000_000_000]), number)
texts = st.lists(text, max_size=3) | st.lists(text, max_size=3).map(tuple)
json: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | number | text,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(text, inner, max_size=2),
    max_leaves=5,
)
metadata: st.SearchStrategy[dict[str, Any]] = st.just({}) | st.dictionaries(text, json, max_size=3)
provenance = st.builds(Provenance, dialect=maybe_text, explanation=maybe_text)
labels: dict[str, Any] = {
    "session": maybe_text,
    "user": maybe_text,
    "role": maybe_text,
    "provenance": provenance,
}
marked: dict[str, Any] = {**labels, "source": maybe_text, "metadata": metadata}

memories = st.builds(
    NewMemory,
    text=text,
    kind=st.sampled_from(KINDS),
    id=st.none() | st.uuids().map(str),
    title=text,
    context=maybe_text,
    confidence=number,
    salience=number,
    key=maybe_text,
    tags=texts,
    details=metadata | st.builds(dict, methods=texts, count=number),
    occurred_at=time,
    allow_duplicate=st.booleans(),
    **marked,
)
cards = st.builds(
    NewCard,
    category=text,
    title=text,
    summary=text,
    tags=texts,
    status=st.sampled_from(CARD_STATUSES),
    confidence=number,
    salience=number,
    methods=texts,
    evidence=st.lists(st.builds(Evidence, snippet=text, session=maybe_text), max_size=2),
    **marked,
)
tasks = st.builds(
    NewTask,
    title=text,
    detail=text,
    priority=st.sampled_from(LEVELS),
    status=st.sampled_from(TASK_STATUSES),
    effort=maybe_text,
    **marked,
)
risks = st.builds(
    NewRisk,
    title=text,
    detail=text,
    level=st.sampled_from(LEVELS),
    mitigation=text,
    status=st.sampled_from(RISK_STATUSES),
    **marked,
)
skills = st.builds(NewSkill, name=text, summary=text, methods=texts, triggers=texts, **marked)
narratives = st.builds(
    NewNarrative, span=st.sampled_from(["day", "session"]), name=text, text=text, count=number,
    **labels,
)  # fmt: skip
profiles = st.builds(AgentProfile, agent_role=text, title=text, critical_rules=texts)
documents = st.builds(
    NewDocument,
    source=text,
    source_id=text,
    body=st.lists(text, max_size=4).map("\n\n".join),
    id=maybe_text,
    title=text,
    created_at=time,
    updated_at=time,
    **{**labels, "metadata": metadata},
)
new = st.one_of(memories, cards, tasks, risks, skills, narratives, profiles, documents)


async def keep(engine: EmbeddedEngine, thing: object) -> None:
    match thing:
        case NewMemory():
            await engine.put("w", thing)
        case NewCard():
            await engine.put_cards("w", [thing])
        case NewTask():
            await engine.put_tasks("w", [thing])
        case NewRisk():
            await engine.put_risks("w", [thing])
        case NewSkill():
            await engine.put_skills("w", [thing])
        case NewNarrative():
            await engine.put_narrative("w", thing)
        case AgentProfile():
            await engine.put_profile("w", thing)
        case NewDocument():
            await engine.upsert_document("w", thing)
        case _:
            raise AssertionError(thing)


def with_engine(work: Callable[[EmbeddedEngine, Path], Awaitable[None]]) -> None:
    """Run the work on a new engine. Hypothesis has no fixture per example."""

    async def run() -> None:
        with TemporaryDirectory() as directory:
            async with open_engine(Path(directory) / "data", ranking=PlainRanking) as engine:
                await work(engine, Path(directory))

    anyio.run(run)


async def read_all(engine: EmbeddedEngine) -> int:
    """Read everything with every operation. A damaged row would raise an error."""
    items = (await engine.recent("w", limit=5_000)).items
    for item in items:
        assert (await engine.get("w", item.id)) == item
    counted = len(items)
    found_cards, _ = await engine.cards("w")
    for card in found_cards:
        await engine.card_history("w", card.id)
    await engine.tasks("w")
    await engine.risks("w")
    await engine.skills("w")
    await engine.narratives("w", span="day")
    counted += len(await engine.profiles("w"))
    for document in await engine.documents("w"):
        assert len(await engine.chunks("w", document.id)) == document.chunks
        counted += 1
    return counted


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(things=st.lists(new, min_size=1, max_size=12))
def test_accepted_values_are_returned_undamaged(things: list[object]) -> None:
    async def work(engine: EmbeddedEngine, directory: Path) -> None:
        await engine.create_bank("w")
        kept = 0
        for thing in things:
            with suppress(StoreError):
                await keep(engine, thing)
                kept += 1
        assert (await read_all(engine) > 0) == (kept > 0)
        assert (await engine.check("w")).problems == ()
        exported = await engine.export("w", directory / "one")
        await engine.import_file("copy", directory / "one")
        assert (await engine.check("copy")).problems == ()
        assert (await engine.export("copy", directory / "two")).records == exported.records

    with_engine(work)

"""Frequent values, growth and the map of a bank."""

from pathlib import Path

import pytest

from store.model import FacetCount, Filters, NewMemory, Provenance
from store.search.hybrid import HybridRanking
from store.sqlite.engine import open_engine
from tests.support.clock import Clock
from tests.support.embedder import FakeEmbedder
from tests.support.plain_ranking import PlainRanking

pytestmark = pytest.mark.anyio

DAY_MS = 24 * 3600 * 1000


def counts(values: tuple[FacetCount, ...]) -> list[tuple[str, int]]:
    return [(each.value, each.count) for each in values]


async def test_facets_count_the_values_that_pass_the_filters(tmp_path: Path) -> None:
    async with open_engine(tmp_path, ranking=PlainRanking) as engine:
        for number in range(3):
            await engine.put(
                "work",
                NewMemory(
                    text=f"memory {number}",
                    tags=("all", f"tag{number}"),
                    source="editor" if number else "shell",
                    session="s1",
                    provenance=Provenance(client="cursor/1"),
                ),
            )
        everything = await engine.facets("work")
        of_shell = await engine.facets("work", filters=Filters(sources=("shell",)))

    assert counts(everything.tags) == [("all", 3), ("tag0", 1), ("tag1", 1), ("tag2", 1)]
    assert counts(everything.sources) == [("editor", 2), ("shell", 1)]
    assert counts(everything.sessions) == [("s1", 3)]
    assert counts(everything.clients) == [("cursor/1", 3)]
    assert counts(everything.kinds) == [("memory", 3)]
    assert counts(of_shell.tags) == [("all", 1), ("tag0", 1)]


async def test_growth_has_every_day_and_the_total_at_its_end(tmp_path: Path) -> None:
    clock = Clock()
    async with open_engine(tmp_path, ranking=PlainRanking, now=clock) as engine:
        today = clock.now
        for age in (400, 2, 2, 0):
            await engine.put("work", NewMemory(text=f"{age}", occurred_at=today - age * DAY_MS))
        days = await engine.growth("work", days=4)

    # Both memories of two days ago are equal, so they are one.
    assert [(day.added, day.total) for day in days] == [(0, 1), (1, 2), (0, 2), (1, 3)]
    assert len({day.date for day in days}) == 4


async def test_the_map_is_the_same_for_the_same_content_and_labels_are_short(
    tmp_path: Path,
) -> None:
    maps = []
    for name in ("a", "b"):
        async with open_engine(
            tmp_path / name, ranking=lambda group: HybridRanking(group, FakeEmbedder())
        ) as engine:
            await engine.put_many(
                "work",
                [
                    NewMemory(id=f"m{number}", text=f"memory number {number} " + "long " * 40)
                    for number in range(20)
                ],
            )
            await engine.settle("work")
            maps.append(await engine.map("work"))
            smaller = await engine.map("work", limit=5)

    first, second = maps
    assert [(p.id, p.x, p.y) for p in first.points] == [(p.id, p.x, p.y) for p in second.points]
    assert first.total == 20
    assert len(first.points) == 20
    assert all(-1 <= point.x <= 1 and -1 <= point.y <= 1 for point in first.points)
    assert all(len(point.label) <= 80 for point in first.points)
    assert [point.id for point in smaller.points] == ["m19", "m18", "m17", "m16", "m15"]


async def test_a_bank_without_vectors_has_an_empty_map(tmp_path: Path) -> None:
    async with open_engine(tmp_path, ranking=PlainRanking) as engine:
        await engine.put("work", NewMemory(text="one"))
        assert (await engine.map("work")).points == ()

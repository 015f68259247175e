"""A run with `since`, `until` or `limit` applies some of the changes and deletes nothing."""

import os

from tests.daemon.sources.kit import Bench

DAY = 86_400_000


def dated(docs: Bench, path: str, day: int) -> None:
    file = docs.write(path, f"text of {path}")
    os.utime(file, (day * 86_400, day * 86_400))


async def test_only_files_between_the_dates_are_stored(docs: Bench) -> None:
    for day in (100, 200, 300):
        dated(docs, f"{day}.md", day)

    outcome = await docs.sync(since=150 * DAY, until=250 * DAY)

    assert (outcome.added, outcome.postponed) == (1, 2)
    assert await docs.paths() == {"200.md"}
    assert docs.sources.state("docs").last_sync is None


async def test_the_next_whole_run_finds_everything_that_was_left(docs: Bench) -> None:
    for day in (100, 200, 300):
        dated(docs, f"{day}.md", day)

    first = await docs.sync(limit=1)
    assert (first.added, first.postponed) == (1, 2)
    second = await docs.sync(limit=1)
    assert (second.added, second.unchanged, second.postponed) == (1, 1, 1)
    assert (await docs.sync()).added == 1
    assert await docs.paths() == {"100.md", "200.md", "300.md"}


async def test_a_selective_run_deletes_nothing(docs: Bench) -> None:
    dated(docs, "old.md", 100)
    await docs.sync()
    (docs.root / "old.md").unlink()
    dated(docs, "new.md", 200)

    assert (await docs.sync(limit=5)).deleted == 0
    assert await docs.paths() == {"old.md", "new.md"}
    assert (await docs.sync()).deleted == 1

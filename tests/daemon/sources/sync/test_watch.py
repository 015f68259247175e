"""A watched source follows its files while the daemon runs."""

import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
import structlog

from daemon.sources.sync.watch import Notifier, Watcher, WatchLimited
from tests.daemon.sources.kit import Bench


class Prepared:
    """A notifier that a test feeds."""

    def __init__(self) -> None:
        self.changes: list[set[str]] = []
        self.more = threading.Event()

    def wait(self, seconds: float, stop: threading.Event) -> set[str] | None:
        while not stop.is_set():
            if self.changes:
                return self.changes.pop(0)
            self.more.wait(0.01)
            self.more.clear()
        return None


async def until(condition: Callable[[], Any]) -> None:
    """Wait until an async condition holds, at most ten seconds."""
    with anyio.fail_after(10):
        while not await condition():  # noqa: ASYNC110  (a database has no events)
            await anyio.sleep(0.01)


@asynccontextmanager
async def watched(docs: Bench, notifier: Any = None, **more: Any) -> AsyncIterator[None]:
    docs.reopened(watch=True)
    async with anyio.create_task_group() as tasks:
        arguments = {"notifier": notifier} if notifier is not None else {}
        Watcher(docs.sources, tasks, **arguments, **more).start()
        await until(lambda: _has_synced(docs))
        yield
        tasks.cancel_scope.cancel()


async def _has_synced(docs: Bench) -> bool:
    return docs.sources.state("docs").last_run is not None


async def _has(docs: Bench, *paths: str) -> bool:
    return await docs.paths() == set(paths)


async def test_new_changed_renamed_and_deleted_files_are_followed(docs: Bench) -> None:
    docs.write("a.md", "text a")
    async with watched(docs):
        docs.write("b.md", "text b", age=0)
        await until(lambda: _has(docs, "a.md", "b.md"))
        docs.write("b.md", "changed", age=0)
        await until(lambda: docs.found("changed"))
        (docs.root / "a.md").unlink()
        await until(lambda: _has(docs, "b.md"))


async def test_a_renamed_folder_is_followed_although_its_files_cause_no_events(
    docs: Bench,
) -> None:
    docs.write("old/a.md", "text a")
    docs.write("old/deep/b.md", "text b")
    async with watched(docs):
        before = {found.id for found in (await docs.documents()).values()}
        (docs.root / "old").rename(docs.root / "new")
        await until(lambda: _has(docs, "new/a.md", "new/deep/b.md"))
        assert {found.id for found in (await docs.documents()).values()} == before


async def test_an_event_compares_only_its_path(docs: Bench) -> None:
    prepared = Prepared()

    def notifier(_root: str) -> Notifier:
        return prepared

    docs.write("a.md", "text a")
    docs.write("b.md", "text b")
    async with watched(docs, notifier):
        docs.write("a.md", "text a2", age=50)
        docs.write("b.md", "text b2", age=50)
        prepared.changes.append({str(docs.root / "a.md")})
        await until(lambda: docs.found("a2"))
        assert not await docs.found("b2")

        prepared.changes.append(set())  # the interval has passed: compare everything
        await until(lambda: docs.found("b2"))


async def test_a_changed_ignore_file_compares_its_folder(docs: Bench) -> None:
    for number in range(20):
        docs.write(f"{number}.md", f"text {number}")
    async with watched(docs):
        docs.write(".gitignore", "7.md\n", age=0)
        await until(lambda: _count(docs, 19))


async def _count(docs: Bench, count: int) -> bool:
    return len(await docs.paths()) == count


async def test_without_watches_the_source_is_compared_at_intervals_and_the_log_says_so(
    docs: Bench,
) -> None:
    def notifier(_root: str) -> Notifier:
        raise WatchLimited("OS file watch limit reached.")

    docs.write("a.md", "text a")
    with structlog.testing.capture_logs() as logged:
        async with watched(docs, notifier, poll_seconds=0.02):
            docs.write("b.md", "text b", age=0)
            await until(lambda: _has(docs, "a.md", "b.md"))
    (entry,) = [entry for entry in logged if entry["event"] == "source.watch.limited"]
    assert "max_user_watches" in entry["remedy"]


def test_used_up_watches_and_instances_of_inotify_are_noticed(tmp_path: Path) -> None:
    for name in ("a", "b", "c", "d"):
        (tmp_path / name).mkdir()
    program = Path(__file__).with_name("limited_watches.py")
    inside = ["unshare", "--user", "--map-root-user"]
    if subprocess.run([*inside, "true"], check=False, stderr=subprocess.DEVNULL).returncode:
        pytest.skip("this machine allows no user namespaces")
    done = subprocess.run(
        [*inside, sys.executable, str(program), str(tmp_path)],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stdout.split() == ["watched", "limited", "limited"]


async def test_a_folder_that_cannot_be_watched_later_leads_to_comparisons(docs: Bench) -> None:
    class Limited:
        def wait(self, seconds: float, stop: threading.Event) -> set[str] | None:
            raise WatchLimited("no space left")

    docs.write("a.md", "text a")
    async with watched(docs, lambda _root: Limited(), poll_seconds=0.02):
        docs.write("b.md", "text b", age=0)
        await until(lambda: _has(docs, "a.md", "b.md"))


async def test_many_deletions_are_withheld_by_the_watcher_too(docs: Bench) -> None:
    for number in range(20):
        docs.write(f"docs/{number}.md", f"text {number}")
    async with watched(docs):
        for number in range(20):
            (docs.root / f"docs/{number}.md").unlink()
        await until(lambda: _withheld(docs))
        assert len(await docs.paths()) >= 10


async def _withheld(docs: Bench) -> bool:
    return docs.sources.state("docs").withheld > 0


async def test_watching_begins_and_ends_with_the_definition(docs: Bench) -> None:
    docs.write("a.md", "text a")
    async with watched(docs):
        other = docs.directory / "other"
        other.mkdir()
        (other / "x.md").write_text("text x")
        await docs.sources.add("more", {"kind": "filesystem", "root": str(other), "watch": True})
        await until(lambda: _has(docs, "a.md", "x.md"))
        await docs.sources.set_watch("more", is_on=False)
        await docs.sources.remove("more", keep_documents=False)
        await until(lambda: _has(docs, "a.md"))

"""Document sources over `/api/v1`: list, add, sync with events, cancel and remove."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from daemon.api.administration.sources import SourceService, operations
from daemon.sources.sync.state import RunProgress
from tests.daemon.sources.kit import Bench, bench
from tests.support.web import Web, running_web

pytestmark = pytest.mark.anyio

SOURCES = "/api/v1/sources"
#: Events of a sync: source, phase and whether it goes on.
Seen = list[tuple[str, str, bool]]


@asynccontextmanager
async def serving(
    home: Path, ended: anyio.Event | None = None
) -> AsyncGenerator[tuple[Web, Bench, Seen]]:
    (home / "bench").mkdir()
    async with bench(home / "bench") as made, running_web(home) as web:
        seen: Seen = []

        def follow(name: str, progress: RunProgress, is_running: bool) -> None:
            seen.append((name, progress.phase, is_running))
            if ended is not None and not is_running:
                ended.set()

        service = SourceService(made.sources, web.services.tasks, follow)
        web.services.api.add(operations(service))
        yield web, made, seen


async def test_a_sync_runs_in_the_background_and_its_outcome_is_kept(tmp_path: Path) -> None:
    ended = anyio.Event()
    async with serving(tmp_path, ended) as (web, made, seen):
        made.write("plan.md", "We release on Fridays.")
        dry = await web.client.post(f"{SOURCES}/docs/sync", json={"dry_run": True})
        started = await web.client.post(f"{SOURCES}/docs/sync", json={"full": True})
        with anyio.fail_after(10):
            await ended.wait()
        shown = (await web.client.get(f"{SOURCES}/docs")).json()
        listed = (await web.client.get(SOURCES)).json()["sources"]
        documents = await made.paths()

    assert dry.json()["started"] is False
    assert dry.json()["outcome"]["added"] == 1
    assert started.json() == {"name": "docs", "started": True, "outcome": None}
    assert shown["outcome"]["added"] == 1
    assert shown["running"] is None
    assert [each["name"] for each in listed] == ["docs"]
    assert documents == {"plan.md"}
    assert seen[-1] == ("docs", "embedding", False)


async def test_a_source_is_added_once_and_removed(tmp_path: Path) -> None:
    new = {"name": "notes", "definition": {"kind": "filesystem", "root": str(tmp_path)}}
    async with serving(tmp_path) as (web, _, _):
        added = await web.client.post(SOURCES, json=new)
        again = await web.client.post(SOURCES, json=new)
        cancelled = await web.client.delete(f"{SOURCES}/notes/sync")
        removed = await web.client.delete(f"{SOURCES}/notes", params={"keep": "true"})

    assert added.status_code == 201
    assert added.json()["place"] == str(tmp_path)
    assert again.status_code == 409
    assert cancelled.json() == {"name": "notes", "cancelled": False}
    assert removed.json() == {"name": "notes", "removed": True, "documents_deleted": 0}


async def test_refusals_name_the_field_or_the_source(tmp_path: Path) -> None:
    async with serving(tmp_path) as (web, _, _):
        unknown = await web.client.post(f"{SOURCES}/nothing/sync", json={})
        missing = await web.client.get(f"{SOURCES}/nothing")
        wrong = await web.client.post(SOURCES, json={"name": "x", "definition": {"kind": "tape"}})
        of_file = await web.client.delete(f"{SOURCES}/docs")

    assert unknown.status_code == missing.status_code == 404
    assert wrong.status_code == 400
    assert "kind" in wrong.json()["error"]["message"]
    assert of_file.status_code == 400
    assert "[sources.docs]" in of_file.json()["error"]["message"]

"""Context Harness over an engine: no document is read whole for a row, and `healthy` is true."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from daemon.dialects import harness
from daemon.tools.specification import NoArguments
from daemon.tools.toolkit import Toolkit
from store.engine import Engine
from store.model import Document, EngineHealth, NewDocument
from store.sqlite.engine import open_engine
from tests.daemon.dialects.awareness.test_laws import OneCaller
from tests.support.clock import Clock
from tests.support.plain_ranking import PlainRanking

pytestmark = pytest.mark.anyio


class Watched:
    """An engine whose health can be set, and that counts the documents read whole."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.state = EngineHealth(is_ready=True)
        self.read_whole = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def health(self) -> EngineHealth:
        return self.state

    async def document(self, bank: str, id: str) -> Document:
        self.read_whole += 1
        return await self._engine.document(bank, id)


@asynccontextmanager
async def three_documents(home: Path) -> AsyncGenerator[tuple[Watched, Toolkit]]:
    async with open_engine(home, ranking=PlainRanking, now=Clock()) as engine:
        for name in ("a", "b", "c"):
            await engine.upsert_document(
                "bank",
                NewDocument(
                    source="git",
                    source_id=f"{name}.md",
                    title=f"Title {name}",
                    body=f"Foxes live in {name}. " * 20,
                    url=f"https://example.org/{name}",
                ),
            )
        watched = Watched(engine)
        yield watched, Toolkit(engine=cast("Any", watched), now=Clock())


async def test_a_search_reads_no_document_whole(tmp_path: Path) -> None:
    async with three_documents(tmp_path) as (engine, toolkit):
        found = await harness.search(
            toolkit, harness.SearchArguments(query="foxes"), OneCaller("bank")
        )

        assert {(row.title, row.source_url) for row in found.results} == {
            (f"Title {name}", f"https://example.org/{name}") for name in ("a", "b", "c")
        }
        assert engine.read_whole == 0


@pytest.mark.parametrize(
    ("health", "is_healthy"),
    [
        (EngineHealth(is_ready=True), True),
        (EngineHealth(is_ready=True, degraded=("snapshot-not-written",)), True),
        (EngineHealth(is_ready=True, degraded=("embedder-failed",)), False),
        (EngineHealth(is_ready=True, degraded=("indexing-stopped",)), False),
        (EngineHealth(is_ready=False), False),
    ],
)
async def test_a_source_is_healthy_while_its_documents_can_be_found(
    tmp_path: Path, health: EngineHealth, is_healthy: bool
) -> None:
    async with three_documents(tmp_path) as (engine, toolkit):
        engine.state = health

        listed = await harness.list_sources(toolkit, NoArguments(), OneCaller("bank"))

        assert listed.sources == [
            harness.Source(name="git", configured=False, healthy=is_healthy, doc_count=3)
        ]

"""A folder as a source, an engine with a fake embedder, and the sources of a daemon."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from daemon.config.sources import check_definition
from daemon.sources.connectors.factories import Connectors
from daemon.sources.sync.keeper import Sources
from daemon.sources.sync.run import RunOptions
from daemon.sources.sync.state import Outcome
from store.model import Document, Query
from store.search.hybrid import HybridRanking
from store.sqlite.engine import EmbeddedEngine, open_engine
from tests.support.clock import Clock
from tests.support.embedder import FakeEmbedder

BANK = "default"


class Bench:
    """The source `docs` over the folder `root`, or over another definition."""

    def __init__(
        self, directory: Path, engine: EmbeddedEngine, embedder: FakeEmbedder, clock: Clock
    ) -> None:
        self.directory = directory
        self.root = directory / "root"
        self.root.mkdir(exist_ok=True)
        self.engine = engine
        self.embedder = embedder
        self.clock = clock
        self.sources = self.reopened()

    def use(self, **definition: Any) -> None:
        """Give `docs` another definition."""
        states = self.sources._states
        self.sources = self._made(definition)
        self.sources._states.update(states)

    def reopened(self, **more: Any) -> Sources:
        """New sources over the same engine, as after a restart; `more` are keys of `docs`."""
        self.sources = self._made({"kind": "filesystem", "root": str(self.root), **more})
        return self.sources

    def _made(self, given: dict[str, Any]) -> Sources:
        return Sources(
            self.engine,
            Connectors(self.directory / "cache"),
            from_file={"docs": check_definition(given)},
            config=self.directory / "config.toml",
            default_bank=BANK,
            now=self.clock,
        )

    async def restart(self, **more: Any) -> None:
        self.reopened(**more)
        await self.sources.load()

    async def sync(self, *, vectors: bool = False, **options: Any) -> Outcome:
        return await self.sources.sync("docs", RunOptions(**options), with_vectors=vectors)

    def write(self, path: str, text: str | bytes, *, age: float = 100.0) -> Path:
        """Write a file that was last changed `age` seconds ago, so that its version is trusted."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        moment = file.stat().st_mtime - age
        os.utime(file, (moment, moment))
        return file

    async def documents(self) -> dict[str, Document]:
        """The stored documents by path."""
        headers = await self.engine.documents(BANK, limit=5000)
        found = [await self.engine.document(BANK, header.id) for header in headers]
        return {document.source_id: document for document in found}

    async def paths(self) -> set[str]:
        return {header.source_id for header in await self.engine.documents(BANK, limit=5000)}

    async def found(self, text: str) -> list[str]:
        """The titles of the chunks that a keyword search finds."""
        query = Query(bank=BANK, text=text, mode="keyword")
        return [hit.item.title for hit in (await self.engine.search(query)).hits]

    async def is_sound(self) -> bool:
        return (await self.engine.check(BANK)).problems == ()


@asynccontextmanager
async def bench(directory: Path) -> AsyncIterator[Bench]:
    embedder, clock = FakeEmbedder(), Clock()
    async with open_engine(
        directory / "data", ranking=lambda group: HybridRanking(group, embedder), now=clock
    ) as engine:
        yield Bench(directory, engine, embedder, clock)

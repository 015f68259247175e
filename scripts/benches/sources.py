"""Syncs a generated documentation tree: first sync, second sync, watching, memory.

    scripts/bench.py sources                        2,400 pages, 23 MB, with vectors (takes minutes)
    scripts/bench.py sources --pages 240            a tenth of it
    scripts/bench.py sources --no-vectors           without the model
    scripts/bench.py sources --watched 10000        files for the watch test; 0 leaves it out

The rate of vectors is compared with the embedder's bare rate on the same chunks, in one process and
one after the other. The machine may be noisy: compare the ratio, not the seconds.
"""

import argparse
import random
import tempfile
import time
from pathlib import Path
from typing import Final, NamedTuple

import anyio

from daemon.config.sources import check_definition
from daemon.operations.health import memory_use
from daemon.sources.connectors.factories import Connectors
from daemon.sources.sync.keeper import Sources
from daemon.sources.sync.run import RunOptions
from daemon.sources.sync.watch import Watcher
from store.clock import wall_clock
from store.embedding.selection import choose_embedder
from store.engine import Engine
from store.model import Query
from store.rows.items import searchable
from store.sqlite.engine import open_engine

PAGE_BYTES: Final = 9_600
SAMPLE: Final = 512
MIB: Final = 1024 * 1024


class Cost(NamedTuple):
    """Seconds of wall time and of CPU time."""

    wall: float
    cpu: float


class Meter:
    def __init__(self) -> None:
        self._wall, self._cpu = time.monotonic(), time.process_time()

    def cost(self) -> Cost:
        return Cost(time.monotonic() - self._wall, time.process_time() - self._cpu)


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench.py sources", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--pages", type=int, default=2_400)
    parser.add_argument("--watched", type=int, default=10_000)
    parser.add_argument("--no-vectors", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="recalld-bench-") as directory:
        anyio.run(_sync, Path(directory), options.pages, not options.no_vectors)
        if options.watched:
            anyio.run(_watch, Path(directory), options.watched)


def write_pages(root: Path, count: int, size: int = PAGE_BYTES) -> int:
    """Write pages with headings, paragraphs, lists and code; returns their bytes."""
    words = [f"{a}{b}" for a in _SYLLABLES for b in _SYLLABLES]
    chance = random.Random(11)
    total = 0
    for number in range(count):
        parts = [f"# Page {number} about {' '.join(chance.choices(words, k=3))}\n\n"]
        length = 0
        while length < size:
            text = " ".join(chance.choices(words, k=chance.randint(30, 90)))
            if chance.random() < 0.2:
                text = f"## {' '.join(chance.choices(words, k=3))}\n\n{text}"
            parts.append(f"{text}.\n\n")
            length += len(parts[-1])
        page = "".join(parts)
        file = root / f"section{number % 40}" / f"page{number}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(page)
        total += len(page)
    return total


_SYLLABLES: Final = (
    "con", "fig", "ser", "ver", "to", "ken", "au", "then", "de", "ploy", "clus", "ter", "mem",
    "ory", "in", "dex", "ing", "query", "data", "base", "net", "work", "file", "sys", "tem",
)  # fmt: skip


def _sources(engine: Engine, directory: Path, root: Path, *, watch: bool = False) -> Sources:
    given = {"kind": "filesystem", "root": str(root), "watch": watch}
    return Sources(
        engine,
        Connectors(directory / "cache"),
        from_file={"docs": check_definition(given)},
        config=directory / "none.toml",
        default_bank="bench",
        now=wall_clock,
    )


async def _sync(directory: Path, pages: int, with_vectors: bool) -> None:
    root = directory / "pages"
    size = write_pages(root, pages)
    await anyio.sleep(2.1)  # the times of younger files are not trusted
    print(f"{pages} pages, {size / 1e6:.1f} MB")
    async with open_engine(directory / "data") as engine:
        sources = _sources(engine, directory, root)
        idle = memory_use().rss
        peak = idle
        async with anyio.create_task_group() as group:

            async def measure() -> None:
                nonlocal peak
                while True:
                    peak = max(peak, memory_use().rss)
                    await anyio.sleep(0.05)

            group.start_soon(measure)
            meter = Meter()
            outcome = await sources.sync("docs", RunOptions(), with_vectors=False)
            stored = meter.cost()
            print(f"first sync without vectors: {stored.wall:.1f} s, {outcome.added} documents")
            print(f"memory above idle while storing: {(peak - idle) / MIB:.0f} MiB")
            if with_vectors:
                meter = Meter()
                await engine.settle("bench")
                embedding = meter.cost()
                # Before the comparison, which loads a second copy of the model.
                print(f"memory above idle with the model: {(peak - idle) / MIB:.0f} MiB")
                await _compare_rates(engine, stored, embedding)
            began = time.monotonic()
            second = await sources.sync("docs", RunOptions())
            seconds = time.monotonic() - began
            print(f"second sync: {seconds:.2f} s, {second.unchanged} unchanged (bar: 2 s)")
            group.cancel_scope.cancel()


async def _compare_rates(engine: Engine, stored: Cost, embedding: Cost) -> None:
    """Compare the whole first sync with the bare embedder, on texts that the sync embedded.

    A busy machine changes the seconds, and less the CPU time, so both ratios are printed.
    """
    count = (await engine.stats("bench")).items
    texts: list[str] = []
    for header in await engine.documents("bench", limit=1000):
        texts += [searchable(chunk) for chunk in await engine.chunks("bench", header.id)]
        if len(texts) >= SAMPLE:
            break
    embedder = choose_embedder()

    def bare() -> Cost:
        embedder.embed(texts[:8])  # loads the model
        meter = Meter()
        for start in range(0, len(texts), 128):
            embedder.embed(texts[start : start + 128])
        return meter.cost()

    alone = await anyio.to_thread.run_sync(bare)
    print(f"vectors: {count} chunks in {embedding.wall:.1f} s ({count / embedding.wall:.1f}/s)")
    for name in ("wall", "cpu"):
        whole = count / (getattr(stored, name) + getattr(embedding, name))
        rate = len(texts) / getattr(alone, name)
        print(
            f"{name} time: whole first sync {whole:.1f} chunks/s, bare embedder {rate:.1f}/s,"
            f" ratio {whole / rate:.2f} (bar: 0.9)"
        )


async def _watch(directory: Path, files: int) -> None:
    root = directory / "watched"
    write_pages(root, files, size=200)
    await anyio.sleep(2.1)
    async with open_engine(directory / "data2") as engine, anyio.create_task_group() as group:
        sources = _sources(engine, directory, root, watch=True)
        Watcher(sources, group).start()
        while sources.state("docs").last_run is None:  # noqa: ASYNC110  (no event tells)
            await anyio.sleep(0.05)
        await anyio.sleep(1.0)
        delays: list[float] = []
        for number in range(5):
            began = time.monotonic()
            file = root / f"section{number}" / f"page{number}.md"
            file.write_text(f"# Changed\n\nsearchword{number} is here\n")
            query = Query(bank="bench", text=f"searchword{number}", mode="keyword", limit=1)
            while not (await engine.search(query)).hits:  # noqa: ASYNC110  (no event tells)
                await anyio.sleep(0.01)
            delays.append(time.monotonic() - began)
        shown = ", ".join(f"{delay:.2f}" for delay in sorted(delays))
        print(f"watch: a changed file among {files} is found after {shown} s (bar: 1 s)")
        group.cancel_scope.cancel()


if __name__ == "__main__":
    main()

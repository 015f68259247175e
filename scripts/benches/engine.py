"""Engine benchmark: latency, writes, recall, memory and disk, compared with other vector stores.

    scripts/bench.py engine --sizes 10000,100000 --json OUT

First a bulk import with real vectors (`--bulk N`; 100,000 take about three minutes). Then, for each
size, a bank with that many short memories and real vectors: search in every mode, including the
embedding of the query; ANN recall against exact search; cold start; durable puts from one and from
64 callers, compared with bare SQLite commits. Then the same texts, vectors and queries in
sqlite-vec + FTS5, chromadb and lancedb, each in its own process (`--no-peers` skips them). They are
installed once into .cache/bench-peers; stores that cannot be installed are reported and skipped.

Sizes of 500,000 and more use synthetic vectors (clusters on the sphere) instead of the model.
Time on two cores: 10,000 about 1 minute, 100,000 about 6 (embedding is most of it), 1,000,000
about 15. Vectors are cached in .cache/bench-vectors for the next run.
"""

import argparse
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio

import store.embedding.native_libraries  # noqa: F401  (must be imported before NumPy)
from scripts.benches.support.corpus import texts
from scripts.benches.support.embedders import CachedEmbedder, SyntheticEmbedder, cached_vectors
from scripts.benches.support.figures import (
    Progress,
    disk_mb,
    percentiles,
    print_figures,
    print_line,
)
from scripts.benches.support.put_rates import SLOW_MS, put_rates, puts_on_a_slower_disk
from scripts.kit.peer_packages import CACHE, ROOT
from store.embedding.embedder import Embedder
from store.embedding.selection import choose_embedder
from store.model import MODES, NewMemory, Query
from store.search.hybrid import HybridRanking
from store.sqlite.engine import EmbeddedEngine, open_engine
from store.vectors.matrix import unpack
from store.vectors.stored import stored_cosines

PEERS = ("sqlite-vec", "chromadb", "lancedb")
BANK = "bench"
SYNTHETIC_FROM = 500_000
PUT_BATCH = 2_000


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench.py engine", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "--sizes", default="10000,100000", help="numbers of memories, separated by commas"
    )
    parser.add_argument("--json", type=Path, help="file for the figures")
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument(
        "--bulk", type=int, default=2_000, help="number of memories for the bulk import"
    )
    options = parser.parse_args()
    result: dict[str, Any] = {"cores": os.cpu_count(), "sizes": {}}
    if options.bulk:
        result["bulk_import"] = bulk_import(options.bulk)
    for size in [int(part) for part in options.sizes.split(",")]:
        result["sizes"][str(size)] = measure(size, options.queries, peers=not options.no_peers)
        if options.json is not None:
            options.json.write_text(json.dumps(result, indent=2) + "\n", "utf-8")


def bulk_import(count: int) -> dict[str, Any]:
    """Import a file of memories into an empty bank, with vectors: rate and cores used."""
    print_line(f"== bulk import of {count} memories, vectors included")
    with tempfile.TemporaryDirectory(prefix="recalld-bench-") as directory:
        figures: dict[str, Any] = anyio.run(_import, Path(directory), texts(count))
    print_figures("bulk import", figures)
    return figures


async def _import(directory: Path, some: Sequence[str]) -> dict[str, Any]:
    file = directory / "memories.jsonl"
    async with open_engine(directory / "from", ranking=HybridRanking) as engine:
        for at in range(0, len(some), PUT_BATCH):
            new = [NewMemory(text=text) for text in some[at : at + PUT_BATCH]]
            await engine.put_many(BANK, new)
        await engine.export(BANK, file)
    async with open_engine(directory / "to", ranking=HybridRanking) as engine:
        began, cpu = time.perf_counter(), time.process_time()
        progress = Progress()
        await engine.import_file(BANK, file, progress=partial(progress.report, "stored"))
        await engine.settle(BANK, watch=progress)
        seconds = time.perf_counter() - began
        return {
            "memories": len(some),
            "seconds": round(seconds, 1),
            "per_second": round(len(some) / seconds, 1),
            "cores_used": round((time.process_time() - cpu) / seconds, 2),
        }


def measure(size: int, queries: int, *, peers: bool) -> dict[str, Any]:
    print_line(f"== {size} memories")
    import numpy as np

    every = texts(size + queries)
    stored, asked = every[:size], [" ".join(text.split()[:8]) for text in every[size:]]
    embedder: Embedder = SyntheticEmbedder() if size >= SYNTHETIC_FROM else choose_embedder()
    embedding: dict[str, Any] = {"model": str(embedder.identity)}
    if size < SYNTHETIC_FROM:
        vectors, embedding["texts_per_second"] = cached_vectors(embedder, stored)
        embedder = CachedEmbedder(embedder, {text: at for at, text in enumerate(stored)}, vectors)
    with tempfile.TemporaryDirectory(prefix="recalld-bench-") as directory:
        work = Path(directory)
        ours: dict[str, Any] = {"embedding": embedding}
        ours |= anyio.run(fill, work / "data", stored, embedder)
        ours |= cold_start(
            work / "data", asked[0], "model" if size < SYNTHETIC_FROM else "synthetic"
        )
        ours |= anyio.run(search, work / "data", asked, embedder)
        ours["disk_mb"] = disk_mb(work / "data")
        ours |= anyio.run(put_rates, work / "puts", every[:2_000])
        ours[f"puts_if_a_sync_takes_{SLOW_MS}_ms_more"] = puts_on_a_slower_disk(work / "slow")
        found: dict[str, Any] = {"recalld": ours}
        print_figures("recalld", ours)
        if peers:
            given = work / "given"
            given.mkdir()
            rows = np.concatenate(
                [embedder.embed(stored[at : at + 4096]) for at in range(0, size, 4096)]
            )
            questions = embedder.embed(asked)
            np.save(given / "vectors.npy", rows.astype(np.float32))
            np.save(given / "query_vectors.npy", questions)
            np.save(given / "exact.npy", exact(rows, questions))
            (given / "texts.json").write_text(json.dumps({"stored": stored, "asked": asked}))
            del rows
            for name in PEERS:
                found[name] = peer(name, given, work / f"peer-{name}")
                print_figures(name, found[name])
    return found


async def fill(directory: Path, stored: Sequence[str], embedder: Embedder) -> dict[str, Any]:
    async with open_engine(
        directory, ranking=lambda group: HybridRanking(group, embedder)
    ) as engine:
        started = time.perf_counter()
        for at in range(0, len(stored), PUT_BATCH):
            batch = stored[at : at + PUT_BATCH]
            new = [NewMemory(text=t, session=f"s{(at + n) // 40}") for n, t in enumerate(batch)]
            await engine.put_many(BANK, new)
            if at % (PUT_BATCH * 25) == 0:
                print_line(f"  stored {at + len(batch)}/{len(stored)}")
        put_seconds = time.perf_counter() - started
        print_line("  computing vectors and index")
        started = time.perf_counter()
        await engine.settle(BANK, watch=Progress())
        return {
            "bulk_puts_per_second": round(len(stored) / put_seconds, 1),
            "index_seconds": round(time.perf_counter() - started, 1),
        }


async def search(directory: Path, asked: Sequence[str], embedder: Embedder) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    async with open_engine(
        directory, ranking=lambda group: HybridRanking(group, embedder)
    ) as engine:
        await engine.search(Query(bank=BANK, text=asked[0]))
        await engine.settle(BANK)
        figures["embed_query"] = percentiles(await timed_embedding(embedder, asked))
        for mode in MODES:
            print_line(f"  searching, {mode}")
            for text in asked[:20]:
                await engine.search(Query(bank=BANK, text=text, mode=mode))
            seconds: list[float] = []
            for text in asked:
                began = time.perf_counter()
                await engine.search(Query(bank=BANK, text=text, mode=mode))
                seconds.append(time.perf_counter() - began)
            figures[mode] = percentiles(seconds)
        seconds = []
        for text in asked:
            await engine.search(
                Query(bank=BANK, text=text, mode="semantic")
            )  # caches the query vector
            began = time.perf_counter()
            await engine.search(Query(bank=BANK, text=text))
            seconds.append(time.perf_counter() - began)
        figures["hybrid_vector_known"] = percentiles(seconds)  # the other stores get the vector too
        figures["recall_at_10"] = await recall_against_exact(engine, asked, embedder)
        return figures


async def timed_embedding(embedder: Embedder, asked: Sequence[str]) -> list[float]:
    seconds: list[float] = []
    for text in asked:
        began = time.perf_counter()
        embedder.embed([text])
        seconds.append(time.perf_counter() - began)
    return seconds


async def recall_against_exact(
    engine: EmbeddedEngine, asked: Sequence[str], embedder: Embedder
) -> float:
    """Share of the ten nearest memories that are among the first ten of semantic search."""
    import numpy as np

    def read(connection: sqlite3.Connection) -> tuple[Any, Any]:
        rows = connection.execute("SELECT item, bytes FROM vectors WHERE bytes NOT NULL").fetchall()
        ids = np.array([item for item, _ in rows])
        return ids, unpack((content for _, content in rows), embedder.identity.dims)

    async with engine._registry.use(BANK) as bank:
        ids, vectors = await bank.database.read(read, seconds=600)
        hits = 0
        for text in asked:
            query = embedder.embed([text])[0]
            nearest = set(ids[np.argpartition(-(vectors @ query), 9)[:10]].tolist())
            found = await engine.search(Query(bank=BANK, text=text, mode="semantic", limit=10))
            given = [hit.item.rowid for hit in found.hits]
            cosines = await bank.database.read(
                lambda connection, q=query, g=given: stored_cosines(connection, q, 1, g)  # type: ignore[misc]
            )
            worst = min(float(vectors[ids == item][0] @ query) for item in nearest)
            hits += sum(item in nearest or cosines.get(item, 0.0) >= worst for item in given)
    return round(hits / (10 * len(asked)), 4)


def cold_start(directory: Path, text: str, embedder: str) -> dict[str, Any]:
    """Cold start and memory, in a new process."""
    module = "scripts.benches.support.cold_start"
    command = [sys.executable, "-m", module, str(directory), text, embedder]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def exact(rows: Any, questions: Any) -> Any:
    import numpy as np

    return np.stack([np.argsort(-(rows @ question))[:10] for question in questions])


def peer(name: str, given: Path, work: Path) -> dict[str, Any]:
    """Measure another store in its own process and environment; "skipped" if not installable."""
    python = CACHE / "bench-peers" / name / "bin" / "python"
    packages = {"sqlite-vec": ["sqlite-vec", "apsw"]}.get(name, [name])
    if not python.exists():
        print_line(f"  installing {name}")
        subprocess.run([sys.executable, "-m", "venv", str(python.parent.parent)], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "numpy", *packages]
        done = subprocess.run(install, capture_output=True, text=True, check=False)
        if done.returncode:
            python.unlink()
            return {"skipped": "could not be installed"}
    print_line(f"  running {name}")
    work.mkdir()
    script = Path(__file__).parent / "support" / "vector_stores.py"
    command = [str(python), str(script), name, str(given), str(work)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=3600)
    if done.returncode:
        return {"skipped": (done.stderr.strip().splitlines() or ["failed"])[-1][:200]}
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    figures["disk_mb"] = disk_mb(work)
    return figures


if __name__ == "__main__":
    main()

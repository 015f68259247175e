"""Speed of the engine beside what people would pick instead: latency, writes, recall, memory, disk.

    scripts/bench.py engine --sizes 10000,100000 --json OUT

First a bulk import with real vectors (`--bulk N`; all of 100,000 takes about three minutes). Then,
for each size: that many short memories in one bank with real vectors, searched in every mode, the
query's embedding included; ANN recall against exact; opening cold; durable puts, alone and from 64
callers, beside a bare SQLite commit. Then the same texts, vectors and queries in sqlite-vec + FTS5,
chromadb and lancedb, each in a process of its own (`--no-peers` leaves them out; they are
installed once into .cache/bench-peers, and one that cannot be is named and left out).

Sizes from 500,000 on use synthetic vectors (clusters on the sphere) instead of the model.
Time on two cores: 10,000 about 1 minute, 100,000 about 6 (embedding is most of it), 1,000,000
about 15. Vectors are kept in .cache/bench-vectors for the next run.
"""

import argparse
import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

import store.embedding.native_libraries  # noqa: F401  (before NumPy)
from scripts.benches.corpus import texts
from store.embedding.embedder import Embedder, Identity, choose_embedder
from store.model import MODES, NewMemory, Query, Stage
from store.sqlite import database
from store.sqlite.engine import EmbeddedEngine, open_engine
from store.sqlite.search.hybrid import HybridRanking
from store.sqlite.vectors.cache import stored_cosines
from store.sqlite.vectors.matrix import unpack

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent.parent
CACHE = ROOT / ".cache"
PEERS = ("sqlite-vec", "chromadb", "lancedb")
BANK = "bench"
SYNTHETIC_FROM = 500_000
PUT_BATCH = 2_000


class Synthetic:
    """Vectors without a model: a text's words choose a cluster, its hash a place in it."""

    def __init__(self, dims: int = 384, clusters: int = 2_000) -> None:
        import numpy as np

        self.identity = Identity(name="synthetic", revision="1", dims=dims)
        self.is_semantic = True
        self._centres = np.random.default_rng(1).normal(size=(clusters, dims)).astype(np.float32)

    def embed(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        import numpy as np

        vectors = np.empty((len(texts), self.identity.dims), dtype=np.float32)
        for row, text in enumerate(texts):
            seed = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
            rng = np.random.default_rng(seed)
            noise = rng.standard_normal(self.identity.dims, dtype=np.float32)
            vectors[row] = self._centres[seed % len(self._centres)] + 0.8 * noise
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors


class Remembering:
    """The model, with the vectors of the stored texts taken from an earlier run's file."""

    def __init__(self, model: Embedder, known: dict[str, int], vectors: Any) -> None:
        self.identity = model.identity
        self.is_semantic = model.is_semantic
        self._model = model
        self._known = known
        self._vectors = vectors

    def embed(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        import numpy as np

        places = [self._known.get(text) for text in texts]
        if any(place is None for place in places):
            return self._model.embed(texts)
        found: NDArray[np.float32] = self._vectors[places].astype(np.float32)
        return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench.py engine", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--sizes", default="10000,100000", help="memories in the bank, by commas")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--bulk", type=int, default=2_000, help="memories of the bulk import")
    options = parser.parse_args()
    result: dict[str, Any] = {"cores": os.cpu_count(), "sizes": {}}
    if options.bulk:
        result["bulk_import"] = bulk_import(options.bulk)
    for size in [int(part) for part in options.sizes.split(",")]:
        result["sizes"][str(size)] = measure(size, options.queries, peers=not options.no_peers)
        if options.json is not None:
            options.json.write_text(json.dumps(result, indent=2) + "\n", "utf-8")


def bulk_import(count: int) -> dict[str, Any]:
    """A file of memories into an empty bank, with their vectors: how fast, on how many cores."""
    say(f"== bulk import of {count} memories, vectors included")
    with tempfile.TemporaryDirectory(prefix="recalld-bench-") as directory:
        figures: dict[str, Any] = anyio.run(_import, Path(directory), texts(count))
    show("bulk import", figures)
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
        tell = Telling()
        await engine.import_file(BANK, file, progress=partial(tell.say, "stored"))
        await engine.settle(BANK, watch=tell)
        seconds = time.perf_counter() - began
        return {
            "memories": len(some),
            "seconds": round(seconds, 1),
            "per_second": round(len(some) / seconds, 1),
            "cores_used": round((time.process_time() - cpu) / seconds, 2),
        }


class Telling:
    """Says how far a long step is, every few seconds."""

    def __init__(self) -> None:
        self._said_at = self._began = time.perf_counter()

    def __call__(self, stage: Stage) -> None:
        self.say(stage.phase, stage.done, stage.total)

    def say(self, phase: str, done: int, total: int) -> None:
        now = time.perf_counter()
        if now - self._said_at > 3 or done >= total:
            self._said_at = now
            say(f"  {phase} {done}/{total}, {now - self._began:.0f} s")


def measure(size: int, queries: int, *, peers: bool) -> dict[str, Any]:
    say(f"== {size} memories")
    import numpy as np

    every = texts(size + queries)
    stored, asked = every[:size], [" ".join(text.split()[:8]) for text in every[size:]]
    embedder: Embedder = Synthetic() if size >= SYNTHETIC_FROM else choose_embedder()
    embedding: dict[str, Any] = {"model": str(embedder.identity)}
    if size < SYNTHETIC_FROM:
        vectors, embedding["texts_per_second"] = remembered(embedder, stored)
        embedder = Remembering(embedder, {text: at for at, text in enumerate(stored)}, vectors)
    with tempfile.TemporaryDirectory(prefix="recalld-bench-") as directory:
        work = Path(directory)
        ours: dict[str, Any] = {"embedding": embedding}
        ours |= anyio.run(fill, work / "data", stored, embedder)
        ours |= fresh(work / "data", asked[0], "model" if size < SYNTHETIC_FROM else "synthetic")
        ours |= anyio.run(search, work / "data", asked, embedder)
        ours["disk_mb"] = disk_mb(work / "data")
        ours |= anyio.run(put_rates, work / "puts", every[:2_000])
        ours[f"puts_if_a_sync_takes_{SLOW_MS}_ms_more"] = puts_on_a_slower_disk(work / "slow")
        found: dict[str, Any] = {"recalld": ours}
        show("recalld", ours)
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
                show(name, found[name])
    return found


def remembered(embedder: Embedder, stored: Sequence[str]) -> tuple[Any, float | None]:
    """The vectors of the texts, made now or in an earlier run, and how fast they were made."""
    import numpy as np

    digest = hashlib.sha256("\n".join([str(embedder.identity), *stored]).encode()).hexdigest()
    path = CACHE / "bench-vectors" / f"{digest[:16]}.npy"
    if path.exists():
        return np.load(path), None
    say(f"  embedding {len(stored)} texts (kept for later runs)")
    started = time.perf_counter()
    parts: list[Any] = []
    for at in range(0, len(stored), 2_000):
        parts.append(embedder.embed(stored[at : at + 2_000]).astype(np.float16))
        done = min(len(stored), at + 2_000)
        say(f"  {done}/{len(stored)}, {done / (time.perf_counter() - started):.0f} a second")
    rate = len(stored) / (time.perf_counter() - started)
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, np.concatenate(parts))
    return np.concatenate(parts), round(rate, 1)


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
                say(f"  stored {at + len(batch)}/{len(stored)}")
        put_seconds = time.perf_counter() - started
        say("  making vectors and graph")
        started = time.perf_counter()
        await engine.settle(BANK, watch=Telling())
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
            say(f"  searching, {mode}")
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
            await engine.search(Query(bank=BANK, text=text, mode="semantic"))  # its vector is kept
            began = time.perf_counter()
            await engine.search(Query(bank=BANK, text=text))
            seconds.append(time.perf_counter() - began)
        figures["hybrid_vector_known"] = percentiles(seconds)  # what the peers are given
        figures["recall_at_10"] = await recall_against_exact(engine, asked, embedder)
        return figures


FRESH = """
import json, sys, time
started = time.perf_counter()
from pathlib import Path
import anyio
from store.embedded import open_engine
from store.model import Query
from store.ranking import HybridRanking

def rss():
    return int(Path("/proc/self/statm").read_text().split()[1]) / 256

async def main(directory, text, embedder):
    async with open_engine(
        Path(directory), ranking=lambda group: HybridRanking(group, embedder)
    ) as engine:
        await engine.search(Query(bank="bench", text=text, mode="keyword"))
        figures = {
            "cold_keyword_ms": round((time.perf_counter() - started) * 1000, 1),
            "rss_without_meaning_mb": round(rss(), 1),
        }
        found = await engine.search(Query(bank="bench", text=text))
        figures["cold_hybrid_ms"] = round((time.perf_counter() - started) * 1000, 1)
        figures["cold_hybrid_degraded"] = list(found.degraded)
        await engine.settle("bench")
        figures["settled_ms"] = round((time.perf_counter() - started) * 1000, 1)
        for _ in range(20):
            await engine.search(Query(bank="bench", text=text))
        figures["rss_with_model_mb"] = round(rss(), 1)
        print(json.dumps(figures))

embedder = None
if sys.argv[3] == "synthetic":
    from scripts.benches.engine import Synthetic
    embedder = Synthetic()
anyio.run(main, sys.argv[1], sys.argv[2], embedder)
"""


def fresh(directory: Path, text: str, embedder: str) -> dict[str, Any]:
    """Opening cold and memory, in a process that has done nothing else."""
    command = [sys.executable, "-c", FRESH, str(directory), text, embedder]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    figures: dict[str, Any] = json.loads(done.stdout)
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
    """The share of the ten truly nearest that semantic search gives among its first ten."""
    import numpy as np

    def read(connection: sqlite3.Connection) -> tuple[Any, Any]:
        rows = connection.execute("SELECT item, bytes FROM vectors WHERE bytes NOT NULL").fetchall()
        ids = np.array([item for item, _ in rows])
        return ids, unpack((content for _, content in rows), embedder.identity.dims)

    async with engine._banks.use(BANK) as bank:
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


async def put_rates(directory: Path, some: Sequence[str]) -> dict[str, Any]:
    """Durable puts without embedding: one caller, 64 callers, and SQLite alone as the yardstick."""
    bare = bare_commits(directory.with_name("bare"), some[:300])
    async with open_engine(directory, ranking=HybridRanking) as engine:
        await engine.put(BANK, NewMemory(text="warm"))
        seconds: list[float] = []
        for text in some[:300]:
            began = time.perf_counter()
            await engine.put(BANK, NewMemory(text=text))
            seconds.append(time.perf_counter() - began)
        together = await many_callers(engine, [f"{text} again" for text in some])
        grouped, database.GROUP_LIMIT = database.GROUP_LIMIT, 1  # type: ignore[misc]  # Final, but here
        try:
            apart = await many_callers(engine, [f"{text} once more" for text in some[:500]])
        finally:
            database.GROUP_LIMIT = grouped  # type: ignore[misc]  # as above
    return {
        "put_one_caller": percentiles(seconds),
        "put_64_callers_per_second": together,
        "put_64_callers_a_commit_each_per_second": apart,
        "bare_commit": percentiles(bare),
        "bare_commits_per_second": round(len(bare) / sum(bare), 1),
    }


SLOW_MS = 3
SLOW_SYNC = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>
int fdatasync(int fd) {
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    usleep(%d);
    return real(fd);
}
"""


def puts_on_a_slower_disk(work: Path) -> dict[str, Any]:
    """The same rates where a sync takes some milliseconds, as on most disks people have."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return {"skipped": "no C compiler"}
    work.mkdir()
    source, shim = work / "slow.c", work / "slow.so"
    source.write_text(SLOW_SYNC % (SLOW_MS * 1000), "utf-8")
    built = [compiler, "-shared", "-fPIC", "-o", str(shim), str(source), "-ldl"]
    subprocess.run(built, check=True)
    run = "import sys; from scripts.benches.engine import say_put_rates as say; say(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", run, str(work / "puts")],
        env={**os.environ, "LD_PRELOAD": str(shim)},
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def say_put_rates(directory: str) -> None:
    print(json.dumps(anyio.run(put_rates, Path(directory), texts(2_000))))


async def many_callers(engine: EmbeddedEngine, some: Sequence[str], callers: int = 64) -> float:
    """Puts a second when so many wait for theirs at the same time."""
    began = time.perf_counter()

    async def caller(number: int) -> None:
        for text in some[number::callers]:
            await engine.put(BANK, NewMemory(text=text))

    async with anyio.create_task_group() as group:
        for number in range(callers):
            group.start_soon(caller, number)
    return round(len(some) / (time.perf_counter() - began), 1)


def bare_commits(path: Path, some: Sequence[str]) -> list[float]:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE items (id INTEGER PRIMARY KEY, text TEXT)")
    seconds: list[float] = []
    for text in some:
        began = time.perf_counter()
        connection.execute("INSERT INTO items (text) VALUES (?)", (text,))
        seconds.append(time.perf_counter() - began)
    connection.close()
    return seconds


# --- peers ------------------------------------------------------------------------------------


def exact(rows: Any, questions: Any) -> Any:
    import numpy as np

    return np.stack([np.argsort(-(rows @ question))[:10] for question in questions])


def peer(name: str, given: Path, work: Path) -> dict[str, Any]:
    """One peer in a process and an environment of its own; why not, when it cannot be had."""
    python = CACHE / "bench-peers" / name / "bin" / "python"
    packages = {"sqlite-vec": ["sqlite-vec", "apsw"]}.get(name, [name])
    if not python.exists():
        say(f"  installing {name}")
        subprocess.run([sys.executable, "-m", "venv", str(python.parent.parent)], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "numpy", *packages]
        done = subprocess.run(install, capture_output=True, text=True, check=False)
        if done.returncode:
            python.unlink()
            return {"skipped": "could not be installed"}
    say(f"  running {name}")
    work.mkdir()
    script = Path(__file__).with_name("peers.py")
    command = [str(python), str(script), name, str(given), str(work)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=3600)
    if done.returncode:
        return {"skipped": (done.stderr.strip().splitlines() or ["failed"])[-1][:200]}
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    figures["disk_mb"] = disk_mb(work)
    return figures


# --- figures ----------------------------------------------------------------------------------


def percentiles(seconds: Sequence[float]) -> dict[str, float]:
    ordered = sorted(seconds)

    def at(share: float) -> float:
        return ms(ordered[min(len(ordered) - 1, int(share * len(ordered)))])

    return {"p50_ms": at(0.5), "p90_ms": at(0.9), "p99_ms": at(0.99)}


def ms(seconds: float) -> float:
    return round(seconds * 1000, 3)


def disk_mb(directory: Path) -> float:
    total = sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
    return round(total / 2**20, 1)


def show(name: str, figures: dict[str, Any]) -> None:
    say(f"{name}:")
    for key, value in figures.items():
        say(f"  {key:28} {value}")


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()

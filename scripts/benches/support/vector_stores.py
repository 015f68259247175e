"""The same measurements for other vector stores: sqlite-vec, chromadb and lancedb.

`engine.py` runs this file in an environment that has the store installed; it imports nothing of
recalld. It prints one JSON object: rows inserted per second until searchable, latency of vector and
hybrid search, recall at 10, durable single puts per second, memory. "Hybrid" is the store's own
hybrid search, or else reciprocal rank fusion of both lists; a store without keyword search has
none.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

# A file run by its path has its folder first on sys.path, where our modules could shadow others.
sys.path = [place for place in sys.path if Path(place).resolve() != Path(__file__).parent.resolve()]

import numpy as np  # noqa: E402  (needs the path above)

PUTS = 100


def main() -> None:
    name, given, work = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    texts = json.loads((given / "texts.json").read_text("utf-8"))
    vectors = np.load(given / "vectors.npy")
    queries = np.load(given / "query_vectors.npy")
    exact = np.load(given / "exact.npy")
    run = {"sqlite-vec": sqlite_vec, "chromadb": chromadb, "lancedb": lancedb}[name]
    print(json.dumps(run(work, texts["stored"], vectors, texts["asked"], queries, exact)))


def sqlite_vec(
    work: Path, stored: Sequence[str], vectors: Any, asked: Sequence[str], queries: Any, exact: Any
) -> dict[str, Any]:
    apsw: Any = import_module("apsw")
    extension: Any = import_module("sqlite_vec")

    db = apsw.Connection(str(work / "peer.db"))
    db.enable_load_extension(True)
    db.load_extension(extension.loadable_path())
    db.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")
    dims = vectors.shape[1]
    db.execute(f"CREATE VIRTUAL TABLE v USING vec0(e float[{dims}] distance_metric=cosine)")
    db.execute("CREATE VIRTUAL TABLE t USING fts5(text, tokenize='porter unicode61')")

    def insert(start: int, end: int) -> None:
        with db:
            rows = [(at + 1, vectors[at].tobytes()) for at in range(start, end)]
            db.executemany("INSERT INTO v(rowid, e) VALUES (?, ?)", rows)
            db.executemany(
                "INSERT INTO t(rowid, text) VALUES (?, ?)",
                [(at + 1, stored[at]) for at in range(start, end)],
            )

    def nearest(query: Any, count: int) -> list[int]:
        rows = db.execute(
            "SELECT rowid FROM v WHERE e MATCH ? ORDER BY distance LIMIT ?",
            (query.tobytes(), count),
        )
        return [row[0] - 1 for row in rows]

    def words(text: str, count: int) -> list[int]:
        terms = " OR ".join('"' + w.replace('"', "") + '"' for w in text.split() if w.isalnum())
        if not terms:
            return []
        rows = db.execute(
            "SELECT rowid FROM t WHERE t MATCH ? ORDER BY bm25(t) LIMIT ?", (terms, count)
        )
        return [row[0] - 1 for row in rows]

    count = len(stored)
    seconds = sum(timed(partial(insert, at, min(count, at + 2000))) for at in range(0, count, 2000))
    figures = measured(asked, queries, exact, nearest, words)

    def put(at: int) -> None:
        with db:
            db.execute("INSERT INTO v(e) VALUES (?)", (vectors[at].tobytes(),))
            db.execute("INSERT INTO t(text) VALUES (?)", (stored[at],))

    return figures | {
        "bulk_rows_per_second": round(count / seconds, 1),
        "durable_puts_per_second": rate(put),
        "durability": "synchronous=FULL",
        "rss_mb": rss_mb(),
    }


def chromadb(
    work: Path, stored: Sequence[str], vectors: Any, asked: Sequence[str], queries: Any, exact: Any
) -> dict[str, Any]:
    library: Any = import_module("chromadb")
    settings: Any = import_module("chromadb.config").Settings(anonymized_telemetry=False)

    client = library.PersistentClient(str(work), settings=settings)
    table = client.create_collection("memories", metadata={"hnsw:space": "cosine"})

    def insert(start: int, end: int) -> None:
        table.add(
            ids=[str(at) for at in range(start, end)],
            embeddings=vectors[start:end].tolist(),
            documents=list(stored[start:end]),
        )

    def nearest(query: Any, count: int) -> list[int]:
        found = table.query(query_embeddings=[query.tolist()], n_results=count, include=[])
        return [int(id) for id in found["ids"][0]]

    count = len(stored)
    seconds = sum(timed(partial(insert, at, min(count, at + 2000))) for at in range(0, count, 2000))
    figures = measured(asked, queries, exact, nearest, None)

    def put(at: int) -> None:
        table.add(ids=[f"p{at}"], embeddings=[vectors[at].tolist()], documents=[stored[at]])

    return figures | {
        "bulk_rows_per_second": round(count / seconds, 1),
        "durable_puts_per_second": rate(put),
        "durability": "its own (cannot be set to FULL)",
        "rss_mb": rss_mb(),
    }


def lancedb(
    work: Path, stored: Sequence[str], vectors: Any, asked: Sequence[str], queries: Any, exact: Any
) -> dict[str, Any]:
    library: Any = import_module("lancedb")
    pa: Any = import_module("pyarrow")

    db = library.connect(str(work))
    count, dims = vectors.shape
    started = time.perf_counter()
    flat = pa.array(np.ascontiguousarray(vectors).reshape(-1))
    rows = pa.table(
        {
            "id": pa.array(range(count)),
            "text": pa.array(list(stored)),
            "vector": pa.FixedSizeListArray.from_arrays(flat, dims),
        }
    )
    table = db.create_table("t", rows)
    if count >= 5_000:
        table.create_index(metric="cosine", vector_column_name="vector")
    table.create_fts_index("text", replace=True)
    seconds = time.perf_counter() - started

    def nearest(query: Any, wanted: int) -> list[int]:
        search = table.search(query).distance_type("cosine").limit(wanted).select(["id"])
        return [row["id"] for row in search.nprobes(40).refine_factor(5).to_list()]

    def words(text: str, wanted: int) -> list[int]:
        search = table.search(text, query_type="fts").limit(wanted).select(["id"])
        return [row["id"] for row in search.to_list()]

    figures = measured(asked, queries, exact, nearest, words)

    def put(at: int) -> None:
        table.add([{"id": count + at, "text": stored[at], "vector": vectors[at]}])

    return figures | {
        "bulk_rows_per_second": round(count / seconds, 1),
        "durable_puts_per_second": rate(put),
        "durability": "its own (cannot be set to FULL)",
        "rss_mb": rss_mb(),
    }


def measured(
    asked: Sequence[str],
    queries: Any,
    exact: Any,
    nearest: Callable[[Any, int], list[int]],
    words: Callable[[str, int], list[int]] | None,
) -> dict[str, Any]:
    """Latency of both searches without embedding, and recall of the vector search."""
    nearest(queries[0], 10)
    found: list[list[int]] = []
    seconds = [timed(partial(_collect, found, nearest, query)) for query in queries]
    hits = sum(len(set(one) & set(best.tolist())) for one, best in zip(found, exact, strict=True))
    figures: dict[str, Any] = {
        "vector": percentiles(seconds),
        "recall_at_10": round(hits / exact.size, 4),
        "hybrid": None,
    }
    if words is not None:
        words(asked[0], 50)
        both = [
            timed(partial(_hybrid, words, nearest, text, query))
            for text, query in zip(asked, queries, strict=True)
        ]
        figures["hybrid"] = percentiles(both)
    return figures


def _collect(found: list[list[int]], nearest: Callable[[Any, int], list[int]], query: Any) -> None:
    found.append(nearest(query, 10))


def _hybrid(
    words: Callable[[str, int], list[int]],
    nearest: Callable[[Any, int], list[int]],
    text: str,
    query: Any,
) -> list[int]:
    return fused(words(text, 50), nearest(query, 50))


def fused(one: Sequence[int], other: Sequence[int]) -> list[int]:
    scores: dict[int, float] = {}
    for ranking in (one, other):
        for at, id in enumerate(ranking):
            scores[id] = scores.get(id, 0.0) + 1.0 / (60 + at)
    return sorted(scores, key=lambda id: -scores[id])[:10]


def timed(act: Callable[[], Any]) -> float:
    started = time.perf_counter()
    act()
    return time.perf_counter() - started


def rate(put: Callable[[int], None]) -> float:
    return round(PUTS / sum(timed(partial(put, at)) for at in range(PUTS)), 1)


def percentiles(seconds: Sequence[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    return {
        f"p{share}_ms": round(ordered[min(len(ordered) - 1, len(ordered) * share // 100)] * 1e3, 3)
        for share in (50, 90, 99)
    }


def rss_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1)


if __name__ == "__main__":
    main()

"""Time to the first results, and memory, of a process that just started.

python -m scripts.benches.support.cold_start DIRECTORY QUERY model|synthetic
"""

# ruff: noqa: E402  (the clock starts before the imports, which are part of a cold start)
from __future__ import annotations

import time

STARTED = time.perf_counter()

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from store.model import Query
from store.search.hybrid import HybridRanking
from store.sqlite.engine import open_engine

if TYPE_CHECKING:
    from store.embedding.embedder import Embedder


def _resident_mb() -> float:
    return round(int(Path("/proc/self/statm").read_text().split()[1]) / 256, 1)


def _milliseconds() -> float:
    return round((time.perf_counter() - STARTED) * 1000, 1)


async def measure(directory: Path, text: str, embedder: Embedder | None) -> dict[str, Any]:
    async with open_engine(
        directory, ranking=lambda group: HybridRanking(group, embedder)
    ) as engine:
        await engine.search(Query(bank="bench", text=text, mode="keyword"))
        figures: dict[str, Any] = {
            "cold_keyword_ms": _milliseconds(),
            "rss_without_meaning_mb": _resident_mb(),
        }
        found = await engine.search(Query(bank="bench", text=text))
        figures["cold_hybrid_ms"] = _milliseconds()
        figures["cold_hybrid_degraded"] = list(found.degraded)
        await engine.settle("bench")
        figures["settled_ms"] = _milliseconds()
        for _ in range(20):
            await engine.search(Query(bank="bench", text=text))
        figures["rss_with_model_mb"] = _resident_mb()
        return figures


def main() -> None:
    directory, text, kind = sys.argv[1:]
    embedder: Embedder | None = None
    if kind == "synthetic":
        from scripts.benches.support.embedders import SyntheticEmbedder

        embedder = SyntheticEmbedder()
    print(json.dumps(anyio.run(measure, Path(directory), text, embedder)))


if __name__ == "__main__":
    main()

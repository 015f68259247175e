"""Times the engine of one checkout and prints the figures as JSON; started by `compare.py`.

It must run with the modules of earlier versions too, so it tries their import paths.
"""

import json
import random
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import anyio

MEMORIES = 5_000
WORDS = [
    f"{first}{second}" for first in "bcdfghklmnprst" for second in ("ana", "elo", "iru", "oka")
]


def imported(*places: str) -> Any:
    """The first of these `module:name` places that exists."""
    for place in places:
        module, name = place.split(":")
        try:
            return getattr(import_module(module), name)
        except (ImportError, AttributeError):
            continue
    raise SystemExit(f"none of {places} can be imported")


async def median_of(times: int, call: Callable[[int], Awaitable[object]]) -> float:
    taken: list[float] = []
    for number in range(times):
        began = time.perf_counter()
        await call(number)
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


async def measure(directory: Path) -> dict[str, float]:
    open_engine = imported("store.sqlite.engine:open_engine", "store.embedded:open_engine")
    hybrid = imported("store.search.hybrid:HybridRanking", "store.ranking:HybridRanking")
    hashed = imported(
        "store.embedding.hashed:HashedFeatures",
        "store.embedding.embedder:HashedFeatures",
        "store.embedding:HashedFeatures",
    )
    model = import_module("store.model")
    chance = random.Random(7)

    def text() -> str:
        return " ".join(chance.choice(WORDS) for _ in range(24))

    found: dict[str, float] = {}
    embedder = hashed()
    async with open_engine(directory, ranking=lambda group: hybrid(group, embedder)) as engine:
        began = time.perf_counter()
        await engine.put_many("b", [model.NewMemory(text=text()) for _ in range(MEMORIES)])
        found["put_many/s"] = MEMORIES / (time.perf_counter() - began)
        await engine.search(model.Query(bank="b", text="a first question"))
        await engine.settle("b")

        found["put p50"] = await median_of(
            300, lambda _: engine.put("b", model.NewMemory(text=text()))
        )

        async def caller(count: int) -> None:
            for _ in range(count):
                await engine.put("b", model.NewMemory(text=text()))

        began = time.perf_counter()
        async with anyio.create_task_group() as group:
            for _ in range(64):
                group.start_soon(caller, 20)
        found["64 callers put/s"] = 64 * 20 / (time.perf_counter() - began)
        await engine.settle("b")

        ids = [item.id for item in (await engine.recent("b", limit=200)).items]
        for mode in ("hybrid", "keyword", "semantic"):

            async def search(_: int, mode: str = mode) -> object:
                question = " ".join(text().split()[:5])
                return await engine.search(
                    model.Query(bank="b", text=question, mode=mode, limit=10)
                )

            found[f"{mode} search p50"] = await median_of(200, search)
        found["get p50"] = await median_of(200, lambda n: engine.get("b", ids[n % len(ids)]))
        found["get_many of 200 p50"] = await median_of(30, lambda _: engine.get_many("b", ids))
        found["recent 20 p50"] = await median_of(100, lambda _: engine.recent("b", limit=20))
        body = "\n\n".join(text() for _ in range(400))
        found["document of 60 kB p50"] = await median_of(
            8,
            lambda n: engine.upsert_document(
                "b", model.NewDocument(source="s", source_id=str(n), title="t", body=f"{n} {body}")
            ),
        )
    return found


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="recalld-compare-") as directory:
        print(json.dumps(anyio.run(measure, Path(directory))))


if __name__ == "__main__":
    main()

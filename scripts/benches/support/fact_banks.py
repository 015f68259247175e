"""Small banks of facts for the recall bench: calibration by size, and languages."""

import random
import tempfile
import time
from pathlib import Path
from typing import Any

from scripts.benches.support import calibration
from scripts.benches.support.languages import PAIRS
from scripts.benches.support.project_memories import FACTS, QUESTIONS, UNANSWERABLE
from scripts.benches.support.tally import MODES, Tally, show
from store.model import NewMemory, Query
from store.search.hybrid import HybridRanking
from store.sqlite.engine import open_engine

DEPTH = 50


async def small_banks(points: dict[str, list[calibration.Point]]) -> None:
    """The first result of every question in banks of 5 to 40 facts; most have no answer there."""
    with tempfile.TemporaryDirectory(prefix="recalld-recall-") as directory:
        async with open_engine(Path(directory), ranking=HybridRanking) as engine:
            dice = random.Random(11)
            for size in (5, 10, 20, len(FACTS)):
                scored: list[calibration.Point] = []
                for draw in range(1 if size == len(FACTS) else 4):
                    bank = f"{size}-{draw}"
                    chosen = sorted(dice.sample(range(len(FACTS)), size))
                    new = [NewMemory(text=FACTS[at]) for at in chosen]
                    puts = await engine.put_many(bank, new)
                    ids = {at: put.id for at, put in zip(chosen, puts, strict=True)}
                    await engine.settle(bank)
                    for at, text in (*QUESTIONS, *((-1, text) for text in UNANSWERABLE)):
                        found = await engine.search(Query(bank=bank, text=text, limit=1))
                        scored += [(hit.score, hit.item.id == ids.get(at)) for hit in found.hits]
                points[f"{size} facts"] = scored


async def languages() -> dict[str, Any]:
    """A bank with the facts of all languages; every question in the language of its fact."""
    tallies: dict[str, Tally] = {}
    with tempfile.TemporaryDirectory(prefix="recalld-recall-") as directory:
        async with open_engine(Path(directory), ranking=HybridRanking) as engine:
            ids: dict[str, list[str]] = {}
            for language, pairs in PAIRS.items():
                puts = await engine.put_many("b", [NewMemory(text=fact) for fact, _ in pairs])
                ids[language] = [put.id for put in puts]
            await engine.settle("b")
            for mode in MODES:
                for language, pairs in PAIRS.items():
                    tally = tallies.setdefault(f"{language}, {mode}", Tally())
                    for id, (_, text) in zip(ids[language], pairs, strict=True):
                        started = time.perf_counter()
                        query = Query(bank="b", text=text, mode=mode, limit=DEPTH)
                        hits = (await engine.search(query)).hits
                        seconds = time.perf_counter() - started
                        ranks = [rank for rank, hit in enumerate(hits) if hit.item.id == id]
                        tally.add(ranks, 1, seconds)
    show("languages", tallies)
    return {name: tally.row() for name, tally in tallies.items()}

"""Recall benchmark: retrieval quality of the real engine on conversations and documentation.

    scripts/bench.py recall --locomo FILE --json OUT     conversations (LoCoMo's own format or ours)
    scripts/bench.py recall --docs --json OUT            known items among Python's documentation
    scripts/bench.py recall --memories                   facts of a project, other words
    scripts/bench.py recall --locomo FILE --docs         both
    scripts/bench.py recall --locomo FILE --fit          fit the weights of turns, cross-validated

Each conversation is a bank and each turn a memory (date and speaker in its text). Each question is
a query in every mode; its evidence turns are the right answers. `--docs` makes a page of every long
docstring of the standard library and searches for it with its first sentence, which is removed from
the page. Time on two cores: about 1 minute for four conversations, 3 for ten, 2 for the
documentation. Nothing is downloaded, and the data is not stored.
"""

import argparse
import json
import math
import random
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio

from scripts.benches.support.documentation import Page, pages
from scripts.benches.support.fitting import Asked, cross_validate
from scripts.benches.support.project_memories import FACTS, QUESTIONS, UNANSWERABLE
from store.model import Mode, NewDocument, NewMemory, Query
from store.search.hybrid import HybridRanking
from store.sqlite.engine import EmbeddedEngine, open_engine

MODES: tuple[Mode, ...] = ("keyword", "semantic", "hybrid")
DEPTH = 50
SHALLOW = 10
FITTED_DEPTH = 100
EVIDENCE = re.compile(r"D\d+:\d+")
NONSENSE = (
    "asdf qwer zxcv", "blorp fnord xyzzy", "zzzz", "12345 67890 24680", "!!!! ????",
    "florbish the gimble in my wabe", "how do I frobnicate a splunge", "qxj wvk pzt",
    "ggggg hhhhh jjjjj", "skdjfh aksjdfh laksjdhf", "lorem ipsum dolor sit amet",
)  # fmt: skip


@dataclass
class Tally:
    """Sums over questions; `row` returns their means."""

    questions: int = 0
    r5: float = 0.0
    r10: float = 0.0
    mrr: float = 0.0
    ndcg10: float = 0.0
    seconds: list[float] = field(default_factory=list)

    def add(self, ranks: Sequence[int], wanted: int, seconds: float) -> None:
        """Add a question: the ranks (from 0) of the right answers found, of `wanted` in total."""
        self.questions += 1
        self.r5 += sum(rank < 5 for rank in ranks) / wanted
        self.r10 += sum(rank < 10 for rank in ranks) / wanted
        self.mrr += 1.0 / (1 + min(ranks)) if ranks else 0.0
        gain = sum(1.0 / math.log2(rank + 2) for rank in ranks if rank < 10)
        self.ndcg10 += gain / sum(1.0 / math.log2(at + 2) for at in range(min(10, wanted)))
        self.seconds.append(seconds)

    def row(self) -> dict[str, float | int]:
        count = max(1, self.questions)
        times = sorted(self.seconds) or [0.0]
        return {
            "r5": round(self.r5 / count, 4),
            "r10": round(self.r10 / count, 4),
            "mrr": round(self.mrr / count, 4),
            "ndcg10": round(self.ndcg10 / count, 4),
            "questions": self.questions,
            "p50_ms": round(times[len(times) // 2] * 1000, 2),
        }


@dataclass
class Scores:
    """Quality of the calibrated score."""

    sure: int = 0
    sure_right: int = 0
    questions_with_sure: int = 0
    nonsense_highest: float = 0.0

    def row(self) -> dict[str, float | int]:
        return {
            "scored_0.7_or_more": self.sure,
            "of_those_right": round(self.sure_right / max(1, self.sure), 4),
            "questions_with_one": self.questions_with_sure,
            "nonsense_highest": round(self.nonsense_highest, 4),
        }


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench.py recall", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "--locomo", type=Path, help="file of conversations with questions and evidence"
    )
    parser.add_argument(
        "--docs", action="store_true", help="search for known pages of Python's documentation"
    )
    parser.add_argument(
        "--memories", action="store_true", help="search a small project memory of our own"
    )
    parser.add_argument(
        "--fit", action="store_true", help="fit the weights of turns, one conversation left out"
    )
    parser.add_argument("--json", type=Path, help="file for the figures")
    parser.add_argument(
        "--limit", type=int, default=1500, help="maximum number of documentation pages"
    )
    options = parser.parse_args()
    if options.locomo is None and not options.docs and not options.memories:
        parser.error("nothing to measure: give --locomo FILE, --docs or --memories")
    result: dict[str, Any] = {}
    if options.locomo is not None and options.fit:
        result["fit"] = anyio.run(fit, json.loads(options.locomo.read_text("utf-8")))
    elif options.locomo is not None:
        result |= anyio.run(conversations, json.loads(options.locomo.read_text("utf-8")))
    if options.docs:
        result["documentation"] = anyio.run(documentation, options.limit)
    if options.memories:
        result["memories"] = anyio.run(memories)
    if options.json is not None:
        options.json.write_text(json.dumps(result, indent=2) + "\n", "utf-8")


async def conversations(samples: Sequence[dict[str, Any]]) -> dict[str, Any]:
    tallies = {mode: Tally() for mode in MODES}
    shallow = Tally()
    scores = Scores()
    with tempfile.TemporaryDirectory(prefix="recalld-recall-") as directory:
        async with open_engine(Path(directory), ranking=HybridRanking) as engine:
            for number, sample in enumerate(samples, 1):
                bank = f"conversation-{number}"
                started = time.perf_counter()
                turns = list(turns_of(sample["conversation"]))
                ids = await put_turns(engine, bank, turns)
                await settled(engine, bank)
                say(f"{bank}: {len(ids)} turns stored in {time.perf_counter() - started:.1f} s")
                for question, evidence in questions_of(sample["qa"], ids):
                    await ask(engine, bank, question, evidence, tallies, scores)
                    await ask_shallow(engine, bank, question, evidence, shallow)
                await ask_nonsense(engine, bank, scores)
    show("conversations", {**tallies, f"limit {SHALLOW}": shallow})
    say(f"score: {scores.row()}")
    rows: dict[str, Any] = {mode: tallies[mode].row() for mode in MODES}
    return {**rows, f"hybrid_limit_{SHALLOW}": shallow.row(), "score": scores.row()}


async def fit(samples: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Fit the weights of turns from the explained features of the product's candidates."""
    asked: list[Asked] = []
    with tempfile.TemporaryDirectory(prefix="recalld-recall-") as directory:
        async with open_engine(Path(directory), ranking=HybridRanking) as engine:
            for number, sample in enumerate(samples, 1):
                bank = f"conversation-{number}"
                ids = await put_turns(engine, bank, list(turns_of(sample["conversation"])))
                await settled(engine, bank)
                for question, evidence in questions_of(sample["qa"], ids):
                    query = Query(bank=bank, text=question, limit=FITTED_DEPTH, explain=True)
                    found = await engine.search(query)
                    asked.append(
                        Asked(
                            group=number,
                            features=[dict(hit.parts or {}) for hit in found.hits],
                            is_right=[hit.item.id in evidence for hit in found.hits],
                            right=len(evidence),
                        )
                    )
    result = cross_validate(asked)
    say(json.dumps(result, indent=2))
    return result


async def memories() -> dict[str, Any]:
    """A bank of facts, once as loose memories and once as the memories of one session."""
    result: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="recalld-recall-") as directory:
        async with open_engine(Path(directory), ranking=HybridRanking) as engine:
            for session in (None, "editor"):
                bank = session or "loose"
                new = [NewMemory(text=text, session=session) for text in FACTS]
                ids = [put.id for put in await engine.put_many(bank, new)]
                await settled(engine, bank)
                tally = Tally()
                first: list[tuple[float, bool]] = []
                for at, text in QUESTIONS:
                    started = time.perf_counter()
                    found = await engine.search(Query(bank=bank, text=text))
                    seconds = time.perf_counter() - started
                    ranks = [n for n, hit in enumerate(found.hits) if hit.item.id == ids[at]]
                    tally.add(ranks, 1, seconds)
                    first.append((found.hits[0].score, ranks[:1] == [0]))
                unrelated = [
                    (await engine.search(Query(bank=bank, text=text))).hits for text in UNANSWERABLE
                ]
                result[bank] = tally.row() | {
                    "first_right": sum(is_right for _, is_right in first),
                    "first_right_scores": sorted(score for score, right in first if right),
                    "first_wrong_scores": sorted(score for score, right in first if not right),
                    "unrelated_scores": sorted(hits[0].score for hits in unrelated if hits),
                }
                say(f"memories, {bank}: {json.dumps(result[bank])}")
    return result


def turns_of(conversation: dict[str, Any]) -> Iterator[tuple[str, NewMemory]]:
    """The turns in order: their id in the data, and their memory."""
    numbers = sorted(
        int(name.removeprefix("session_"))
        for name, value in conversation.items()
        if re.fullmatch(r"session_\d+", name) and isinstance(value, list)
    )
    for number in numbers:
        date = str(conversation.get(f"session_{number}_date_time", ""))
        for turn in conversation[f"session_{number}"]:
            text = f"[{date}] {turn['speaker']}: {turn['text']}"
            if turn.get("blip_caption"):
                text += f" [image: {turn['blip_caption']}]"
            yield (
                turn["dia_id"],
                NewMemory(
                    text=text,
                    session=f"session-{number}",
                    occurred_at=milliseconds(date),
                    allow_duplicate=True,
                ),
            )


def milliseconds(date: str) -> int | None:
    """`1:56 pm on 8 May, 2023` as unix milliseconds; None for other formats."""
    try:
        parsed = datetime.strptime(date, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
    except ValueError:
        return None
    return int(parsed.timestamp() * 1000)


def questions_of(
    questions: Sequence[dict[str, Any]], ids: dict[str, str]
) -> Iterator[tuple[str, set[str]]]:
    """Questions with existing evidence, and the ids of the memories that contain it."""
    for entry in questions:
        named = EVIDENCE.findall(" ".join(map(str, entry.get("evidence") or ())))
        evidence = {ids[name] for name in named if name in ids}
        if evidence:
            yield entry["question"], evidence


async def put_turns(
    engine: EmbeddedEngine, bank: str, turns: Sequence[tuple[str, NewMemory]]
) -> dict[str, str]:
    puts = await engine.put_many(bank, [memory for _, memory in turns])
    return {name: put.id for (name, _), put in zip(turns, puts, strict=True)}


async def settled(engine: EmbeddedEngine, bank: str) -> None:
    await engine.settle(bank)


async def ask(
    engine: EmbeddedEngine,
    bank: str,
    question: str,
    evidence: set[str],
    tallies: dict[Mode, Tally],
    scores: Scores,
) -> None:
    for mode in MODES:
        started = time.perf_counter()
        found = await engine.search(Query(bank=bank, text=question, mode=mode, limit=DEPTH))
        seconds = time.perf_counter() - started
        ranks = [at for at, hit in enumerate(found.hits) if hit.item.id in evidence]
        tallies[mode].add(ranks, len(evidence), seconds)
        if mode == "hybrid":
            sure = [hit for hit in found.hits[:10] if hit.score >= 0.7]
            scores.sure += len(sure)
            scores.sure_right += sum(hit.item.id in evidence for hit in sure)
            scores.questions_with_sure += bool(sure)


async def ask_shallow(
    engine: EmbeddedEngine, bank: str, question: str, evidence: set[str], tally: Tally
) -> None:
    """The same hybrid search as a caller with a small limit sends it."""
    started = time.perf_counter()
    found = await engine.search(Query(bank=bank, text=question, limit=SHALLOW))
    seconds = time.perf_counter() - started
    ranks = [at for at, hit in enumerate(found.hits) if hit.item.id in evidence]
    tally.add(ranks, len(evidence), seconds)


async def ask_nonsense(engine: EmbeddedEngine, bank: str, scores: Scores) -> None:
    for text in NONSENSE:
        found = await engine.search(Query(bank=bank, text=text))
        highest = max((hit.score for hit in found.hits), default=0.0)
        scores.nonsense_highest = max(scores.nonsense_highest, highest)


async def documentation(limit: int) -> dict[str, Any]:
    tallies = {mode: Tally() for mode in MODES}
    chosen = pages()
    random.Random(7).shuffle(chosen)
    chosen = chosen[:limit]
    with tempfile.TemporaryDirectory(prefix="recalld-recall-") as directory:
        async with open_engine(Path(directory), ranking=HybridRanking) as engine:
            started = time.perf_counter()
            ids: dict[str, Page] = {}
            for page in chosen:
                document = NewDocument(source="python", source_id=page.name, body=page.text)
                ids[(await engine.upsert_document("docs", document)).id] = page
            await settled(engine, "docs")
            say(f"docs: {len(ids)} pages stored in {time.perf_counter() - started:.1f} s")
            for id, page in ids.items():
                for mode in MODES:
                    started = time.perf_counter()
                    query = Query(bank="docs", text=page.summary, mode=mode, limit=DEPTH)
                    found = await engine.search(query)
                    seconds = time.perf_counter() - started
                    order = list(dict.fromkeys(hit.item.document for hit in found.hits))
                    tallies[mode].add([order.index(id)] if id in order else [], 1, seconds)
    show("documentation", tallies)
    return {mode: tallies[mode].row() for mode in MODES} | {"pages": len(ids)}


def show(title: str, tallies: Mapping[Any, Tally]) -> None:
    names = ("R@5", "R@10", "MRR", "nDCG@10", "questions", "p50 ms")
    widths = (7, 7, 7, 8, 10, 7)
    columns = zip(names, widths, strict=True)
    say(f"{title:14} " + " ".join(f"{name:>{width}}" for name, width in columns))
    for mode, tally in tallies.items():
        row = tally.row()
        say(
            f"  {mode:12} {row['r5']:7.4f} {row['r10']:7.4f} {row['mrr']:7.4f}"
            f" {row['ndcg10']:8.4f} {row['questions']:10d} {row['p50_ms']:7.2f}"
        )


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()

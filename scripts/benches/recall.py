"""Recall benchmark: retrieval quality of the real engine on conversations and documentation.

    scripts/bench.py recall --locomo FILE --json OUT     conversations (LoCoMo's own format or ours)
    scripts/bench.py recall --docs --json OUT            known items among Python's documentation
    scripts/bench.py recall --memories                   facts of a project, other words
    scripts/bench.py recall --locomo FILE --docs         both
    scripts/bench.py recall --locomo FILE --fit          fit the weights of turns, cross-validated
    scripts/bench.py recall --locomo FILE --plot OUT     calibration: a table, and a plot as SVG
    scripts/bench.py recall --locomo FILE --compare      the same questions through other programs
    scripts/bench.py recall --languages                  facts and questions in six languages

Each conversation is a bank and each turn a memory (date and speaker in its text). Each question is
a query in every mode; its evidence turns are the right answers. `--docs` makes a page of every long
docstring of the standard library and searches for it with its first sentence, which is removed from
the page. Time on two cores: about 1 minute for four conversations, 3 for ten, 2 for the
documentation. Nothing is downloaded, and the data is not stored.
"""

import argparse
import json
import random
import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio

from scripts.benches import retrieval_peers
from scripts.benches.support import calibration
from scripts.benches.support.documentation import Page, pages
from scripts.benches.support.fact_banks import languages, small_banks
from scripts.benches.support.fitting import Asked, cross_validate
from scripts.benches.support.project_memories import FACTS, QUESTIONS, UNANSWERABLE
from scripts.benches.support.tally import MODES, Tally, say, show
from store.model import Mode, NewDocument, NewMemory, Query
from store.search.hybrid import HybridRanking
from store.sqlite.engine import EmbeddedEngine, open_engine

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
class Scores:
    """Quality of the calibrated score."""

    sure: int = 0
    sure_right: int = 0
    questions_with_sure: int = 0
    points: list[calibration.Point] = field(default_factory=list)
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
    parser.add_argument("--plot", type=Path, help="file for a plot of the calibration (SVG)")
    parser.add_argument(
        "--compare", action="store_true", help="ask other programs the same, where they install"
    )
    parser.add_argument("--languages", action="store_true", help="search facts in six languages")
    options = parser.parse_args()
    wanted = (options.docs, options.memories, options.languages)
    if options.locomo is None and not any(wanted):
        parser.error("nothing to measure: give --locomo FILE, --docs, --memories or --languages")
    result: dict[str, Any] = {}
    points: dict[str, list[calibration.Point]] = {}
    samples = [] if options.locomo is None else json.loads(options.locomo.read_text("utf-8"))
    if samples and options.fit:
        result["fit"] = anyio.run(fit, samples)
    elif samples and options.compare:
        result["compare"] = anyio.run(compare, samples)
    elif samples:
        result |= anyio.run(conversations, samples, points)
    if options.docs:
        result["documentation"] = anyio.run(documentation, options.limit, points)
    if options.memories:
        result["memories"] = anyio.run(memories)
    if options.languages:
        result["languages"] = anyio.run(languages)
    if options.plot is not None:
        anyio.run(small_banks, points)
        result["calibration"] = {
            name: {**calibration.summary(some), "table": calibration.table(some)}
            for name, some in points.items()
        }
        for name, some in points.items():
            say(f"calibration, {name}: {calibration.summary(some)}")
            for row in calibration.table(some):
                say(f"  {row}")
        calibration.plot(points, options.plot)
    if options.json is not None:
        options.json.write_text(json.dumps(result, indent=2) + "\n", "utf-8")


async def conversations(
    samples: Sequence[dict[str, Any]], points: dict[str, list[calibration.Point]]
) -> dict[str, Any]:
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
    points["conversations"] = scores.points
    rows: dict[str, Any] = {mode: tallies[mode].row() for mode in MODES}
    return {**rows, f"hybrid_limit_{SHALLOW}": shallow.row(), "score": scores.row()}


async def compare(samples: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Store every conversation in recalld and in other programs, and ask all of them the same."""
    tallies: dict[str, Tally] = {"recalld": Tally()}
    with tempfile.TemporaryDirectory(prefix="recalld-recall-") as directory:
        async with open_engine(Path(directory), ranking=HybridRanking) as engine:
            for number, sample in enumerate(samples, 1):
                bank = f"conversation-{number}"
                turns = list(turns_of(sample["conversation"]))
                ids = await put_turns(engine, bank, turns)
                await settled(engine, bank)
                places = {id: at for at, id in enumerate(ids.values())}
                texts = [memory.text for _, memory in turns]
                asked = list(questions_of(sample["qa"], ids))
                for question, evidence in asked:
                    await ask_shallow(engine, bank, question, evidence, tallies["recalld"])
                for name, found, seconds in retrieval_peers.answers(
                    texts, [question for question, _ in asked], SHALLOW
                ):
                    tally = tallies.setdefault(name, Tally())
                    for (_, evidence), order in zip(asked, found, strict=True):
                        right = {places[id] for id in evidence}
                        ranks = [rank for rank, place in enumerate(order) if place in right]
                        tally.add(ranks, len(evidence), seconds / max(1, len(asked)))
                say(f"{bank}: {len(asked)} questions")
    show("compare", tallies)
    rows: dict[str, Any] = {name: tally.row() for name, tally in tallies.items()}
    return rows | {"not_installed": retrieval_peers.missing()}


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
            scores.points += [(hit.score, hit.item.id in evidence) for hit in found.hits[:10]]


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


async def documentation(limit: int, points: dict[str, list[calibration.Point]]) -> dict[str, Any]:
    tallies = {mode: Tally() for mode in MODES}
    scored: list[calibration.Point] = []
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
                    if mode == "hybrid":
                        scored += [(h.score, h.item.document == id) for h in found.hits[:10]]
    show("documentation", tallies)
    points["documents"] = scored
    return {mode: tallies[mode].row() for mode in MODES} | {"pages": len(ids)}


if __name__ == "__main__":
    main()

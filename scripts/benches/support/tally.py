"""Sums of retrieval metrics over questions, and their table."""

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from store.model import Mode

MODES: tuple[Mode, ...] = ("keyword", "semantic", "hybrid")


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

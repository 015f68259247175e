"""Percentiles, sizes and progress output of the engine bench."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from store.model import Stage


class Progress:
    """Prints the progress of a long step every few seconds."""

    def __init__(self) -> None:
        self._printed_at = self._began = time.perf_counter()

    def __call__(self, stage: Stage) -> None:
        self.report(stage.phase, stage.done, stage.total)

    def report(self, phase: str, done: int, total: int) -> None:
        now = time.perf_counter()
        if now - self._printed_at > 3 or done >= total:
            self._printed_at = now
            print_line(f"  {phase} {done}/{total}, {now - self._began:.0f} s")


def percentiles(seconds: Sequence[float]) -> dict[str, float]:
    ordered = sorted(seconds)

    def at(share: float) -> float:
        return milliseconds(ordered[min(len(ordered) - 1, int(share * len(ordered)))])

    return {"p50_ms": at(0.5), "p90_ms": at(0.9), "p99_ms": at(0.99)}


def milliseconds(seconds: float) -> float:
    return round(seconds * 1000, 3)


def disk_mb(directory: Path) -> float:
    total = sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
    return round(total / 2**20, 1)


def print_figures(name: str, figures: dict[str, Any]) -> None:
    print_line(f"{name}:")
    for key, value in figures.items():
        print_line(f"  {key:28} {value}")


def print_line(line: str) -> None:
    print(line, file=sys.stderr, flush=True)

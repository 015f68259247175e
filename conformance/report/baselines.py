"""Baselines: the cases that a plain server on a common SDK fails.

An author cannot fix the failures of an SDK. A baseline tells them from the failures of the server's
own code. `scripts/results.py` runs the echo servers of `scripts/peers/` and writes the files in
`sdk_baselines/`. Nothing on the wire names the SDK, so the best baseline is found by its failures:
it matches if at least 70 % of its failed cases that were tried fail on this server too.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources

from conformance.runner import Report

ENOUGH = 0.7
"""The part of a baseline's failures that a server must share."""


@dataclass(frozen=True)
class Baseline:
    """The failed cases of a plain server on one SDK and transport."""

    name: str
    title: str
    version: str
    transport: str
    cases: frozenset[str]


@cache
def baselines() -> tuple[Baseline, ...]:
    """The baselines of this distribution."""
    found = []
    directory = resources.files("conformance.report.sdk_baselines")
    for entry in sorted(directory.iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith(".json"):
            row = json.loads(entry.read_text("utf-8"))
            found.append(
                Baseline(
                    row["name"],
                    f"{row['title']} {row['version']}",
                    row["version"],
                    row["transport"],
                    frozenset(row["failed"]),
                )
            )
    return tuple(found)


def check_name(name: str) -> None:
    """Raise ValueError if there is no baseline of this name."""
    names = sorted({baseline.name for baseline in baselines()})
    if name not in ("auto", "none", *names):
        raise ValueError(f"--sdk: unknown baseline {name!r}; use auto, none, {', '.join(names)}")


def match(report: Report, name: str = "auto") -> Baseline | None:
    """The baseline that explains the most failures of this report, or None."""
    if name == "none":
        return None
    tried = {t.case for t in report.trials if t.status in ("passed", "failed")}
    failed = {trial.case for trial in report.failed()}
    best: tuple[float, Baseline] | None = None
    for baseline in baselines():
        if baseline.transport != report.transport or name not in ("auto", baseline.name):
            continue
        expected = baseline.cases & tried
        if not expected:
            continue
        shared = len(expected & failed) / len(expected)
        alike = len(expected & failed) / len(expected | failed)
        if (shared >= ENOUGH or name != "auto") and (best is None or alike > best[0]):
            best = alike, baseline
    return best[1] if best else None

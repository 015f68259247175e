"""Findings: failed cases grouped by their cause.

One cause often fails many cases: a server that drops invalid frames fails every case that sends
one.
`causes.toml` names the common causes. A failed case that no cause explains is a finding of its own.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from functools import cache
from importlib import resources

from conformance.check import Trial
from conformance.report.known_failures import Verdict
from conformance.requirements import Level, requirements
from conformance.runner import Report

ORDER: dict[Level, int] = {"MUST": 0, "SHOULD": 1, "ours": 2}


@dataclass(frozen=True)
class Cause:
    """One `[[cause]]` table."""

    id: str
    title: str
    cases: frozenset[str]
    match: str
    hint: str = ""

    def explains(self, trial: Trial) -> bool:
        return trial.case in self.cases and re.search(self.match, trial.reason) is not None


@dataclass
class Finding:
    """Failed trials with the same cause."""

    title: str
    hint: str = ""
    trials: list[Trial] = field(default_factory=list)
    sdk: str = ""
    """The SDK whose baseline has the same failures, if there is one."""
    is_known: bool = False

    @property
    def cases(self) -> list[str]:
        return list(dict.fromkeys(trial.case for trial in self.trials))

    @property
    def level(self) -> Level:
        found = [requirements()[trial.case].level_in(trial.revision) for trial in self.trials]
        return min(found, key=lambda level: ORDER[level])


@cache
def causes() -> tuple[Cause, ...]:
    text = resources.files("conformance.report").joinpath("causes.toml").read_text("utf-8")
    return tuple(
        Cause(
            row["id"],
            row["title"],
            frozenset(row["cases"]),
            row.get("match", ""),
            row.get("hint", ""),
        )
        for row in tomllib.loads(text)["cause"]
    )


def findings(report: Report, verdict: Verdict) -> list[Finding]:
    """The findings of a report: the server's own first, then the most severe."""
    grouped: dict[str, Finding] = {}
    for case, trials in report.failed_by_case().items():
        for trial in trials:
            cause = next((cause for cause in causes() if cause.explains(trial)), None)
            known = verdict.reason(trial) is not None
            name = f"{cause.id if cause else case}{' known' if known else ''}"
            if name not in grouped:
                title = cause.title if cause else requirements()[case].text
                grouped[name] = Finding(title, cause.hint if cause else "", is_known=known)
            grouped[name].trials.append(trial)
    baseline = verdict.baseline
    for finding in grouped.values():
        if baseline is not None and all(case in baseline.cases for case in finding.cases):
            finding.sdk = baseline.title
    return sorted(
        grouped.values(),
        key=lambda f: (f.is_known, ORDER[f.level], bool(f.sdk), -len(f.cases)),
    )

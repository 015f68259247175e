"""Known failures: failures that are accepted, each with a reason.

A known failure does not change the exit status. It is reported as such and never counts as passed.
An entry whose case passes is an error, so that the list stays current. A flaky case proves nothing.
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from conformance.check import Trial
from conformance.report.baselines import Baseline
from conformance.requirements import requirements
from conformance.runner import Report


@dataclass(frozen=True)
class Known:
    """One `[[failure]]` table."""

    case: str
    reason: str
    revision: str | None = None
    transport: str | None = None
    sometimes: bool = False
    """Whether the case may pass: the failure depends on timing."""

    def covers(self, trial: Trial, transport: str) -> bool:
        return (
            trial.case == self.case
            and self.revision in (None, trial.revision)
            and self.transport in (None, transport)
        )

    def __str__(self) -> str:
        where = " ".join(part for part in (self.revision, self.transport) if part)
        return f"{self.case}{' in ' + where if where else ''}"


@dataclass
class Verdict:
    """The failures of a report, divided into known and unexplained ones."""

    known: dict[tuple[str, str], str] = field(default_factory=dict)
    unknown: list[Trial] = field(default_factory=list)
    newly_passing: list[Known] = field(default_factory=list)
    baseline: Baseline | None = None
    """The SDK whose failures this server shares."""

    def unexplained(self, level: str) -> list[str]:
        """Ids of the cases that fail unexplained, and whose strictest failure has this level."""
        strictest: dict[str, str] = {}
        for trial in self.unknown:
            found = requirements()[trial.case].level_in(trial.revision)
            order = ("MUST", "SHOULD", "ours")
            strictest[trial.case] = min(found, strictest.get(trial.case, found), key=order.index)
        return sorted(case for case, found in strictest.items() if found == level)

    def reason(self, trial: Trial) -> str | None:
        return self.known.get((trial.case, trial.revision))


def read(path: Path) -> list[Known]:
    """Read the entries of a known-failures file."""
    table = tomllib.loads(path.read_text("utf-8"))
    unknown = set(table) - {"failure"}
    if unknown:
        raise ValueError(f"{path}: unknown key {sorted(unknown)[0]!r}; entries are [[failure]]")
    entries = []
    for row in table.get("failure", []):
        odd = set(row) - {"case", "reason", "revision", "transport", "sometimes"}
        if odd:
            raise ValueError(f"{path}: unknown key {sorted(odd)[0]!r} in a [[failure]]")
        if not isinstance(row.get("case"), str) or not row.get("reason"):
            raise ValueError(f"{path}: every [[failure]] needs a case and a reason")
        where = row.get("revision"), row.get("transport")
        entries.append(Known(row["case"], row["reason"], *where, row.get("sometimes") is True))
    return entries


def judge(report: Report, entries: list[Known], baseline: Baseline | None = None) -> Verdict:
    """Compare the failures of a report with the entries."""
    verdict = Verdict(baseline=baseline)
    for trial in report.failed():
        entry = next((e for e in entries if e.covers(trial, report.transport)), None)
        if entry is None:
            verdict.unknown.append(trial)
        else:
            verdict.known[trial.case, trial.revision] = entry.reason
    for entry in entries:
        tried = [t for t in report.trials if entry.covers(t, report.transport)]
        decided = [t for t in tried if t.status in ("passed", "failed", "flaky")]
        passed = bool(decided) and all(trial.status == "passed" for trial in decided)
        if passed and not entry.sometimes:
            verdict.newly_passing.append(entry)
    return verdict


def as_toml(report: Report) -> str:
    """The failures of a report as a known-failures file; the reasons are a draft."""
    lines = [f"# Failures of {report.server_info}, written by mcp-conform. Edit the reasons."]
    for trial in report.failed():
        reason = trial.reason.encode("ascii", "backslashreplace").decode()[:200]
        lines += [
            "",
            "[[failure]]",
            f'case = "{trial.case}"',
            f'revision = "{trial.revision}"',
            f'transport = "{report.transport}"',
            f"reason = {json.dumps(reason)}",
        ]
    return "\n".join(lines) + "\n"

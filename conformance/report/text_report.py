"""The report as text for a terminal."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from conformance import revisions
from conformance.check import Trial
from conformance.client.frames import show
from conformance.report.known_failures import Verdict
from conformance.requirements import Requirement, group_titles, requirements
from conformance.runner import Report

MARKS = {"passed": "ok", "failed": "FAIL", "not applicable": "n/a"}


@dataclass(frozen=True)
class Paint:
    """Terminal colours, or none."""

    enabled: bool

    def __call__(self, text: str, color: str) -> str:
        codes = {"red": "31", "green": "32", "yellow": "33", "dim": "2", "bold": "1"}
        return f"\x1b[{codes[color]}m{text}\x1b[0m" if self.enabled else text

    def status(self, status: str, text: str | None = None) -> str:
        color = {"passed": "green", "failed": "red"}.get(status, "dim")
        return self(text or MARKS.get(status, status), color)


def listing(row: Requirement) -> str:
    """One line of `--list`."""
    where = "all" if row.revisions == revisions.ALL else ",".join(row.revisions)
    place = "/".join(row.transports)
    return f"{row.id:<6}{row.level:<7}{place:<11} {row.text} [{row.source}; {where}]"


def line(trial: Trial, paint: Paint) -> str:
    """One line of `--verbose`."""
    mark = paint.status(trial.status, f"{MARKS[trial.status]:<4}")
    reason = f"  {show(trial.reason.encode(), 400)}" if trial.reason else ""
    return f"{mark} {trial.case:<5} {trial.revision} {trial.seconds * 1000:6.0f} ms{reason}"


def summary(report: Report) -> str:
    """The last line of the text report."""
    return (
        f"{len(report.cases())} cases, {report.count('passed')} passed, "
        f"{report.count('failed')} failed, {report.count('not applicable')} not applicable"
    )


def as_text(report: Report, verdict: Verdict, paint: Paint) -> str:
    """The whole text report."""
    lines = [paint(f"{report.server_info}  ({report.server})", "bold")]
    for facts in report.facts.values():
        state = "spoken" if facts.speaks else f"not spoken: {show(facts.reason.encode(), 150)}"
        lines.append(f"  {facts.revision}  {state}")
    lines += ["", *_groups(report, paint)]
    rows = requirements()
    failures = report.failed_by_case()
    for case, trials in failures.items():
        lines += ["", *_failure(rows[case], trials, verdict, paint)]
    lines += _reasons(report, paint)
    for entry in verdict.newly_passing:
        note = f"known failure {entry} passes now: remove it from the list"
        lines += ["", paint(note, "red")]
    known = {case for case, _ in verdict.known} - {trial.case for trial in verdict.unknown}
    levels = Counter(rows[case].level for case in failures if case not in known)
    counts = ", ".join(f"{levels[level]} {level}" for level in ("MUST", "SHOULD", "ours"))
    lines += [
        "",
        f"unexplained failures: {counts}; known: {len(known)}; {report.seconds:.1f} s",
    ]
    lines.append(summary(report))
    return "\n".join(lines)


def _groups(report: Report, paint: Paint) -> list[str]:
    titles = group_titles()
    width = max(len(title) for title in titles.values())
    spoken = [facts.revision for facts in report.facts.values() if facts.speaks]
    lines = [" " * (width + 4) + "  ".join(f"{revision:>12}" for revision in spoken)]
    for group, title in titles.items():
        cells = []
        for revision in spoken:
            tally = Counter(
                t.status for t in report.trials if t.case[0] == group and t.revision == revision
            )
            total = tally["passed"] + tally["failed"]
            text = f"{tally['passed']}/{total}" if total else "-"
            status = "failed" if tally["failed"] else "passed" if total else "not applicable"
            cells.append(paint.status(status, f"{text:>12}"))
        if any(trial.case[0] == group for trial in report.trials):
            lines.append(f"  {group} {title:<{width}}" + "  ".join(cells))
    return lines


def _failure(row: Requirement, trials: list[Trial], verdict: Verdict, paint: Paint) -> list[str]:
    where = ", ".join(trial.revision for trial in trials)
    lines = [
        f"{paint('FAIL', 'red')} {paint(row.id, 'bold')} {row.level}  {row.text}",
        f"     source: {row.source}; failed in {where}",
    ]
    shown: set[str] = set()
    for trial in trials:
        reason = verdict.reason(trial)
        if reason is not None and f"known: {reason}" not in shown:
            shown.add(f"known: {reason}")
            lines.append(paint(f"     known: {reason}", "yellow"))
        if trial.reason not in shown:
            shown.add(trial.reason)
            lines.append(f"     {show(trial.reason.encode(), 600)}")
    for exchange in trials[0].evidence[-6:]:
        arrow = "->" if exchange.sent else "<-"
        lines.append(paint(f"       {arrow} {show(exchange.data, 200)}", "dim"))
    return lines


def _reasons(report: Report, paint: Paint) -> list[str]:
    """The reasons why cases did not apply, each with its cases."""
    reasons = report.not_applicable_by_reason()
    if not reasons:
        return []
    lines = ["", paint("not applicable:", "bold")]
    for reason, cases in reasons.items():
        lines.append(f"  {show(reason.encode(), 300)}: {' '.join(cases)}")
    return lines

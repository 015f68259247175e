"""The report as text for a terminal."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from conformance import revisions
from conformance.check import Trial
from conformance.client.frames import show
from conformance.report.findings import Finding, findings
from conformance.report.known_failures import Verdict
from conformance.report.run_options import RunOptions
from conformance.requirements import Requirement, group_titles, requirements
from conformance.runner import Report

MARKS = {
    "passed": "ok",
    "failed": "FAIL",
    "flaky": "flaky",
    "error": "ERROR",
    "not applicable": "n/a",
}


@dataclass(frozen=True)
class Paint:
    """Terminal colours, or none."""

    enabled: bool

    def __call__(self, text: str, color: str) -> str:
        codes = {"red": "31", "green": "32", "yellow": "33", "dim": "2", "bold": "1"}
        return f"\x1b[{codes[color]}m{text}\x1b[0m" if self.enabled else text

    def status(self, status: str, text: str | None = None) -> str:
        color = {"passed": "green", "failed": "red", "flaky": "yellow", "error": "yellow"}.get(
            status, "dim"
        )
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
    flaky, errors = report.count("flaky"), report.count("error")
    odd = f", {flaky} flaky" if flaky else ""
    odd += f", {errors} errors" if errors else ""
    return (
        f"{len(report.cases())} cases, {report.count('passed')} passed, "
        f"{report.count('failed')} failed{odd}, {report.count('not applicable')} not applicable"
    )


def as_text(report: Report, verdict: Verdict, options: RunOptions, paint: Paint) -> str:
    """The whole text report."""
    lines = [paint(f"{report.server_info}  ({report.server})", "bold")]
    lines.append(f"  mcp-conform {options.version}, {options.date}")
    for facts in report.facts.values():
        state = "spoken" if facts.speaks else f"not spoken: {show(facts.reason.encode(), 150)}"
        lines.append(f"  {facts.revision}  {state}")
    lines += [paint(f"  note: {note}", "yellow") for note in report.notes]
    lines += ["", *_groups(report, paint)]
    found = findings(report, verdict)
    for finding in found:
        lines += ["", *_finding(finding, verdict, options, paint)]
    lines += _odd_trials(report, paint)
    lines += _reasons(report, paint)
    for entry in verdict.newly_passing:
        note = f"known failure {entry} passes now: remove it from the list"
        lines += ["", paint(note, "red")]
    if verdict.baseline is not None:
        theirs = sum(bool(finding.sdk) for finding in found)
        lines += [
            "",
            f"{theirs} findings are known of {verdict.baseline.title}, "
            f"{len(found) - theirs} are the server's own",
        ]
    known = {case for case, _ in verdict.known} - {trial.case for trial in verdict.unknown}
    counts = ", ".join(
        f"{len(verdict.unexplained(level))} {level}" for level in ("MUST", "SHOULD", "ours")
    )
    starts = f"; {report.starts} starts of the server" if report.starts else ""
    lines += [
        "",
        f"unexplained failures: {counts}; known: {len(known)}; {report.seconds:.1f} s{starts}",
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


SHOWN_CASES = 4


def _finding(finding: Finding, verdict: Verdict, options: RunOptions, paint: Paint) -> list[str]:
    word = "known" if finding.is_known else "FAIL"
    count = f" ({len(finding.cases)} cases)" if len(finding.cases) > 1 else ""
    color = "yellow" if finding.is_known else "red"
    lines = [f"{paint(word, color)} {paint(finding.level, 'bold')}  {finding.title}{count}"]
    if finding.sdk:
        lines.append(f"     known of {finding.sdk}")
    if finding.hint:
        lines.append(f"     {finding.hint}")
    shown: set[str] = set()
    for trial in finding.trials:
        if trial.case in shown or len(shown) >= SHOWN_CASES:
            continue
        shown.add(trial.case)
        lines += _trial(trial, [t for t in finding.trials if t.case == trial.case], verdict, paint)
        if len(shown) == 1:
            lines += _evidence(trial, options, paint)
    rest = [case for case in finding.cases if case not in shown]
    if rest:
        lines.append(f"     also {' '.join(rest)}")
    return lines


def _trial(trial: Trial, trials: list[Trial], verdict: Verdict, paint: Paint) -> list[str]:
    row = requirements()[trial.case]
    where = ", ".join(t.revision for t in trials)
    lines = [
        f"     {paint(row.id, 'bold')} {row.level_in(trial.revision)} {row.text} ({where})",
        f"       {show(trial.reason.encode('utf-8', 'backslashreplace'), 500)}",
    ]
    if (reason := verdict.reason(trial)) is not None:
        lines.append(paint(f"       known: {reason}", "yellow"))
    return lines


def _evidence(trial: Trial, options: RunOptions, paint: Paint) -> list[str]:
    row = requirements()[trial.case]
    lines = [
        f"       “{clause.quote}” {clause.link(trial.revision)}"
        for clause in row.clauses(trial.revision)
    ]
    for exchange in [e for e in trial.evidence if e.data or e.head][-6:]:
        arrow = "->" if exchange.sent else "<-"
        head = exchange.head.replace("\n", "; ")
        text = " ".join(part for part in (head, show(exchange.data, 200)) if part)
        lines.append(paint(f"       {arrow} {text}", "dim"))
    lines.append(paint(f"       run again: {options.rerun(trial.case, trial.revision)}", "dim"))
    return lines


def _odd_trials(report: Report, paint: Paint) -> list[str]:
    """The flaky trials and the errors."""
    lines: list[str] = []
    for status, title in (
        ("flaky", "flaky (failed, then passed when repeated alone):"),
        ("error", "errors (the case could not begin):"),
    ):
        trials = [trial for trial in report.trials if trial.status == status]
        if trials:
            lines += ["", paint(title, "bold")]
        for trial in trials[:20]:
            reason = show(trial.reason.encode("utf-8", "backslashreplace"), 300)
            lines.append(f"  {trial.case} {trial.revision}  {reason}")
            tail = trial.stderr[-300:] if status == "error" else b""
            if tail.strip():
                lines.append(paint(f"    stderr: {show(tail, 300)}", "dim"))
        if len(trials) > 20:
            lines.append(f"  and {len(trials) - 20} more")
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

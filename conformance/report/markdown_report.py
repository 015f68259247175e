"""The report as Markdown: a summary for a pull request."""

from __future__ import annotations

from conformance.client.frames import show
from conformance.report.findings import Finding, findings
from conformance.report.known_failures import Verdict
from conformance.report.run_options import RunOptions
from conformance.requirements import requirements
from conformance.runner import Report

SHOWN_CASES = 12


def as_markdown(report: Report, verdict: Verdict, options: RunOptions) -> str:
    """The summary: the result, a table of findings, and the clauses that they violate."""
    spoken = ", ".join(f.revision for f in report.facts.values() if f.speaks)
    state = "interrupted" if report.interrupted else "complete"
    lines = [
        f"## MCP conformance: {_plain(report.server_info)}",
        "",
        f"{report.transport}, revisions {spoken}; mcp-conform {options.version}, {options.date}, "
        f"{report.seconds:.0f} s, {state}.",
        "",
        "| passed | MUST failed | SHOULD failed | ours failed | known | flaky | errors | n/a |",
        "|---|---|---|---|---|---|---|---|",
        f"| {report.count('passed')} | {len(verdict.unexplained('MUST'))} "
        f"| {len(verdict.unexplained('SHOULD'))} | {len(verdict.unexplained('ours'))} "
        f"| {len({case for case, _ in verdict.known})} | {report.count('flaky')} "
        f"| {report.count('error')} | {report.count('not applicable')} |",
        "",
    ]
    found = findings(report, verdict)
    if verdict.baseline is not None:
        shared = sum(bool(finding.sdk) for finding in found)
        lines += [f"{shared} of the findings are known of {verdict.baseline.title}.", ""]
    if not found:
        return "\n".join([*lines, "No failures.", ""])
    lines += ["| level | finding | cases | clause |", "|---|---|---|---|"]
    for finding in found:
        lines.append(_row(finding))
    return "\n".join([*lines, ""])


def _row(finding: Finding) -> str:
    trial = finding.trials[0]
    clauses = requirements()[trial.case].clauses(trial.revision)
    clause = f"[{trial.revision}]({clauses[0].link(trial.revision)})" if clauses else "–"
    cases = " ".join(finding.cases[:SHOWN_CASES])
    if len(finding.cases) > SHOWN_CASES:
        cases += f" and {len(finding.cases) - SHOWN_CASES} more"
    notes = f" *(known of {finding.sdk})*" if finding.sdk else ""
    notes += " *(known failure)*" if finding.is_known else ""
    reason = _plain(show(trial.reason.encode("utf-8", "backslashreplace"), 160))
    return f"| {finding.level} | {_plain(finding.title)}{notes}<br>{reason} | {cases} | {clause} |"


def _plain(text: str) -> str:
    """Text that cannot break a table or add markup."""
    for mark, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("|", "&#124;")):
        text = text.replace(mark, entity)
    for mark in "`*_[]":
        text = text.replace(mark, "\\" + mark)
    return " ".join(text.split())

"""The report as one HTML page without scripts or external resources, with anchors and links.

All text from the server passes through `_text`, which makes it printable and escapes it.
"""

from __future__ import annotations

from collections import Counter
from html import escape
from importlib import resources

from conformance.check import Exchange, Trial
from conformance.client.frames import show
from conformance.report.findings import Finding, findings
from conformance.report.known_failures import Verdict
from conformance.report.run_options import RunOptions
from conformance.report.text_report import MARKS
from conformance.requirements import group_titles, requirements
from conformance.runner import Report


def _text(words: str, limit: int = 2000) -> str:
    """Make text printable, shorten it and escape it."""
    return escape(show(words.encode("utf-8", "backslashreplace"), limit))


def as_html(report: Report, verdict: Verdict, options: RunOptions) -> str:
    """The whole page."""
    title = _text(f"{report.server_info} · MCP conformance", 200)
    style = resources.files("conformance.report").joinpath("html_report.css").read_text("utf-8")
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title}</title><style>{style}</style></head><body><main>",
        *_head(report, verdict, options),
        *_matrix(report, verdict),
        *_failures(report, verdict, options),
        *_odd_trials(report),
        *_reasons(report),
        *_every_case(report, verdict),
        f"<footer>Made by mcp-conform {options.version}. A case fails if it fails in any "
        "revision. A known failure "
        "does not count as passed. Levels MUST and SHOULD come from the specification; “ours” "
        "marks requirements of this suite where the specification leaves a choice.</footer>",
        "</main></body></html>",
    ]
    return "\n".join(parts) + "\n"


def _head(report: Report, verdict: Verdict, options: RunOptions) -> list[str]:
    must, should = verdict.unexplained("MUST"), verdict.unexplained("SHOULD")
    if must:
        summary, tone = f"{_count(len(must), 'requirement')} of level MUST failed.", "poor"
    else:
        summary, tone = "No requirement of level MUST failed.", "good"
    if report.interrupted:
        summary, tone = f"Interrupted. {summary}", "poor"
    if verdict.newly_passing:
        stale = _count(len(verdict.newly_passing), "known failure")
        summary += f" {stale} passed: remove the entries from the list."
        tone = "poor"
    spoken = [f.revision for f in report.facts.values() if f.speaks]
    lines = [
        f"<h1>{_text(report.server_info, 120)}</h1>",
        f'<p class="sub">{_text(report.server, 300)}</p>',
        f'<p class="sub">{options.date} · {report.seconds:.1f} s · speaks {", ".join(spoken)}</p>',
        f'<p class="sub"><code>{_text(options.shown(), 600)}</code></p>',
        *(f'<p class="sub">{_text(note, 300)}</p>' for note in report.notes),
        f'<p class="verdict {tone}">{summary}</p><div class="tiles">',
    ]
    tiles = [
        (len(report.cases()), "cases", ""),
        (report.count("passed"), "passed", "ok"),
        (len(must), "MUST failed", "bad" if must else ""),
        (len(should), "SHOULD failed", "bad" if should else ""),
        (len(verdict.unexplained("ours")), "ours failed", ""),
        (len({case for case, _ in verdict.known}), "known failures", ""),
        (report.count("flaky"), "flaky", ""),
        (report.count("error"), "errors", "bad" if report.count("error") else ""),
        (report.count("not applicable"), "not applicable", ""),
    ]
    lines += [f'<div class="tile {c}"><b>{n}</b><span>{w}</span></div>' for n, w, c in tiles]
    return [*lines, "</div>"]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _matrix(report: Report, verdict: Verdict) -> list[str]:
    """A table of groups and revisions: passed cases of applicable cases."""
    heads = "".join(f'<th class="cell">{revision}</th>' for revision in report.facts)
    lines = [
        "<h2>Groups by revision</h2>",
        f'<div class="scroll"><table class="matrix"><thead><tr><th>group</th>{heads}</tr></thead>',
    ]
    for group, title in group_titles().items():
        mine = [trial for trial in report.trials if trial.case[0] == group]
        if not mine:
            continue
        cells = []
        for revision, facts in report.facts.items():
            here = [trial for trial in mine if trial.revision == revision]
            tally = Counter(_status(trial, verdict) for trial in here)
            must = any(
                _status(t, verdict) == "failed"
                and requirements()[t.case].level_in(t.revision) == "MUST"
                for t in here
            )
            total = tally["passed"] + tally["failed"] + tally["known"]
            if not facts.speaks:
                cells.append(_mark("na", "not spoken"))
            elif not total:
                cells.append(_mark("na", "–"))
            else:
                tone = "bad" if must else "ok" if tally["passed"] == total else "known"
                cells.append(_mark(tone, f"{tally['passed']}/{total}"))
        row = "".join(f'<td class="cell">{cell}</td>' for cell in cells)
        lines.append(f'<tr><td><span class="key">{group}</span>{escape(title)}</td>{row}</tr>')
    lines.append("</table></div>")
    lines.append(
        '<p class="sub note">passed / tried; red: a MUST failed; amber: only a SHOULD, '
        "a requirement of level “ours” or a known failure</p>"
    )
    unspoken = [f for f in report.facts.values() if not f.speaks]
    lines += [
        f'<p class="sub">{f.revision} is not spoken: {_text(f.reason, 240)}</p>' for f in unspoken
    ]
    return lines


def _status(trial: Trial, verdict: Verdict) -> str:
    known = trial.status == "failed" and verdict.reason(trial) is not None
    return "known" if known else trial.status


def _mark(tone: str, text: str) -> str:
    return f'<span class="mark {tone}">{escape(text)}</span>'


def _failures(report: Report, verdict: Verdict, options: RunOptions) -> list[str]:
    found = findings(report, verdict)
    if not found:
        return ["<h2>Findings</h2>", '<p class="sub">None.</p>']
    lines = [f"<h2>Findings ({len(found)})</h2>"]
    if verdict.baseline is not None:
        theirs = sum(bool(finding.sdk) for finding in found)
        told = (
            f"{theirs} are known of {_text(verdict.baseline.title)}; yours: {len(found) - theirs}"
        )
        lines.append(f'<p class="sub">{told}</p>')
    for number, finding in enumerate(found, 1):
        lines += _finding(number, finding, verdict, options)
    return lines


def _finding(number: int, finding: Finding, verdict: Verdict, options: RunOptions) -> list[str]:
    tone = "known" if finding.is_known or finding.sdk else "bad"
    count = _count(len(finding.cases), "case")
    marks = _mark(tone, f"known of {finding.sdk}" if finding.sdk else count)
    lines = [
        f'<details id="finding-{number}"><summary>'
        f'<span class="level {finding.level}">{finding.level}</span>'
        f'<span class="text">{escape(finding.title)}</span>{marks}'
        f'<a class="anchor" href="#finding-{number}">#{number}</a></summary><div class="body">'
    ]
    if finding.hint:
        lines.append(f"<p>{escape(finding.hint)}</p>")
    for case in finding.cases:
        trials = [trial for trial in finding.trials if trial.case == case]
        lines += _failed_case(case, trials, verdict, options)
    return [*lines, "</div></details>"]


def _failed_case(
    case: str, trials: list[Trial], verdict: Verdict, options: RunOptions
) -> list[str]:
    row, first = requirements()[case], trials[0]
    level = row.level_in(first.revision)
    lines = [
        f'<h3 id="{case}"><a href="#{case}">{case}</a> <span class="level {level}">{level}</span> '
        f"{escape(row.text)}</h3><dl>"
    ]
    for clause in row.clauses(first.revision):
        link = escape(clause.link(first.revision), quote=True)
        lines.append(
            f"<dt>clause</dt><dd>“{escape(clause.quote)}” "
            f'<a href="{link}">{first.revision}</a></dd>'
        )
    shown: set[str] = set()
    for trial in trials:
        if trial.reason not in shown:
            shown.add(trial.reason)
            lines.append(f"<dt>{trial.revision}</dt><dd>{_text(trial.reason)}</dd>")
        explained = verdict.reason(trial)
        if explained is not None and explained not in shown:
            shown.add(explained)
            lines.append(f"<dt>known</dt><dd>{_text(explained)}</dd>")
    rerun = _text(options.rerun(case, first.revision), 600)
    lines.append(f"<dt>run again</dt><dd><code>{rerun}</code></dd>")
    return [*lines, "</dl>", *_wire(first.evidence), *_stderr(first)]


def _odd_trials(report: Report) -> list[str]:
    """The flaky trials and the errors."""
    odd = [trial for trial in report.trials if trial.status in ("flaky", "error")]
    if not odd:
        return []
    lines = [
        "<h2>Flaky cases and errors</h2>",
        '<p class="sub">A flaky case failed, and passed when it was repeated alone. An error is '
        "trouble before the case could begin.</p>",
        '<div class="scroll"><table class="reasons">',
    ]
    lines += [
        f'<tr><td class="ids">{trial.case} {trial.revision}</td><td>{trial.status}</td>'
        f"<td>{_text(trial.reason, 500)}</td></tr>"
        for trial in odd
    ]
    return [*lines, "</table></div>"]


def _wire(evidence: list[Exchange]) -> list[str]:
    if not evidence:
        return []
    several = len({exchange.connection for exchange in evidence}) > 1
    lines = ['<ol class="wire">']
    for exchange in evidence:
        who = "sent" if exchange.sent else "received"
        label = f"{who} #{exchange.connection}" if several else who
        size = f" ({exchange.size} bytes)" if exchange.size > len(exchange.data) else ""
        head = f"{exchange.head}\n\n" if exchange.head else ""
        data = escape(head + show(exchange.data, 1200))
        lines.append(
            f'<li class="{who}"><span class="who">{label}{size}</span><code>{data}</code></li>'
        )
    return [*lines, "</ol>"]


def _stderr(trial: Trial) -> list[str]:
    if not trial.stderr:
        return []
    tail = escape(show(trial.stderr[-1500:], 1500))
    return [f'<ol class="wire"><li><span class="who">stderr</span><code>{tail}</code></li></ol>']


def _reasons(report: Report) -> list[str]:
    reasons = report.not_applicable_by_reason()
    if not reasons:
        return []
    lines = [
        "<h2>Not applicable</h2>",
        '<div class="scroll"><table class="reasons"><thead>'
        "<tr><th>reason</th><th>cases</th></tr></thead>",
    ]
    for reason, cases in reasons.items():
        lines.append(
            f'<tr><td>{_text(reason, 500)}</td><td class="ids">{" ".join(cases)}</td></tr>'
        )
    return [*lines, "</table></div>"]


def _every_case(report: Report, verdict: Verdict) -> list[str]:
    rows = requirements()
    heads = "".join(f"<th>{revision}</th>" for revision in report.facts)
    tones = {"passed": "ok", "failed": "bad", "known": "known"}
    lines = [
        "<h2>Every case</h2>",
        f"<details><summary>{len(report.cases())} cases</summary>",
        '<div class="scroll"><table class="all"><thead><tr><th>id</th><th>level</th>'
        f"<th>requirement</th>{heads}</tr></thead>",
    ]
    for case in report.cases():
        row = rows[case]
        trials = {trial.revision: trial for trial in report.of(case)}
        cells = []
        for revision in report.facts:
            if revision not in trials:
                cells.append("<td></td>")
                continue
            status = _status(trials[revision], verdict)
            cells.append(f"<td>{_mark(tones.get(status, 'na'), MARKS.get(status, status))}</td>")
        lines.append(
            f'<tr id="case-{case}"><td class="mono">{case}</td><td>{row.level}</td>'
            f"<td>{escape(row.text)}</td>{''.join(cells)}</tr>"
        )
    return [*lines, "</table></div></details>"]

"""`--explain ID`: a case in full, with its clauses and examples.

The examples are not written by hand: the case runs on the reference server, which passes, and on
the reference server with a defect, which fails.
"""

from __future__ import annotations

import tempfile
import textwrap
from dataclasses import replace
from pathlib import Path

from conformance import revisions
from conformance.check import Exchange, Trial
from conformance.client.frames import show
from conformance.requirements import Requirement, group_titles, requirements
from conformance.runner import run

SHOWN = 8
WIDTH = 100


def explain(case: str) -> str:
    """The text of `--explain`. Raises ValueError for an unknown id."""
    row = requirements().get(case)
    if row is None:
        raise ValueError(f"unknown case {case!r}; see --list")
    lines = [
        f"{row.id}  {row.text}",
        "",
        f"group       {row.group} ({group_titles()[row.group]})",
        f"level       {_levels(row)}",
        f"transports  {', '.join(row.transports)}",
        f"revisions   {', '.join(row.revisions)}",
        "",
        *_clauses(row),
        *_examples(row),
    ]
    return "\n".join(lines)


def _levels(row: Requirement) -> str:
    found: dict[str, list[str]] = {}
    for revision in row.revisions:
        found.setdefault(row.level_in(revision), []).append(revision)
    if len(found) == 1:
        return row.level
    return "; ".join(f"{level} in {', '.join(dates)}" for level, dates in found.items())


def _clauses(row: Requirement) -> list[str]:
    lines: list[str] = []
    shown: set[str] = set()
    for revision in reversed(row.revisions):
        for clause in row.clauses(revision):
            if clause.quote not in shown:
                shown.add(clause.quote)
                where = "all revisions" if clause.revisions == revisions.ALL else revision
                quote = textwrap.fill(
                    f"“{clause.quote}”", WIDTH, initial_indent="  ", subsequent_indent="   "
                )
                lines += [f"clause ({where}): {clause.link(revision)}", quote]
    if row.level == "ours":
        lines.append("No clause obliges the server: the requirement is ours.")
    return [*lines, ""]


def _examples(row: Requirement) -> list[str]:
    from conformance.broken import local  # the reference server is needed only here
    from conformance.broken.defects.registry import DEFECTS, NO_DEFECT

    lines: list[str] = []
    broken = next(defect for defect in DEFECTS.values() if row.id in defect.cases)
    for defect, title in ((NO_DEFECT, "passes"), (broken, "fails")):
        told = (
            "a correct server" if defect is NO_DEFECT else f"a server with a defect: {defect.about}"
        )
        lines.append(f"example that {title} ({told})")
        with tempfile.TemporaryDirectory() as scratch:
            endpoint, settings = local.serve(local.way_for(row), defect, Path(scratch))
            if row.id in local.MODERN_ONLY:
                settings = replace(settings, spoken=frozenset())
            report = run(
                endpoint,
                [row],
                wanted=[local.revision_for(broken, row)],
                settings=replace(settings, keep_evidence=True, repeat=False),
                jobs=1,
            )
        for trial in report.trials[:1]:
            lines += [
                *_wire(trial),
                f"  => {trial.status}{': ' + trial.reason if trial.reason else ''}",
                "",
            ]
    return lines


def _wire(trial: Trial) -> list[str]:
    shown = [exchange for exchange in trial.evidence if exchange.data or exchange.head]
    lines = [_line(exchange) for exchange in shown[-SHOWN:]]
    if len(shown) > SHOWN:
        lines.insert(0, f"  ... {len(shown) - SHOWN} earlier messages")
    return lines


def _line(exchange: Exchange) -> str:
    arrow = "->" if exchange.sent else "<-"
    text = show(exchange.data.rstrip(b"\n"), 400) if exchange.data else ""
    head = exchange.head.replace("\n", "; ")
    return f"  {arrow} {' '.join(part for part in (head, text) if part)}"

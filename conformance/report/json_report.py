"""The report as JSON, for programs."""

from __future__ import annotations

import base64
import json
from typing import Any

from conformance.check import Trial
from conformance.client.frames import show
from conformance.report.findings import findings
from conformance.report.known_failures import Verdict
from conformance.report.run_options import RunOptions
from conformance.requirements import requirements
from conformance.runner import Report

SCHEMA_VERSION = 2


def as_json(report: Report, verdict: Verdict, options: RunOptions) -> str:
    """The whole JSON report."""
    rows = requirements()
    cases: list[dict[str, Any]] = []
    for case in report.cases():
        row = rows[case]
        cases.append(
            {
                "id": case,
                "group": row.group,
                "requirement": row.text,
                "level": row.level,
                "status": report.status(case),
                "revisions": {t.revision: _trial(t, verdict, options) for t in report.of(case)},
            }
        )
    return json.dumps(
        {
            "schemaVersion": SCHEMA_VERSION,
            "tool": "mcp-conform",
            "toolVersion": options.version,
            "date": options.date,
            "command": options.shown(),
            "interrupted": report.interrupted,
            "notes": report.notes,
            "starts": report.starts,
            "server": report.server,
            "serverInfo": report.server_info,
            "transport": report.transport,
            "seconds": round(report.seconds, 3),
            "revisions": {
                f.revision: {"spoken": f.speaks, "reason": f.reason} for f in report.facts.values()
            },
            "summary": {
                "cases": len(report.cases()),
                "passed": report.count("passed"),
                "failed": report.count("failed"),
                "notApplicable": report.count("not applicable"),
                "flaky": report.count("flaky"),
                "errors": report.count("error"),
                "failedMust": verdict.unexplained("MUST"),
                "failedShould": verdict.unexplained("SHOULD"),
                "failedOurs": verdict.unexplained("ours"),
                "known": sorted({case for case, _ in verdict.known}),
                "newlyPassing": [str(entry) for entry in verdict.newly_passing],
            },
            "sdk": verdict.baseline.title if verdict.baseline else None,
            "findings": [
                {
                    "title": finding.title,
                    "level": finding.level,
                    "cases": finding.cases,
                    "sdk": finding.sdk or None,
                    "known": finding.is_known,
                    "reason": finding.trials[0].reason,
                }
                for finding in findings(report, verdict)
            ],
            "cases": cases,
        },
        indent=1,
    )


def _trial(trial: Trial, verdict: Verdict, options: RunOptions) -> dict[str, Any]:
    row = requirements()[trial.case]
    entry: dict[str, Any] = {
        "status": trial.status,
        "level": row.level_in(trial.revision),
        "seconds": round(trial.seconds, 4),
    }
    if trial.reason:
        entry["reason"] = trial.reason
    if (known := verdict.reason(trial)) is not None:
        entry["known"] = known
    if trial.status in ("failed", "flaky", "error"):
        entry["clauses"] = [
            {"quote": clause.quote, "link": clause.link(trial.revision)}
            for clause in row.clauses(trial.revision)
        ]
        entry["rerun"] = options.rerun(trial.case, trial.revision)
    if trial.evidence:
        entry["exchange"] = [
            {
                "direction": "sent" if e.sent else "received",
                "connection": e.connection,
                "bytes": e.size,
                **({"head": e.head} if e.head else {}),
                "text": show(e.data, 2000),
                **({"base64": base64.b64encode(e.data).decode()} if e.sent and e.data else {}),
            }
            for e in trial.evidence
        ]
    if trial.stderr:
        entry["stderr"] = show(trial.stderr[-1000:], 1000)
    return entry

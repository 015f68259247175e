"""The report as JSON, for programs."""

from __future__ import annotations

import json
from typing import Any

from conformance.check import Trial
from conformance.client.frames import show
from conformance.report.known_failures import Verdict
from conformance.requirements import requirements
from conformance.runner import Report


def as_json(report: Report, verdict: Verdict) -> str:
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
                "source": row.source,
                "level": row.level,
                "status": report.status(case),
                "revisions": {t.revision: _trial(t, verdict) for t in report.of(case)},
            }
        )
    return json.dumps(
        {
            "tool": "mcp-conform",
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
                "failedMust": verdict.unexplained("MUST"),
                "failedShould": verdict.unexplained("SHOULD"),
                "failedOurs": verdict.unexplained("ours"),
                "known": sorted({case for case, _ in verdict.known}),
                "newlyPassing": [str(entry) for entry in verdict.newly_passing],
            },
            "cases": cases,
        },
        indent=1,
    )


def _trial(trial: Trial, verdict: Verdict) -> dict[str, Any]:
    entry: dict[str, Any] = {"status": trial.status, "seconds": round(trial.seconds, 4)}
    if trial.reason:
        entry["reason"] = trial.reason
    if (known := verdict.reason(trial)) is not None:
        entry["known"] = known
    if trial.evidence:
        entry["exchange"] = [
            {
                "direction": "sent" if e.sent else "received",
                "connection": e.connection,
                "bytes": e.size,
                "text": show(e.data, 2000),
            }
            for e in trial.evidence
        ]
    if trial.stderr:
        entry["stderr"] = show(trial.stderr[-1000:], 1000)
    return entry

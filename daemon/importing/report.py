"""The report of an import: counts of imported, known and rejected entries, with reasons."""

from collections.abc import Mapping
from typing import Any

from daemon.importing.record import ForeignKind
from daemon.importing.staging import Reason, Staged

Report = dict[str, Any]

_NOUNS = {"skip": "skipped", "redact": "redacted", "keep": "kept"}


def build(
    kind: ForeignKind,
    path: str,
    staged: Staged,
    result: Mapping[str, Any],
    *,
    policy: str,
    is_detected: bool,
) -> Report:
    """The report as `--json` prints it."""
    created, known = result["createdByType"], result["knownByType"]
    return {
        "kind": kind.name,
        "detected": is_detected,
        "path": path,
        "bank": result["bank"],
        "dryRun": result["dryRun"],
        "found": staged.found,
        "imported": entries(created),
        "known": entries(known) + staged.repeated,
        "rejected": sum(reason.count for reason in staged.rejected.values()),
        "reasons": _reasons(staged.rejected),
        "secrets": {
            "policy": policy,
            "entries": staged.secret_entries,
            "found": _reasons(staged.secrets),
        },
        "kinds": dict(sorted(staged.kinds.items())),
        "warnings": [],
        "pendingVectors": result.get("pendingVectors", 0),
    }


def lines(report: Report) -> list[str]:
    """The report for people."""
    shown: list[str] = []
    if report["detected"]:
        shown.append(f"{report['path']}: looks like {report['kind']}")
    verb = "would be imported" if report["dryRun"] else "imported"
    shown.append(
        f"{report['bank']}: {report['imported']} {verb}, {report['known']} already known,"
        f" {report['rejected']} rejected"
    )
    shown += [f"  rejected: {_reason(each)}" for each in report["reasons"]]
    secrets = report["secrets"]
    if secrets["entries"]:
        noun = _NOUNS[secrets["policy"]]
        shown.append(f"  secrets: {_plural(secrets['entries'], 'entry', 'entries')} {noun}")
        shown += [f"    {_reason(each)}" for each in secrets["found"]]
    shown += [f"  warning: {warning}" for warning in report["warnings"]]
    if report["dryRun"]:
        shown.append("  this was a dry run: nothing was changed")
    return shown


def entries(counts: Mapping[str, int]) -> int:
    """The number of entries: items and documents. Chunks and origins belong to these."""
    return counts.get("item", 0) + counts.get("document", 0)


def _reasons(reasons: Mapping[str, Reason]) -> list[dict[str, Any]]:
    ordered = sorted(reasons.items(), key=lambda entry: (-entry[1].count, entry[0]))
    return [
        {"reason": reason, "count": found.count, "examples": found.examples}
        for reason, found in ordered
    ]


def _reason(reason: Mapping[str, Any]) -> str:
    examples = ", ".join(reason["examples"])
    more = ", …" if reason["count"] > len(reason["examples"]) else ""
    return f"{reason['count']} × {reason['reason']} ({examples}{more})"


def _plural(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"

#!/usr/bin/env python3
"""Run mcp-conform on public servers, and write conformance/RESULTS.md and the SDK baselines.

    scripts/results.py                   install and test all servers of scripts/peers/servers.toml
    scripts/results.py NAME ...          only these; NAME-http tests a server over HTTP
    scripts/results.py --write           write RESULTS.md and the baselines from the reports
    scripts/results.py --from DIRECTORY  the same, from reports in another directory

Servers are installed under .cache/results/ from npm and PyPI, each Python package in an environment
of its own. A server takes one to five minutes. Reports go to .cache/results/reports/. The levels of
the requirements are those of today, so that a corrected level needs no new run.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import socket
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from conformance.requirements import requirements  # noqa: E402  (needs the path)

CACHE = ROOT / ".cache" / "results"
PEERS = ROOT / "scripts" / "peers"
BASELINES = ROOT / "conformance" / "report" / "sdk_baselines"
KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{name: none, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: none, context: {cluster: none, user: nobody}}]
users: [{name: nobody, user: {}}]
current-context: none
"""
ECHO = '{"text":"{text}"}'
HTTP = "-http"
#: The revision with batches, and the newest of each era.
STDIO_REVISIONS = "2025-03-26,2025-11-25,2026-07-28"
START_SECONDS = 60


def servers() -> dict[str, dict[str, Any]]:
    return tomllib.loads((PEERS / "servers.toml").read_text("utf-8"))


def runs() -> dict[str, dict[str, Any]]:
    """The rows of the page: each server over stdio, and over HTTP where it has a command."""
    found: dict[str, dict[str, Any]] = {}
    for name, row in servers().items():
        found[name] = row
        if "http" in row:
            found[name + HTTP] = row
    return found


def install(name: str, row: dict[str, Any]) -> list[str]:
    """Install a server and return its command."""
    npm, venv = CACHE / "npm", CACHE / "python" / name
    if "npm" in row:
        npm.mkdir(parents=True, exist_ok=True)
        for script in PEERS.glob("*.mjs"):
            shutil.copy(script, npm)
        (npm / "kubeconfig").write_text(KUBECONFIG)
        if not (npm / "node_modules" / row["npm"]).exists():
            command = [
                "npm",
                "install",
                "--no-audit",
                "--no-fund",
                "--prefix",
                str(npm),
                row["npm"],
                "zod",
            ]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    elif not venv.exists():
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        subprocess.run([str(venv / "bin/pip"), "install", "-q", row["pip"]], check=True)
    return _placed(name, row["command"])


def _placed(name: str, words: list[str], port: int = 0) -> list[str]:
    """A command with the paths of this machine."""
    places = {
        "{npm}": str(CACHE / "npm" / "node_modules" / ".bin"),
        "{venv}": str(CACHE / "python" / name),
        "{port}": str(port),
    }
    for place, path in places.items():
        words = [word.replace(place, path) for word in words]
    return words


def test(name: str, row: dict[str, Any]) -> None:
    """Run mcp-conform on one server."""
    reports = CACHE / "reports"
    reports.mkdir(parents=True, exist_ok=True)
    server = name.removesuffix(HTTP)
    command = [sys.executable, "-m", "conformance", "--sdk", "none", "--level", "MUST,SHOULD"]
    command += ["--tool", f"echo={ECHO}"] if name.startswith("sdk-") else []
    command += ["--json", str(reports / f"{name}.json")]
    installed = install(server, row)
    if name == server:
        command += ["--revision", STDIO_REVISIONS, "--stdio", "--", *installed]
        subprocess.run(command, check=False, cwd=ROOT)
        return
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    serve = _placed(server, row["http"], port)
    with subprocess.Popen(serve, cwd=ROOT, stdin=subprocess.DEVNULL) as child:
        try:
            _wait_for(port)
            command += [*row.get("options", []), "--http", f"http://localhost:{port}/mcp"]
            subprocess.run(command, check=False, cwd=ROOT)
        finally:
            child.terminate()


def _wait_for(port: int) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        with contextlib.suppress(OSError), socket.create_connection(("localhost", port), 1):
            return
        time.sleep(0.2)


def write(reports: Path) -> None:
    found = {}
    for name, row in runs().items():
        path = reports / f"{name}.json"
        if path.exists():
            found[name] = (row, _judged(json.loads(path.read_text("utf-8"))))
    for row, report in found.values():
        if "baseline" in row and not report.get("interrupted"):
            _write_baseline(row, report)
    (ROOT / "conformance" / "RESULTS.md").write_text(_page(found), "utf-8")
    print(f"{len(found)} servers")


def _judged(report: dict[str, Any]) -> dict[str, Any]:
    """A report with the levels of the requirements now, without cases that no longer apply."""
    now = requirements()
    kept = []
    failed: dict[str, list[str]] = {"MUST": [], "SHOULD": [], "ours": []}
    for case in report["cases"]:
        row = now.get(case["id"])
        if row is None or report["transport"] not in row.transports:
            continue
        for revision, trial in case["revisions"].items():
            trial["level"] = row.level_in(revision)
        broken = {t["level"] for t in case["revisions"].values() if t["status"] == "failed"}
        level = next((name for name in failed if name in broken), None)
        if level is not None:
            failed[level].append(case["id"])
        kept.append(case)
    for finding in report["findings"]:
        finding["cases"] = [c for c in finding["cases"] if any(c in ids for ids in failed.values())]
        levels = [name for name in failed if set(failed[name]) & set(finding["cases"])]
        finding["level"] = levels[0] if levels else ""
    report["cases"] = kept
    report["findings"] = [finding for finding in report["findings"] if finding["cases"]]
    report["summary"] |= {
        "failedMust": failed["MUST"],
        "failedShould": failed["SHOULD"],
        "failedOurs": failed["ours"],
    }
    return report


def _write_baseline(row: dict[str, Any], report: dict[str, Any]) -> None:
    summary = report["summary"]
    failed = sorted({*summary["failedMust"], *summary["failedShould"], *summary["failedOurs"]})
    baseline = {
        "name": row["baseline"],
        "title": f"{row['sdk']} SDK" if "SDK" not in row["sdk"] else row["sdk"],
        "version": f"(measured on {report['serverInfo']})",
        "transport": report["transport"],
        "date": report["date"][:10],
        "failed": failed,
    }
    path = BASELINES / f"{row['baseline']}-{report['transport']}.json"
    path.write_text(json.dumps(baseline, indent=1) + "\n", "utf-8")


def _page(found: dict[str, tuple[dict[str, Any], dict[str, Any]]]) -> str:
    reports = [report for _, report in found.values()]
    dates = sorted(report["date"][:10] for report in reports)
    lines = [
        "# Results of public servers",
        "",
        "Generated by `scripts/results.py`: the newest releases on npm and PyPI, no account, with",
        "the cases of level MUST and SHOULD; over stdio in the newest revision of each era and,",
        "for most servers, in 2025-03-26, which has batches (rows with one revision: only in the",
        "newest that the server supports); over HTTP in all revisions. Runs of",
        f"{dates[0]} to {dates[-1]} on a shared machine with two busy cores: the times are upper",
        "bounds. A case counts once, in however many revisions it was tried. Rows that begin with",
        "`sdk-` are plain echo servers; a row that ends",
        f"with `-http` was tested over HTTP. {_census(found)}",
        "",
        "| server | package | SDK | revisions | passed | MUST failed | SHOULD failed | flaky "
        "| errors | n/a | s |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, (row, report) in found.items():
        summary = report["summary"]
        spoken = sum(entry["spoken"] for entry in report["revisions"].values())
        lines.append(
            f"| {name} | {_plain(report['serverInfo'])} | {row['sdk']} | {spoken} "
            f"| {summary['passed']} "
            f"| {len(summary['failedMust'])} | {len(summary['failedShould'])} | {summary['flaky']} "
            f"| {summary['errors']} | {summary['notApplicable']} | {report['seconds']:.0f} |"
        )
    absent = [name for name in runs() if name not in found]
    if absent:
        lines += [
            "",
            f"Listed in `scripts/peers/servers.toml`, without a report: {', '.join(absent)}.",
        ]
    cut = [name for name, (_, report) in found.items() if report.get("interrupted")]
    if cut:
        lines += ["", f"Ended before the last case, after five minutes: {', '.join(cut)}."]
    lines += ["", "## Findings by cause", ""]
    causes: dict[tuple[str, str], list[str]] = {}
    for name, (_, report) in found.items():
        for finding in report["findings"]:
            causes.setdefault((finding["level"], finding["title"]), []).append(name)
    lines += ["| level | finding | servers |", "|---|---|---|"]
    for (level, title), names in sorted(causes.items(), key=lambda c: (c[0][0], -len(c[1]))):
        lines.append(f"| {level} | {_plain(title)} | {len(names)}: {', '.join(names)} |")
    lines += ["", "## Each server", ""]
    for name, (_, report) in found.items():
        lines += [f"### {name}", ""]
        if not report["findings"]:
            lines += ["No failures.", ""]
            continue
        for finding in report["findings"]:
            reason = _plain(finding["reason"])[:220]
            lines.append(
                f"- **{finding['level']}** {_plain(finding['title'])} "
                f"({' '.join(finding['cases'])}): {reason}"
            )
        lines.append("")
    return "\n".join([*lines, *_drafts(found)])


def _census(found: dict[str, tuple[dict[str, Any], dict[str, Any]]]) -> str:
    """The number of public servers and of SDKs."""
    public = {name.removesuffix(HTTP) for name in found if not name.startswith("sdk-")}
    kits = {row["sdk"] for row, _ in found.values()}
    return f"{len(public)} public servers and {len(kits)} SDKs."


def _drafts(found: dict[str, tuple[dict[str, Any], dict[str, Any]]]) -> list[str]:
    """Draft bug reports for the failed MUSTs: the bytes sent and received."""
    lines = [
        "## Draft bug reports",
        "",
        "One report for each failed MUST, from the first server that shows it. → is sent, "
        "← is received.",
        "",
    ]
    seen: set[str] = set()
    for name, (row, report) in found.items():
        for case in report["cases"]:
            failed = {
                r: t
                for r, t in case["revisions"].items()
                if t["status"] == "failed" and t["level"] == "MUST"
            }
            if not failed or case["id"] in seen:
                continue
            seen.add(case["id"])
            revision, trial = next(iter(failed.items()))
            lines += [
                f"### {case['id']}: {name} ({row['sdk']})",
                "",
                _plain(case["requirement"]),
                "",
            ]
            for clause in trial.get("clauses", []):
                lines.append(f"> {_plain(clause['quote'])} [{revision}]({clause['link']})")
            lines += ["", f"Revision {revision}. {_plain(trial['reason'])[:300]}", "", "```text"]
            for exchange in trial.get("exchange", [])[-6:]:
                arrow = "→" if exchange["direction"] == "sent" else "←"
                lines.append(f"{arrow} {exchange['text'][:300]}".replace("```", "'''"))
            lines += ["```", ""]
    return lines


def _plain(text: str) -> str:
    for mark, entity in (("<", "&lt;"), (">", "&gt;"), ("|", "&#124;"), ("`", "'")):
        text = text.replace(mark, entity)
    return " ".join(text.split())


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--from", dest="source", type=Path)
    options = parser.parse_args()
    if options.write or options.source:
        write(options.source or CACHE / "reports")
        return 0
    known = runs()
    for name in options.names or known:
        if name not in known:
            print(
                f"results: unknown server {name!r}; see scripts/peers/servers.toml", file=sys.stderr
            )
            return 2
        test(name, known[name])
    write(CACHE / "reports")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

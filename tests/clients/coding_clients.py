"""Real coding clients confirm the entries that `recalld setup` writes for them.

Claude Code, Codex, Gemini CLI and OpenCode are installed from npm (over 1 GB, about two minutes).
Each gets its entry from our setup, in a home directory of its own, and then its own command must
report the server as connected. No account is needed.

    scripts/clients --setup
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from scripts.kit import peer_packages

SECONDS: Final = 120.0
RECALLD: Final = str(Path(sys.executable).parent / "recalld")


class Machine:
    """A home directory with a project folder, and the programs of one client."""

    def __init__(self, root: Path, programs: Path) -> None:
        self.home = root / "home"
        self.project = root / "project"
        for folder in (self.home, self.project):
            folder.mkdir()
        self.programs = programs
        self.variables = {
            "HOME": str(self.home),
            "PATH": f"{programs}:{os.environ['PATH']}",
            "RECALLD_HOME": str(root / "data"),
            "CI": "true",
            "DISABLE_AUTOUPDATER": "1",
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
        }

    def run(self, *words: str, text: str | None = None) -> str:
        done = subprocess.run(
            words,
            env=self.variables,
            cwd=self.project,
            input=text if text is not None else "",
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", done.stdout + done.stderr)


def _claude(machine: Machine) -> str:
    shown = machine.run("claude", "mcp", "list")
    return "" if re.search(r"recalld: .*Connected", shown) else shown


def _codex(machine: Machine) -> str:
    """`codex mcp list` does not connect; the app server does."""
    process = subprocess.Popen(
        ["codex", "app-server"],
        env=machine.variables,
        cwd=machine.project,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        hello = {"clientInfo": {"name": "recalld-test", "title": "test", "version": "1"}}
        messages: list[dict[str, Any]] = [
            {"id": 1, "method": "initialize", "params": hello},
            {"method": "initialized"},
            {"id": 2, "method": "mcpServerStatus/list", "params": {}},
        ]
        for message in messages:
            process.stdin.write(json.dumps(message) + "\n")
            process.stdin.flush()
        deadline = time.monotonic() + SECONDS
        for line in process.stdout:
            answer = json.loads(line)
            if answer.get("id") == 2:
                servers = answer.get("result", {}).get("data", [])
                tools = [each.get("tools") for each in servers if each.get("name") == "recalld"]
                return "" if tools and tools[0] else line[:500]
            if time.monotonic() > deadline:
                break
        return "the app server gave no answer"
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def _gemini(machine: Machine) -> str:
    folders = machine.home / ".gemini" / "trustedFolders.json"
    folders.write_text(json.dumps({str(machine.project): "TRUST_FOLDER"}))
    shown = machine.run("gemini", "mcp", "list")
    return "" if re.search(r"recalld: .*- Connected", shown) else shown


def _opencode(machine: Machine) -> str:
    shown = machine.run("opencode", "mcp", "list")
    return "" if re.search(r"recalld\s+connected", shown) else shown


CLIENTS: Final[dict[str, Callable[[Machine], str]]] = {
    "claude-code": _claude,
    "codex": _codex,
    "gemini-cli": _gemini,
    "opencode": _opencode,
}


def confirm(name: str) -> str:
    """Set up one client and ask it; the reason if it is not connected, else an empty text."""
    programs = peer_packages.npm_peer(name) / ".bin"
    with tempfile.TemporaryDirectory(prefix="coding-") as folder:
        machine = Machine(Path(folder), programs)
        try:
            shown = machine.run(RECALLD, "setup", name, "--user")
            if "answers in" not in shown:
                return shown
            return CLIENTS[name](machine)
        finally:
            machine.run(RECALLD, "stop")


def main() -> int:
    failures = 0
    for name in CLIENTS:
        began = time.monotonic()
        try:
            fault = confirm(name)
        except peer_packages.Unavailable as reason:
            fault = f"cannot be installed: {reason}"
        failures += bool(fault)
        print(f"{name:12} {time.monotonic() - began:6.1f} s  {fault or 'connected'}", flush=True)
    print(f"{len(CLIENTS) - failures} of {len(CLIENTS)} connected")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

"""Third-party MCP clients, by version and mode, run against recalld.

A case is one client in one mode over one transport: `embedded` and `bridged` are `recalld stdio`
with and without the engine in the same process, `unix` is the daemon's socket, `http` its
Streamable HTTP endpoint. The client runs in its own environment through a driver
(tests/clients/drivers). The driver lists the tools, calls some of them, calls an unknown tool,
receives progress, cancels a call, checks that the call stopped, and exits. A case passes when the
driver succeeds, the negotiated revision is the expected one, and the server process exited with 0.

    scripts/clients            the cases that CI runs
    scripts/clients --all      every client over every transport (two more minutes)
    scripts/clients --list     list the cases
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from scripts.kit import peer_packages
from scripts.kit.recalld import Home, fresh_home

DRIVERS: Final = Path(__file__).parent / "drivers"
TRANSPORTS: Final = ("embedded", "bridged", "unix", "http")
TIMEOUT_SECONDS: Final = 60.0
MODERN: Final = "2026-07-28"


@dataclass(frozen=True)
class Case:
    client: str
    mode: str
    version: str
    transport: str
    peer: str
    in_ci: bool

    def __str__(self) -> str:
        return f"{self.client} {self.mode} {self.transport}"


@dataclass(frozen=True)
class Outcome:
    case: Case
    fault: str | None
    seconds: float
    report: dict[str, Any]


class Failed(Exception):
    """A case failed; the message says at which step."""


# (peer in scripts/kit/peer_packages.py, label, mode, expected revision, transports that CI runs)
_PYTHON: Final = (
    ("mcp-2", "mcp 2.3.0", "auto", MODERN, TRANSPORTS),
    ("mcp-2", "mcp 2.3.0", "legacy", "2025-11-25", TRANSPORTS),
    ("mcp-2", "mcp 2.3.0", MODERN, MODERN, TRANSPORTS),
    ("mcp-1.8.1", "mcp 1.8.1", "handshake", "2024-11-05", ("bridged",)),
    ("mcp-1.9.4", "mcp 1.9.4", "handshake", "2025-03-26", ("embedded", "bridged", "http")),
    ("mcp-1.10.1", "mcp 1.10.1", "handshake", "2025-06-18", ()),
    ("mcp-1.22.0", "mcp 1.22.0", "handshake", "2025-06-18", ("bridged",)),
    ("mcp-1.25.0", "mcp 1.25.0", "handshake", "2025-11-25", ("bridged", "http")),
)
_NPM: Final = (
    ("sdk-1", "npm sdk 1.32.2", "handshake", "2025-11-25", ("embedded", "bridged", "http")),
    ("client-2", "npm client 2.4.0", "2024-11-05", "2024-11-05", ("bridged",)),
    ("client-2", "npm client 2.4.0", "2025-03-26", "2025-03-26", ("bridged",)),
    ("client-2", "npm client 2.4.0", "2025-06-18", "2025-06-18", ("bridged", "http")),
    ("client-2", "npm client 2.4.0", "2025-11-25", "2025-11-25", ("bridged",)),
    ("client-2", "npm client 2.4.0", "auto", MODERN, ("embedded", "bridged", "http")),
    ("client-2", "npm client 2.4.0", "pin", MODERN, ("embedded", "bridged", "http")),
    ("inspector", "inspector 2.12.0", "legacy", "2025-11-25", ("bridged", "http")),
    ("inspector", "inspector 2.12.0", "auto", MODERN, ()),
    ("inspector", "inspector 2.12.0", "modern", MODERN, ("bridged", "http")),
    ("sdk-1.0.4", "npm sdk 1.0.4", "handshake", "2024-11-05", ()),
    ("sdk-1.12.3", "npm sdk 1.12.3", "handshake", "2025-03-26", ()),
    ("sdk-1.20.2", "npm sdk 1.20.2", "handshake", "2025-06-18", ()),
    ("sdk-1.24.3", "npm sdk 1.24.3", "handshake", "2025-11-25", ()),
)


#: Clients without Streamable HTTP: they have no HTTP transport or only the older HTTP+SSE.
_WITHOUT_HTTP: Final = frozenset({"sdk-1.0.4", "mcp-1.8.1"})


def cases() -> Iterator[Case]:
    for peer, client, mode, version, in_ci in (*_PYTHON, *_NPM):
        for transport in TRANSPORTS:
            if transport == "http" and peer in _WITHOUT_HTTP:
                continue
            yield Case(client, mode, version, transport, peer, transport in in_ci)


def prepare(case: Case) -> Callable[[str], list[str]]:
    """Install the client and return a function from a target (JSON) to the driver's command."""
    if case.peer.startswith("mcp-"):
        python = peer_packages.python_peer(case.peer)
        driver = DRIVERS / ("python_2.py" if case.peer == "mcp-2" else "python_1.py")
        return lambda target: [str(python), str(driver), case.mode, target]
    if case.peer == "inspector":
        node = peer_packages.newer_node()
        script = peer_packages.npm_peer("inspector") / ".bin" / "mcp-inspector"
        return lambda target: [node, str(script)]
    node = peer_packages.node()
    peer_packages.npm_script(case.peer, DRIVERS / "steps.mjs")
    name = "typescript_2.mjs" if case.peer == "client-2" else "typescript_1.mjs"
    module = peer_packages.npm_script(case.peer, DRIVERS / name)
    return lambda target: [node, str(module), case.mode, target]


def install(chosen: Sequence[Case]) -> dict[str, str]:
    """Install the clients, two at a time. Return those that failed, with the reason."""

    def attempt(case: Case) -> str:
        try:
            prepare(case)
        except peer_packages.Unavailable as reason:
            return str(reason)
        return ""

    first = {case.peer: case for case in chosen}
    with ThreadPoolExecutor(2) as pool:
        reasons = pool.map(attempt, first.values())
        return {peer: reason for peer, reason in zip(first, reasons, strict=True) if reason}


def run(case: Case, daemon_home: Home, socket: str, http: str) -> Outcome:
    """Run one case, against the running daemon unless the transport is `embedded`."""
    began = time.monotonic()
    report: dict[str, Any] = {}
    fault = None
    try:
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="clients-")))
            exit_codes = folder / "exit_codes"
            home = (
                stack.enter_context(fresh_home()) if case.transport == "embedded" else daemon_home
            )
            command = prepare(case)
            if case.peer == "inspector":
                report = _inspect(
                    case, command(""), _target(case, home, socket, http, exit_codes), folder
                )
            else:
                target = _target(case, home, socket, http, exit_codes)
                report = json.loads(_drive(command(json.dumps(target)), folder))
            _verify(case, report, exit_codes)
    except (Failed, peer_packages.Unavailable) as reason:
        fault = str(reason)
    return Outcome(case, fault, time.monotonic() - began, report)


def _target(case: Case, home: Home, socket: str, http: str, exit_codes: Path) -> dict[str, Any]:
    if case.transport == "http":
        return {"url": f"{http}/mcp"}
    env = {"PATH": os.environ["PATH"], **home.env}
    if case.transport == "unix" and case.peer == "mcp-2":
        return {"socket": socket}
    if case.transport == "unix":
        server = [sys.executable, str(DRIVERS / "socket_relay.py"), socket]
    else:
        recorder = [sys.executable, str(DRIVERS / "record_exit_code.py"), str(exit_codes)]
        server = [*recorder, *home.stdio(embedded=case.transport == "embedded")]
    return {"command": server, "env": env}


def _drive(command: list[str], folder: Path, **env: str) -> str:
    """Run the driver and return its stdout. `Failed` carries the end of its stderr."""
    try:
        done = subprocess.run(
            command,
            env={**os.environ, **env},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        raise Failed(f"took longer than {TIMEOUT_SECONDS:.0f} s") from late
    if done.returncode != 0:
        raise Failed(f"exit {done.returncode}: {done.stderr.strip()[-1500:]}")
    return done.stdout


def _inspect(
    case: Case, inspector: list[str], target: dict[str, Any], folder: Path
) -> dict[str, Any]:
    """List the tools and call one. The inspector makes one request per invocation."""

    def ask(*request: str) -> dict[str, Any]:
        era = ["--protocol-era", case.mode, "--format", "json"]
        server: list[str] = target.get("command") or ["--transport", "http", target["url"]]
        env = [
            word
            for key, value in target.get("env", {}).items()
            for word in ("-e", f"{key}={value}")
        ]
        # Keep the inspector's catalogue of servers out of the user's home directory.
        catalog = {"MCP_CATALOG_PATH": str(folder / "catalog.json"), "HOME": str(folder)}
        # `--tool-arg` takes words until the next flag, so the request precedes the other options.
        command = [*inspector, "--cli", *request, *env, *era, *server]
        report = json.loads(_drive(command, folder, **catalog))
        if not isinstance(report, dict) or "result" not in report:
            raise Failed(f"the inspector printed {report!r}"[:300])
        result: dict[str, Any] = report["result"]
        return result

    tools = ask("--method", "tools/list")["tools"]
    if "echo" not in {tool["name"] for tool in tools}:
        raise Failed("echo is not in the inspector's list")
    called = ask("--method", "tools/call", "--tool-name", "echo", "--tool-arg", "text=naïve 🧠")
    if called["content"][0]["text"] != "naïve 🧠":
        raise Failed(f"the echo was {called['content']}")
    # The inspector does not print the revision, but only a 2026-07-28 result names the server.
    is_modern = "io.modelcontextprotocol/serverInfo" in called.get("_meta", {})
    return {"version": MODERN if is_modern else "2025-11-25", "tools": len(tools)}


def _verify(case: Case, report: dict[str, Any], exit_codes: Path) -> None:
    if report["version"] != case.version:
        raise Failed(f"agreed on {report['version']}, expected {case.version}")
    if case.transport in ("unix", "http"):
        return  # the client started a relay or nothing; the daemon keeps running
    deadline = time.monotonic() + 5.0
    while not exit_codes.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    codes = exit_codes.read_text().split() if exit_codes.exists() else []
    if not codes or set(codes) != {"0"}:
        raise Failed(f"the server's exit codes were {codes or 'never written: it was killed'}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/clients", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--all", action="store_true", help="run every client over every transport")
    parser.add_argument("--list", action="store_true", help="list the cases without running them")
    parser.add_argument(
        "--only", default="", metavar="WORDS", help="run only cases whose name contains WORDS"
    )
    options = parser.parse_args()
    chosen = [case for case in cases() if (case.in_ci or options.all) and options.only in str(case)]
    if options.list or not chosen:
        print("\n".join(map(str, chosen)) or "no case matches")
        return 0 if chosen else 2
    absent = install(chosen)
    failures = 0
    with fresh_home() as home:
        served = home.serve(bind="127.0.0.1:0")
        print(
            f"{'client':20}{'mode':14}{'transport':10}{'revision':12}{'seconds':>8}{'exits in':>11}"
        )
        for case in chosen:
            if case.peer in absent:
                row = f"{case.client:20}{case.mode:14}{case.transport:10}"
                print(f"{row}SKIP  not installed: {absent[case.peer]}")
                continue
            outcome = run(case, home, str(served["socket"]), str(served["http"]))
            failures += outcome.fault is not None
            _print(outcome)
    print(f"{len(chosen)} cases, {failures} failed, {len(absent)} clients not installed")
    return 1 if failures else 0


def _print(outcome: Outcome) -> None:
    case = outcome.case
    row = (
        f"{case.client:20}{case.mode:14}{case.transport:10}{case.version:12}{outcome.seconds:8.1f}"
    )
    leaves = outcome.report.get("exit_seconds")
    print(f"{row}{'' if leaves is None else f'{leaves:.2f} s':>11}  ", end="")
    print("ok" if outcome.fault is None else f"FAIL\n{outcome.fault}", flush=True)


if __name__ == "__main__":
    sys.exit(main())

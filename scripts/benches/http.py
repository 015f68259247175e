"""HTTP benchmark: `tools/call` echo over POST /mcp, recalld and the official SDKs in one run.

Servers take turns in rounds, so that other load on the machine affects all of them equally. Ratios
are computed within a round, and the median round is reported. Each turn measures one connection
with sequential calls, then 32 connections at once, both for a fixed time. The client is minimal:
request bytes are built once, and responses are only counted and checked for the echo.

    scripts/bench.py http            5 rounds, 2 minutes
    scripts/bench.py http --quick    2 shorter rounds
    scripts/bench.py http --check    exit 1 if a limit is missed
    scripts/bench.py http --search   REST search at 10,000 memories, compared with the engine
"""

import argparse
import asyncio
import itertools
import json
import os
import select
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from scripts.kit import peer_packages

PEERS: Final = peer_packages.ROOT / "scripts" / "peers"
OURS: Final = ("recalld 2026-07-28", "recalld 2025-11-25")
PYTHON: Final = "mcp (Python SDK)"
TYPESCRIPT: Final = (
    "TypeScript SDK 1.x",
    "TypeScript SDK 2.x 2025-11-25",
    "TypeScript SDK 2.x 2026-07-28",
)
PARALLEL: Final = 32
TIMES_PYTHON: Final = 3.0
SEARCH_MS: Final = 2.0


@dataclass(frozen=True)
class Turn:
    """Results of one turn: seconds for one call, and calls per second with 32 connections."""

    p50: float
    p99: float
    per_second: float
    p50_parallel: float
    #: CPU time of the server per call; independent of other load.
    cpu: float


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench.py http", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--check", action="store_true", help="exit 1 if a limit is missed")
    parser.add_argument("--search", action="store_true", help="REST search at 10,000 memories")
    options = parser.parse_args()
    if options.search:
        return search(check=options.check)
    rounds, seconds = (2, 0.6) if options.quick else (5, 1.5)
    turns: dict[str, list[Turn]] = {}
    contenders = list(_contenders())
    for number in range(rounds):
        print(f"bench: round {number + 1} of {rounds}", file=sys.stderr)
        for name, command, modern in contenders:
            with served(command) as (port, pid):
                turns.setdefault(name, []).append(turn(port, pid, seconds, modern=modern))
    return report(turns, check=options.check)


def _contenders() -> Iterator[tuple[str, Callable[[int, str], list[str]], bool]]:
    recalld = str(peer_packages.ROOT / ".venv/bin/recalld")

    def ours(port: int, _home: str) -> list[str]:
        return [recalld, "serve", "--fixtures", "--bind", f"127.0.0.1:{port}"]

    yield OURS[0], ours, True
    yield OURS[1], ours, False
    try:
        command = [str(peer_packages.python_peer("mcp-2")), str(PEERS / "mcp_echo_http.py")]
        yield PYTHON, partial(_on_port, command), False
    except peer_packages.Unavailable as reason:
        print(f"bench: skipping {PYTHON}: {reason}", file=sys.stderr)
    for name, packages, script, modern in (
        (TYPESCRIPT[0], "sdk-1", "typescript_1_echo_http.mjs", False),
        (TYPESCRIPT[1], "node-2", "typescript_2_echo_http.mjs", False),
        (TYPESCRIPT[2], "node-2", "typescript_2_echo_http.mjs", True),
    ):
        try:
            command = [
                peer_packages.node(),
                str(peer_packages.npm_script(packages, PEERS / script)),
            ]
            yield name, partial(_on_port, command), modern
        except peer_packages.Unavailable as reason:
            print(f"bench: skipping {name}: {reason}", file=sys.stderr)


def _on_port(command: list[str], port: int, _home: str) -> list[str]:
    return [*command, str(port)]


@contextmanager
def served(command: Callable[[int, str], Sequence[str]]) -> Iterator[tuple[int, int]]:
    """Start a server on a free port; yield the port and the process id."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="recalld-bench-") as home:
        environment = {**os.environ, "RECALLD_HOME": home, "RECALLD_RATE_LIMIT": "0"}
        with (Path(home) / "log").open("wb") as log:
            process = subprocess.Popen(command(port, home), env=environment, stdout=log, stderr=log)
        try:
            _await(port, process, Path(home) / "log")
            yield port, process.pid
        finally:
            process.terminate()
            process.wait(10)


def _await(port: int, process: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.02)
    said = log.read_text(errors="replace")[-500:]
    raise SystemExit(f"bench: {process.args!r} did not start: {said}")


def turn(port: int, pid: int, seconds: float, *, modern: bool) -> Turn:
    request = _request(port, _call(modern=modern), _headers(port, modern=modern))
    _one_by_one(port, request, 0.3)  # warm
    one = sorted(_one_by_one(port, request, seconds))
    before = _cpu_seconds(pid)
    began = time.perf_counter()
    many = sorted(_at_once(port, request, seconds))
    took = time.perf_counter() - began
    return Turn(
        p50=one[len(one) // 2],
        p99=one[int(len(one) * 0.99)],
        per_second=len(many) / took,
        p50_parallel=many[len(many) // 2],
        cpu=(_cpu_seconds(pid) - before) / len(many),
    )


def _cpu_seconds(pid: int) -> float:
    """CPU time that a process has used; independent of other load."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _headers(port: int, *, modern: bool) -> dict[str, str]:
    if modern:
        return {
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": "tools/call",
            "Mcp-Name": "echo",
        }
    params = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "bench", "version": "1"},
    }
    opening = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
    with connected(port) as connection:
        head = exchange(connection, _request(port, opening, {}))
        lines = head.split(b"\r\n")
        found = [line for line in lines if line.lower().startswith(b"mcp-session-id:")]
        session = found[0].split(b":", 1)[1].strip().decode()
        headers = {"Mcp-Session-Id": session, "MCP-Protocol-Version": "2025-11-25"}
        note: dict[str, object] = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        exchange(connection, _request(port, note, headers))
    return headers


def _call(*, modern: bool) -> dict[str, object]:
    params: dict[str, object] = {"name": "echo", "arguments": {"text": "hello"}}
    if modern:
        params["_meta"] = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }
    return {"jsonrpc": "2.0", "id": 1234567, "method": "tools/call", "params": params}


def _request(port: int, message: dict[str, object], headers: dict[str, str]) -> bytes:
    body = json.dumps(message).encode()
    lines = [
        "POST /mcp HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        f"Content-Length: {len(body)}",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def connected(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), 30)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def exchange(connection: socket.socket, request: bytes) -> bytes:
    connection.sendall(request)
    answer = b""
    while not _is_whole(answer):
        more = connection.recv(65536)
        if not more:
            raise SystemExit(f"bench: the server closed the connection after {answer[:300]!r}")
        answer += more
    return answer


def _is_whole(answer: bytes) -> bool:
    head, found, body = answer.partition(b"\r\n\r\n")
    if not found:
        return False
    lower = head.lower() + b"\r\n"
    at = lower.find(b"content-length:")
    if at >= 0:
        return len(body) >= int(lower[at + 15 : lower.index(b"\r\n", at)])
    return body.endswith(b"0\r\n\r\n") or b"transfer-encoding: chunked" not in lower


def _numbered(request: bytes) -> Iterator[bytes]:
    """The same request repeatedly, each time with a new id."""
    before, _, after = request.partition(b"1234567")
    for number in itertools.count(1_000_000):
        yield before + b"%d" % number + after


def _check(answer: bytes) -> None:
    if b"hello" not in answer:
        raise SystemExit(f"bench: not an echo: {answer[:300]!r}")


def _one_by_one(port: int, request: bytes, seconds: float) -> list[float]:
    latencies: list[float] = []
    with connected(port) as connection:
        until = time.perf_counter() + seconds
        for numbered in _numbered(request):
            began = time.perf_counter()
            if began > until:
                return latencies
            _check(exchange(connection, numbered))
            latencies.append(time.perf_counter() - began)
    return latencies


def _at_once(port: int, request: bytes, seconds: float) -> list[float]:
    """Sequential calls on each of 32 connections, in one minimal event loop."""
    requests = _numbered(request)
    latencies: list[float] = []
    with ExitStack() as stack:
        poll = stack.enter_context(select.epoll())
        connections: dict[int, socket.socket] = {}
        began: dict[int, float] = {}
        partial: dict[int, bytes] = {}
        for _ in range(PARALLEL):
            connection = stack.enter_context(connected(port))
            number = connection.fileno()
            connections[number] = connection
            poll.register(number, select.EPOLLIN)
            began[number] = time.perf_counter()
            connection.sendall(next(requests))
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            for number, _ in poll.poll(1.0):
                answer = partial.pop(number, b"") + connections[number].recv(65536)
                if not _is_whole(answer):
                    partial[number] = answer
                    continue
                _check(answer)
                now = time.perf_counter()
                latencies.append(now - began[number])
                began[number] = now
                connections[number].sendall(next(requests))
    return latencies


def report(turns: dict[str, list[Turn]], *, check: bool) -> int:
    head = f"{'POST /mcp tools/call echo':30}{'p50 ms':>9}{'p99 ms':>9}{'32 at once /s':>15}"
    print(f"{head}{'p50 ms':>9}{'cpu ms/call':>15}")
    for name, taken in turns.items():
        row = [
            statistics.median(turn.p50 for turn in taken) * 1e3,
            statistics.median(turn.p99 for turn in taken) * 1e3,
            statistics.median(turn.per_second for turn in taken),
            statistics.median(turn.p50_parallel for turn in taken) * 1e3,
            statistics.median(turn.cpu for turn in taken) * 1e3,
        ]
        cells = f"{row[0]:9.2f}{row[1]:9.2f}{row[2]:15.0f}{row[3]:9.2f}{row[4]:15.3f}"
        print(f"{name:30}{cells}")
    missed = 0
    for ours in OURS:
        if PYTHON in turns:
            rates: tuple[tuple[str, Callable[[Turn], float]], ...] = (
                ("sequential", lambda turn: 1 / turn.p50),
                ("32 at once", lambda turn: turn.per_second),
            )
            for about, value in rates:
                pairs = zip(turns[ours], turns[PYTHON], strict=True)
                ratio = statistics.median(value(mine) / value(other) for mine, other in pairs)
                missed += _bar(f"{ours}: {about}, times {PYTHON}", ratio, at_least=TIMES_PYTHON)
        for typescript in TYPESCRIPT:
            if typescript in turns:
                pairs = zip(turns[ours], turns[typescript], strict=True)
                ratio = statistics.median(mine.p50 / other.p50 for mine, other in pairs)
                missed += _bar(f"{ours}: p50, of {typescript}'s", ratio, at_most=1.0)
    return 1 if check and missed else 0


def _bar(about: str, value: float, *, at_least: float = 0.0, at_most: float = float("inf")) -> int:
    is_held = at_least <= value <= at_most
    bound = f"at least {at_least:g}" if at_least else f"at most {at_most:g}"
    print(f"{'ok    ' if is_held else 'MISSED'} {about}: {value:.2f} ({bound})")
    return 0 if is_held else 1


# --- REST search --------------------------------------------------------------------------------


def search(*, check: bool) -> int:
    """Measure the overhead of REST over the engine's search at 10,000 memories."""
    from scripts.benches.support.http_search import added

    engine, rest = asyncio.run(added())
    print(f"engine search p50 {engine * 1e3:.2f} ms, REST search p50 {rest * 1e3:.2f} ms")
    missed = _bar("REST adds, in ms p50", (rest - engine) * 1e3, at_most=SEARCH_MS)
    return 1 if check and missed else 0


if __name__ == "__main__":
    sys.exit(main())

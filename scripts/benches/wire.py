"""Wire benchmark: echo calls over stdio, recalld and other servers in one run on one machine.

Servers take turns in rounds (A B C, A B C …), so that other load on the machine affects all of them
equally. Ratios are computed within a round, and the median round is reported. Each turn starts the
server and waits for its first responses, calls it sequentially, calls it with 64 requests in
flight, reads its resident set and stops it. Both call phases have a fixed time instead of a fixed
count, because the servers differ by a factor of hundreds.

    scripts/bench.py wire            7 rounds, under 4 minutes
    scripts/bench.py wire --quick    3 shorter rounds, under a minute
    scripts/bench.py wire --check    exit 1 if a limit is missed

Times are wall-clock at a client that does almost nothing (scripts/kit/stdio_client.py). `first
answer` is the time from before the start of the process to the response of `initialize`; `first
call` to the response of the first `tools/call`. A limit on cold start applies to both. Each server
runs in its own environment; recalld in the one that `scripts/recalld` creates.
"""

import argparse
import gc
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Final

from scripts.kit import peer_packages, stdio_client
from scripts.kit.recalld import Home, fresh_home, installed

PEERS: Final = peer_packages.ROOT / "scripts" / "peers"
WINDOW: Final = 64
MEGABYTE: Final = 1_000_000
OFFICIAL: Final = "mcp (Python SDK)"
EMBEDDED: Final = "recalld embedded"
BRIDGED: Final = "recalld bridged"
SPAWNING: Final = "recalld spawning daemon"
TYPESCRIPT: Final = ("TypeScript SDK 1.x", "TypeScript SDK 2.x")


@dataclass(frozen=True)
class Contender:
    name: str
    command: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Turn:
    """Results of one server in one round, in seconds and bytes."""

    first_answer: float
    first_call: float
    p50: float | None = None
    p99: float | None = None
    per_second: float | None = None
    resident: int | None = None


@dataclass(frozen=True)
class Effort:
    rounds: int
    starts: int
    seconds: float


FULL: Final = Effort(rounds=7, starts=2, seconds=0.8)
QUICK: Final = Effort(rounds=3, starts=1, seconds=0.4)


def main() -> int:
    options = _options()
    effort = QUICK if options.quick else FULL
    began = time.monotonic()
    with ExitStack() as stack:
        home = stack.enter_context(fresh_home(command=installed()))
        contenders, absent = gather(home, options.only)
        daemon = 0
        idle = None
        if any(contender.name == BRIDGED for contender in contenders):
            daemon = int(home.serve()["pid"])
            # One client has connected, called and disconnected: an idle daemon in normal use.
            start(Contender(BRIDGED, home.stdio(), home.env))
            idle = stdio_client.resident_bytes(daemon)
        turns: dict[str, list[Turn]] = {contender.name: [] for contender in contenders}
        spawning: list[Turn] = []
        for number in range(effort.rounds):
            _say(f"round {number + 1} of {effort.rounds}")
            for contender in contenders:
                turns[contender.name].append(take_turn(contender, effort))
            if daemon:
                spawning.append(start_with_spawn(home.command))
        after = stdio_client.resident_bytes(daemon) if daemon else None
    if spawning:
        turns[SPAWNING] = spawning
    bars = judge(turns, idle)
    report(turns, bars, absent, idle, after, time.monotonic() - began)
    if options.json:
        write_json(options.json, turns, bars, absent, idle, after, effort)
    return 1 if options.check and not all(bar.passed for bar in bars) else 0


def gather(home: Home, only: Sequence[str]) -> tuple[list[Contender], dict[str, str]]:
    """All servers that can run here; prints why the others cannot."""
    node = peer_packages.node
    entrants: list[tuple[str, Callable[[], Sequence[str]], Mapping[str, str]]] = [
        ("floor", lambda: [sys.executable, str(PEERS / "floor.py")], {}),
        (EMBEDDED, lambda: home.stdio(embedded=True), {}),
        (BRIDGED, home.stdio, home.env),
        (OFFICIAL, lambda: _python("mcp-2", "mcp_echo.py"), {}),
        ("fastmcp", lambda: _python("fastmcp", "fastmcp_echo.py"), {}),
        (TYPESCRIPT[0], lambda: [node(), _script("sdk-1", "typescript_1_echo.mjs")], {}),
        (TYPESCRIPT[1], lambda: [node(), _script("server-2", "typescript_2_echo.mjs")], {}),
    ]
    found: list[Contender] = []
    absent: dict[str, str] = {}
    for name, command, env in entrants:
        if only and not any(word in name for word in only):
            continue
        try:
            found.append(Contender(name, command(), env))
        except peer_packages.Unavailable as reason:
            absent[name] = str(reason)
            _say(f"{name} is left out: {reason}")
    return found, absent


def take_turn(contender: Contender, effort: Effort) -> Turn:
    starts = [start(contender) for _ in range(effort.starts - 1)]
    with ExitStack() as stack:
        child, first = _open(stack, contender)
        starts.append(first)
        # Warm up connections, caches and just-in-time compilers.
        number = pipelined(child, 10, min(0.3, effort.seconds))[0]
        number, waits = sequential(child, number, effort.seconds)
        before = number
        number, elapsed = pipelined(child, number, effort.seconds)
        return Turn(
            first_answer=statistics.median(turn.first_answer for turn in starts),
            first_call=statistics.median(turn.first_call for turn in starts),
            p50=statistics.median(waits),
            p99=waits[int(len(waits) * 0.99)],
            per_second=(number - before) / elapsed,
            resident=stdio_client.resident_bytes(child.pid),
        )


def start(contender: Contender) -> Turn:
    """Time one cold start, and stop the server."""
    with ExitStack() as stack:
        return _open(stack, contender)[1]


def start_with_spawn(command: str) -> Turn:
    """Time `recalld stdio` without a running daemon: it has to start one first."""
    with fresh_home(command=command) as home:
        return start(Contender(SPAWNING, home.stdio(), home.env))


def _open(stack: ExitStack, contender: Contender) -> tuple[stdio_client.Child, Turn]:
    env = dict(contender.env)
    if contender.name == EMBEDDED:
        # The embedded server locks its home, so create a fresh one before the clock starts.
        env = dict(stack.enter_context(fresh_home()).env)
    began = time.perf_counter()
    child = stack.enter_context(stdio_client.Child(contender.command, env))
    child.ask(stdio_client.initialize(), 0)
    answered = time.perf_counter()
    child.send(stdio_client.INITIALIZED)
    child.ask(stdio_client.echo(1, "first"), 1)
    return child, Turn(answered - began, time.perf_counter() - began)


def sequential(child: stdio_client.Child, first: int, seconds: float) -> tuple[int, list[float]]:
    """Sequential calls; return the next free id and the sorted latencies."""
    source = stdio_client.echoes(first)
    requests = list(islice(source, 20_000))
    waits: list[float] = []
    received: list[bytes] = []
    clock, write, read = time.perf_counter, os.write, os.read
    gc.disable()
    stop = clock() + seconds
    for frame in requests:
        began = clock()
        write(child.to, frame)
        answer = read(child.out, stdio_client.CHUNK)
        while not answer.endswith(b"\n"):
            answer += read(child.out, stdio_client.CHUNK)
        ended = clock()
        waits.append(ended - began)
        received.append(answer)
        if ended >= stop:
            break
    gc.enable()
    stdio_client.check_echoes(b"".join(received), first, len(waits))
    return first + len(waits), sorted(waits)


def pipelined(child: stdio_client.Child, first: int, seconds: float) -> tuple[int, float]:
    """Keep 64 calls in flight; return the next free id and the total time."""
    source = stdio_client.echoes(first)
    received: list[bytes] = []
    clock, read = time.perf_counter, os.read
    gc.disable()
    began = clock()
    stop = began + seconds
    child.send(b"".join(islice(source, WINDOW)))
    sent, answered = WINDOW, 0
    while answered < sent:
        chunk = read(child.out, stdio_client.CHUNK)
        if not chunk:
            raise stdio_client.WireFault("the server closed its output under load")
        received.append(chunk)
        lines = chunk.count(b"\n")
        answered += lines
        if lines and clock() < stop:
            child.send(b"".join(islice(source, lines)))
            sent += lines
    elapsed = clock() - began
    gc.enable()
    stdio_client.check_echoes(b"".join(received), first, sent)
    return first + sent, elapsed


# --- judging ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bar:
    words: str
    measured: float
    wanted: str
    passed: bool


def judge(turns: Mapping[str, list[Turn]], idle: int | None) -> list[Bar]:
    """Print PASS or FAIL for every limit that the available servers allow to check."""
    bars: list[Bar] = []

    def at_least(words: str, measured: float | None, bar: float) -> None:
        if measured is not None:
            bars.append(Bar(words, measured, f"at least {bar:g}", measured >= bar))

    def at_most(words: str, measured: float | None, bar: float) -> None:
        if measured is not None:
            bars.append(Bar(words, measured, f"at most {bar:.3g}", measured <= bar))

    at_least("pipelined, embedded / mcp", _ratio(turns, EMBEDDED, OFFICIAL, "per_second"), 20)
    for name in TYPESCRIPT:
        at_least(f"pipelined, embedded / {name}", _ratio(turns, EMBEDDED, name, "per_second"), 1.0)
    at_least("pipelined, bridged / embedded", _ratio(turns, BRIDGED, EMBEDDED, "per_second"), 0.5)
    at_most("sequential p50, embedded / mcp", _ratio(turns, EMBEDDED, OFFICIAL, "p50"), 1 / 6)
    for name, words, bar in ((BRIDGED, "running", 1 / 5), (SPAWNING, "to be spawned", 1 / 2)):
        for figure in ("first_answer", "first_call"):
            ratio = _ratio(turns, name, OFFICIAL, figure)
            at_most(f"{figure.replace('_', ' ')}, daemon {words} / mcp", ratio, bar)
    resident = _median(turns.get(BRIDGED, []), "resident")
    at_most("bridge resident set, MB", resident and resident / MEGABYTE, 25)
    at_most("idle daemon resident set, MB", idle and idle / MEGABYTE, 60)
    return bars


def _figures(turns: Sequence[Turn], figure: str) -> list[float]:
    values = [getattr(turn, figure) for turn in turns]
    return [float(value) for value in values if value is not None]


def _median(turns: Sequence[Turn], figure: str) -> float | None:
    values = _figures(turns, figure)
    return statistics.median(values) if values else None


def _ratio(turns: Mapping[str, list[Turn]], ours: str, theirs: str, figure: str) -> float | None:
    """The median of the ratios of each round, in which both sides had the same load."""
    mine, others = (_figures(turns.get(name, []), figure) for name in (ours, theirs))
    ratios = [left / right for left, right in zip(mine, others, strict=False)]
    return statistics.median(ratios) if ratios else None


# --- telling ------------------------------------------------------------------------------------


def report(
    turns: Mapping[str, list[Turn]],
    bars: Sequence[Bar],
    absent: Mapping[str, str],
    idle: int | None,
    after: int | None,
    seconds: float,
) -> None:
    print(f"{machine()}; {seconds:.0f} s; medians, ratios to {OFFICIAL} in brackets\n")
    columns = [
        ("first answer", "first_answer", 1e3, "ms"),
        ("first call", "first_call", 1e3, "ms"),
        ("p50", "p50", 1e6, "µs"),
        ("p99", "p99", 1e6, "µs"),
        ("pipelined", "per_second", 1.0, "/s"),
        ("RSS", "resident", 1 / MEGABYTE, "MB"),
    ]
    print(f"{'':24}" + "".join(f"{title:>18}" for title, *_ in columns))
    for name, rows in turns.items():
        cells = []
        for _, figure, scale, unit in columns:
            value = _median(rows, figure)
            ratio = _ratio(turns, name, OFFICIAL, figure)
            beside = (
                "" if ratio is None else f" ({ratio:.0f})" if ratio >= 10 else f" ({ratio:.2g})"
            )
            cells.append("-" if value is None else f"{value * scale:,.0f} {unit}{beside}")
        print(f"{name:24}" + "".join(f"{cell:>18}" for cell in cells))
    if idle and after:
        print(f"\ndaemon RSS: idle {idle / MEGABYTE:.1f} MB, after load {after / MEGABYTE:.1f} MB")
    if os.getloadavg()[0] > 2 * (os.cpu_count() or 1):
        print("\nthe machine is busy; repeat the run before using these figures")
    for name, reason in absent.items():
        print(f"skipped: {name}: {reason}")
    print()
    for bar in bars:
        verdict = "PASS" if bar.passed else "FAIL"
        print(f"{verdict}  {bar.words}: {bar.measured:.3g}, {bar.wanted}")


def write_json(
    path: Path,
    turns: Mapping[str, list[Turn]],
    bars: Sequence[Bar],
    absent: Mapping[str, str],
    idle: int | None,
    after: int | None,
    effort: Effort,
) -> None:
    contents = {
        "machine": machine(),
        "effort": asdict(effort),
        "window": WINDOW,
        "official": OFFICIAL,
        "turns": {name: [asdict(turn) for turn in rows] for name, rows in turns.items()},
        "daemonResident": {"idle": idle, "afterLoad": after},
        "bars": [asdict(bar) for bar in bars],
        "absent": dict(absent),
    }
    path.write_text(json.dumps(contents, indent=2) + "\n")


def machine() -> str:
    load = os.getloadavg()[0]
    system = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return f"{system}, Python {platform.python_version()}, load {load:.1f}"


def _python(peer: str, script: str) -> list[str]:
    return [str(peer_packages.python_peer(peer)), str(PEERS / script)]


def _script(peer: str, script: str) -> str:
    return str(peer_packages.npm_script(peer, PEERS / script))


def _say(words: str) -> None:
    print(f"wire: {words}", file=sys.stderr, flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench.py wire", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--quick", action="store_true", help="three short rounds")
    parser.add_argument("--check", action="store_true", help="exit 1 if a limit is missed")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write every figure to this file")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="WORD",
        help="only servers whose name contains WORD",
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

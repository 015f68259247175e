"""The wire soak: crowds, deaths, stampedes and people who do not read.

    scripts/soak.py wire                  everything, about five minutes
    scripts/soak.py wire crowd            64 socket clients x 8 calls in flight for 60 s
    scripts/soak.py wire deaths           kill -9 of the daemon every 2 s under 8 bridges, 60 s
    scripts/soak.py wire stops            the same with SIGTERM: a daemon that drains
    scripts/soak.py wire stampede         20 bridges at once on an empty home, 10 rounds
    scripts/soak.py wire readers          50 clients that ask for much and read nothing
    scripts/soak.py wire visitors         2,000 connections that come, call and go

`--seconds` and `--rounds` stretch a soak. Each prints its figures and PASS or FAIL; exit 1 when one
failed. The short versions run as tests (tests/faults/test_processes.py).
"""

import argparse
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from scripts.kit import pipes, swarm
from scripts.kit.ours import COMMAND, daemons, fresh_home, gone
from scripts.kit.swarm import Talker

MEGABYTE: Final = 1_000_000


@dataclass(frozen=True)
class Verdict:
    """What a soak found: no faults means it passed."""

    soak: str
    figures: str
    faults: Sequence[str]


def crowd(clients: int, window: int, seconds: float) -> Verdict:
    """Every answer reaches the one who asked, once, whatever the crowd."""
    faults: list[str] = []
    with fresh_home() as home, ExitStack() as stack:
        told = home.serve()
        pid, path = int(told["pid"]), str(told["socket"])
        talkers = [
            _socket_talker(stack, path, f"client-{number}", window) for number in range(clients)
        ]
        swarm.talk(talkers, min(1.0, seconds / 4))  # settle: buffers grown, caches filled
        before = pipes.resident_bytes(pid), pipes.open_descriptors(pid)
        for talker in talkers:
            del talker.waits[:]
        began = time.perf_counter()
        answered = sum(talker.results for talker in talkers)
        _talk(talkers, seconds, faults)
        rate = (sum(talker.results for talker in talkers) - answered) / (
            time.perf_counter() - began
        )
        after = pipes.resident_bytes(pid), pipes.open_descriptors(pid)
        faults += _unanswered(talkers)
        if failed := swarm.errors(talkers):
            faults.append(f"errors where there should be none: {dict(failed)}")
        faults += _growth(before, after, 20 * MEGABYTE)
        p50, p99 = swarm.percentiles(talkers)
        return Verdict(
            "crowd",
            f"{clients} clients x {window} for {seconds:g} s: "
            f"{sum(talker.results for talker in talkers):,} answers, {rate:,.0f}/s, "
            f"p50 {p50 * 1e3:.1f} ms, p99 {p99 * 1e3:.1f} ms, "
            f"RSS {before[0] / MEGABYTE:.1f} to {after[0] / MEGABYTE:.1f} MB, "
            f"descriptors {before[1]} to {after[1]}",
            faults,
        )


def deaths(
    bridges: int, seconds: float, every: float, how: signal.Signals = signal.SIGKILL
) -> Verdict:
    """The daemon dies again and again; every call is answered once: a result or an error."""
    faults: list[str] = []
    killed: list[int] = []
    with fresh_home() as home, ExitStack() as stack:
        children = [
            stack.enter_context(pipes.Child(home.stdio(), home.env, home.log))
            for _ in range(bridges)
        ]
        talkers = [
            # Every other one sends long texts, so that deaths also fall into half-written frames.
            Talker(
                f"bridge-{number}",
                child.out,
                child.to,
                window=4,
                interval=0.005,
                filler="." * (number % 2 * 30_000),
            )
            for number, child in enumerate(children)
        ]
        _talk(talkers, 0.1, faults)  # everybody has opened before the first death
        due = every

        def kill(now: float) -> None:
            nonlocal due
            if now < due or now > seconds:
                return
            due = now + every
            found = daemons(home)
            if found:
                os.kill(found[0], how)
                killed.append(found[0])

        _talk(talkers, seconds, faults, tick=kill)
        faults += _unanswered(talkers)
        served = sum(talker.results for talker in talkers)
        refused = swarm.errors(talkers)
        _recover(talkers, faults)
        # The waiter's longest wait is how long a client was left without any word.
        longest = max((wait for talker in talkers for wait in talker.waits), default=0.0)
        if len(killed) < 1:
            faults.append("no daemon was ever found to kill")
        faults += [f"{each.name} was closed" for each in talkers if each.closed]
        codes = {child.close() for child in children}
        if codes != {0}:
            faults.append(f"bridges exited with {sorted(codes)}")
        return Verdict(
            "deaths",
            f"{bridges} bridges for {seconds:g} s, {len(killed)} daemons ended by {how.name}: "
            f"{served:,} results, {refused.total():,} errors {dict(refused)}, "
            f"longest wait {longest:.2f} s",
            faults,
        )


def _recover(talkers: Sequence[Talker], faults: list[str]) -> None:
    """After the last death every bridge gets results again, by itself."""
    deadline = time.monotonic() + 15.0
    waiting = [talker for talker in talkers if not talker.closed]
    while waiting and time.monotonic() < deadline:
        before = {talker.name: talker.results for talker in waiting}
        _talk(waiting, 0.3, faults)
        waiting = [talker for talker in waiting if talker.results == before[talker.name]]
    faults += [f"{talker.name} did not recover within 15 s" for talker in waiting]


def stampede(bridges: int, rounds: int) -> Verdict:
    """All start at once where nothing runs; all are served, by exactly one daemon."""
    faults: list[str] = []
    slowest = 0.0
    for number in range(rounds):
        with fresh_home() as home, ExitStack() as stack:
            began = time.monotonic()
            children = [
                stack.enter_context(pipes.Child(home.stdio(), home.env, home.log))
                for _ in range(bridges)
            ]
            for child in children:
                child.send(pipes.initialize() + pipes.INITIALIZED)
            for who, child in enumerate(children):
                try:
                    child.ask(pipes.echo(1, f"bridge {who}"), 1)
                except pipes.WireFault as fault:
                    faults.append(f"round {number}: bridge {who}: {fault}")
            slowest = max(slowest, time.monotonic() - began)
            # A loser of the race may still be on its way out; what counts is who stays.
            deadline = time.monotonic() + 3.0
            while len(found := daemons(home)) != 1 and time.monotonic() < deadline:
                time.sleep(0.02)
            if len(found) != 1:
                faults.append(f"round {number}: {len(found)} daemons instead of one")
            codes = {child.close() for child in children}
            if codes != {0}:
                faults.append(f"round {number}: bridges exited with {sorted(codes)}")
            home.run("stop")
            faults += [
                f"round {number}: daemon {pid} did not stop" for pid in found if not gone(pid, 5)
            ]
    return Verdict(
        "stampede",
        f"{bridges} bridges at once, {rounds} rounds, the slowest served in {slowest:.2f} s",
        faults,
    )


def readers(clients: int, seconds: float) -> Verdict:
    """Clients that ask for megabytes and read nothing cost no memory and delay nobody else."""
    faults: list[str] = []
    with fresh_home() as home, ExitStack() as stack:
        told = home.serve()
        pid, path = int(told["pid"]), str(told["socket"])
        honest = [_socket_talker(stack, path, "honest", 1)]
        swarm.talk(honest, min(1.0, seconds / 4))
        calm = swarm.percentiles(honest)[1]
        del honest[0].waits[:]
        before = pipes.resident_bytes(pid), pipes.open_descriptors(pid)
        deaf = [_deaf(stack, path) for _ in range(clients)]
        peak = 0
        asked = 0

        def shout(now: float) -> None:
            nonlocal peak, asked
            peak = max(peak, pipes.resident_bytes(pid))
            for number, peer in enumerate(deaf):
                frame = pipes.request(
                    asked, "tools/call", {"name": "big", "arguments": {"bytes": 100_000}}
                )
                try:
                    # A frame cut short would be a different test: send all of it or none.
                    sent = peer.send(frame)
                except (BlockingIOError, BrokenPipeError, ConnectionResetError):
                    continue
                asked += 1
                if sent < len(frame):
                    deaf[number] = _deaf(stack, path)

        _talk(honest, seconds, faults, tick=shout)
        faults += _unanswered(honest)
        busy = swarm.percentiles(honest)[1]
        grown = peak - before[0]
        if grown > 64 * MEGABYTE:
            faults.append(f"the daemon grew by {grown / MEGABYTE:.0f} MB, at most 64 are allowed")
        if busy > max(0.25, 2 * calm):
            faults.append(
                f"an honest client's p99 went from {calm * 1e3:.1f} to {busy * 1e3:.1f} ms"
            )
        for peer in deaf:
            peer.close()
        after = _settled(pid, before[1])
        if after > before[1] + 2:
            faults.append(f"descriptors went from {before[1]} to {after} after all had left")
        return Verdict(
            "readers",
            f"{clients} deaf clients asked {asked:,} times for 100 kB in {seconds:g} s: "
            f"RSS {before[0] / MEGABYTE:.1f} MB, peak {peak / MEGABYTE:.1f} MB; an honest client's "
            f"p99 {calm * 1e3:.1f} ms before, {busy * 1e3:.1f} ms among them",
            faults,
        )


def visitors(visits: int) -> Verdict:
    """Connections that come, call and go leave nothing behind."""
    faults: list[str] = []
    with fresh_home() as home:
        told = home.serve()
        pid, path = int(told["pid"]), str(told["socket"])
        _visit(path, max(20, visits // 5), faults)
        before = pipes.resident_bytes(pid), _settled(pid, 0, 0.5)
        _visit(path, visits, faults)
        after = pipes.resident_bytes(pid), _settled(pid, before[1])
        faults += _growth(before, after, 5 * MEGABYTE)
        return Verdict(
            "visitors",
            f"{visits} visits: RSS {before[0] / MEGABYTE:.1f} to {after[0] / MEGABYTE:.1f} MB, "
            f"descriptors {before[1]} to {after[1]}",
            faults,
        )


def _visit(path: str, times: int, faults: list[str]) -> None:
    for start in range(0, times, 20):
        with ExitStack() as stack:
            count = min(20, times - start)
            talkers = [
                _socket_talker(stack, path, f"visitor-{start + each}", 2) for each in range(count)
            ]
            _talk(talkers, 0.02, faults)
            faults += _unanswered(talkers)


# --- what they share ---------------------------------------------------------------------------


def _socket_talker(stack: ExitStack, path: str, name: str, window: int) -> Talker:
    peer = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
    peer.connect(path)
    return Talker(name, peer.fileno(), peer.fileno(), window)


def _deaf(stack: ExitStack, path: str) -> socket.socket:
    peer = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
    peer.connect(path)
    peer.sendall(pipes.initialize("open") + pipes.INITIALIZED)
    peer.setblocking(False)
    return peer


def _talk(
    talkers: Sequence[Talker],
    seconds: float,
    faults: list[str],
    tick: Callable[[float], None] = lambda now: None,
) -> None:
    try:
        swarm.talk(talkers, seconds, tick=tick)
    except swarm.Misdeed as misdeed:
        faults.append(str(misdeed))


def _unanswered(talkers: Sequence[Talker]) -> list[str]:
    count = swarm.lost(talkers)
    closed = sum(talker.closed for talker in talkers)
    return [f"{count} calls were never answered ({closed} connections closed)"] if count else []


def _growth(before: tuple[int, int], after: tuple[int, int], allowed: int) -> list[str]:
    faults = []
    if after[0] - before[0] > allowed:
        faults.append(f"RSS grew by {(after[0] - before[0]) / MEGABYTE:.1f} MB")
    if abs(after[1] - before[1]) > 2:
        faults.append(f"descriptors went from {before[1]} to {after[1]}")
    return faults


def _settled(pid: int, wanted: int, seconds: float = 3.0) -> int:
    """The descriptor count once connections that were closed here are closed there."""
    deadline = time.monotonic() + seconds
    while (count := pipes.open_descriptors(pid)) > wanted + 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    return count


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/soak.py wire", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("soak", nargs="*", metavar="SOAK", help="which; all if none is named")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    soaks: dict[str, Callable[[], Verdict]] = {
        "crowd": lambda: crowd(64, 8, options.seconds),
        "deaths": lambda: deaths(8, options.seconds, 2.0),
        "stops": lambda: deaths(8, options.seconds, 2.0, signal.SIGTERM),
        "stampede": lambda: stampede(20, options.rounds),
        "readers": lambda: readers(50, min(20.0, options.seconds)),
        "visitors": lambda: visitors(2_000),
    }
    unknown = [name for name in options.soak if name not in soaks]
    if unknown:
        parser.error(f"no soak named {unknown[0]!r}; there are {', '.join(soaks)}")
    if not Path(COMMAND).exists():
        parser.error(f"{COMMAND} is not there; run scripts/install")
    failed = False
    for name in options.soak or soaks:
        verdict = soaks[name]()
        failed |= bool(verdict.faults)
        print(f"{'FAIL' if verdict.faults else 'PASS'}  {name}: {verdict.figures}")
        for fault in verdict.faults[:10]:
            print(f"      {fault}")
        sys.stdout.flush()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""Soak tests of the transports: many clients, killed daemons, start-up races, stalled readers.

    scripts/soak.py wire                  everything, about five minutes
    scripts/soak.py wire crowd            64 socket clients x 8 calls in flight for 60 s
    scripts/soak.py wire kills            kill -9 of the daemon every 2 s under 8 bridges, 60 s
    scripts/soak.py wire stops            the same with SIGTERM: a daemon that drains
    scripts/soak.py wire stampede         20 bridges at once on an empty home, 10 rounds
    scripts/soak.py wire stalled_readers  50 clients that request much and read nothing
    scripts/soak.py wire short_connections  2,000 short connections

`--seconds` and `--rounds` change the length. Each test prints its figures and PASS or FAIL; the
exit status is 1 if one failed. Short versions run as tests (tests/faults/test_processes.py).
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

from scripts.kit import many_clients, stdio_client
from scripts.kit.many_clients import Talker
from scripts.kit.recalld import COMMAND, daemons, fresh_home, gone

MEGABYTE: Final = 1_000_000


@dataclass(frozen=True)
class Verdict:
    """The result of a soak test: it passed if there are no faults."""

    soak: str
    figures: str
    faults: Sequence[str]


def crowd(clients: int, window: int, seconds: float) -> Verdict:
    """Every response reaches the right client exactly once, with many clients."""
    faults: list[str] = []
    with fresh_home() as home, ExitStack() as stack:
        told = home.serve()
        pid, path = int(told["pid"]), str(told["socket"])
        talkers = [
            _socket_talker(stack, path, f"client-{number}", window) for number in range(clients)
        ]
        many_clients.talk(talkers, min(1.0, seconds / 4))  # warm up buffers and caches
        before = stdio_client.resident_bytes(pid), stdio_client.open_descriptors(pid)
        for talker in talkers:
            del talker.waits[:]
        began = time.perf_counter()
        answered = sum(talker.results for talker in talkers)
        _talk(talkers, seconds, faults)
        rate = (sum(talker.results for talker in talkers) - answered) / (
            time.perf_counter() - began
        )
        after = stdio_client.resident_bytes(pid), stdio_client.open_descriptors(pid)
        faults += _unanswered(talkers)
        if failed := many_clients.errors(talkers):
            faults.append(f"errors where there should be none: {dict(failed)}")
        faults += _growth(before, after, 20 * MEGABYTE)
        p50, p99 = many_clients.percentiles(talkers)
        return Verdict(
            "crowd",
            f"{clients} clients x {window} for {seconds:g} s: "
            f"{sum(talker.results for talker in talkers):,} answers, {rate:,.0f}/s, "
            f"p50 {p50 * 1e3:.1f} ms, p99 {p99 * 1e3:.1f} ms, "
            f"RSS {before[0] / MEGABYTE:.1f} to {after[0] / MEGABYTE:.1f} MB, "
            f"descriptors {before[1]} to {after[1]}",
            faults,
        )


def kills(
    bridges: int, seconds: float, every: float, how: signal.Signals = signal.SIGKILL
) -> Verdict:
    """Every call gets one result or error while the daemon is killed repeatedly."""
    faults: list[str] = []
    killed: list[int] = []
    with fresh_home() as home, ExitStack() as stack:
        children = [
            stack.enter_context(stdio_client.Child(home.stdio(), home.env, home.log))
            for _ in range(bridges)
        ]
        talkers = [
            # Every other client sends long texts, so that kills also interrupt partial frames.
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
        _talk(talkers, 0.1, faults)  # all clients are connected before the first kill
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
        refused = many_clients.errors(talkers)
        _recover(talkers, faults)
        # The longest wait is the longest time that a client got no response.
        longest = max((wait for talker in talkers for wait in talker.waits), default=0.0)
        if len(killed) < 1:
            faults.append("no daemon was ever found to kill")
        faults += [f"{each.name} was closed" for each in talkers if each.closed]
        codes = {child.close() for child in children}
        if codes != {0}:
            faults.append(f"bridges exited with {sorted(codes)}")
        return Verdict(
            "kills",
            f"{bridges} bridges for {seconds:g} s, {len(killed)} daemons ended by {how.name}: "
            f"{served:,} results, {refused.total():,} errors {dict(refused)}, "
            f"longest wait {longest:.2f} s",
            faults,
        )


def _recover(talkers: Sequence[Talker], faults: list[str]) -> None:
    """After the last kill every bridge recovers without help."""
    deadline = time.monotonic() + 15.0
    waiting = [talker for talker in talkers if not talker.closed]
    while waiting and time.monotonic() < deadline:
        before = {talker.name: talker.results for talker in waiting}
        _talk(waiting, 0.3, faults)
        waiting = [talker for talker in waiting if talker.results == before[talker.name]]
    faults += [f"{talker.name} did not recover within 15 s" for talker in waiting]


def stampede(bridges: int, rounds: int) -> Verdict:
    """Bridges that start at once without a daemon are all served by exactly one daemon."""
    faults: list[str] = []
    slowest = 0.0
    for number in range(rounds):
        with fresh_home() as home, ExitStack() as stack:
            began = time.monotonic()
            children = [
                stack.enter_context(stdio_client.Child(home.stdio(), home.env, home.log))
                for _ in range(bridges)
            ]
            for child in children:
                child.send(stdio_client.initialize() + stdio_client.INITIALIZED)
            for who, child in enumerate(children):
                try:
                    child.ask(stdio_client.echo(1, f"bridge {who}"), 1)
                except stdio_client.WireFault as fault:
                    faults.append(f"round {number}: bridge {who}: {fault}")
            slowest = max(slowest, time.monotonic() - began)
            # A daemon that lost the race may still be exiting; count the ones that remain.
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


def stalled_readers(clients: int, seconds: float) -> Verdict:
    """Clients that request megabytes and read nothing cost no memory and delay no other client."""
    faults: list[str] = []
    with fresh_home() as home, ExitStack() as stack:
        told = home.serve()
        pid, path = int(told["pid"]), str(told["socket"])
        honest = [_socket_talker(stack, path, "honest", 1)]
        many_clients.talk(honest, min(1.0, seconds / 4))
        calm = many_clients.percentiles(honest)[1]
        del honest[0].waits[:]
        before = stdio_client.resident_bytes(pid), stdio_client.open_descriptors(pid)
        deaf = [_deaf(stack, path) for _ in range(clients)]
        peak = 0
        asked = 0

        def shout(now: float) -> None:
            nonlocal peak, asked
            peak = max(peak, stdio_client.resident_bytes(pid))
            for number, peer in enumerate(deaf):
                frame = stdio_client.request(
                    asked, "tools/call", {"name": "big", "arguments": {"bytes": 100_000}}
                )
                try:
                    # Send whole frames only; a truncated frame would be another test.
                    sent = peer.send(frame)
                except (BlockingIOError, BrokenPipeError, ConnectionResetError):
                    continue
                asked += 1
                if sent < len(frame):
                    deaf[number] = _deaf(stack, path)

        _talk(honest, seconds, faults, tick=shout)
        faults += _unanswered(honest)
        busy = many_clients.percentiles(honest)[1]
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
            "stalled_readers",
            f"{clients} deaf clients asked {asked:,} times for 100 kB in {seconds:g} s: "
            f"RSS {before[0] / MEGABYTE:.1f} MB, peak {peak / MEGABYTE:.1f} MB; an honest client's "
            f"p99 {calm * 1e3:.1f} ms before, {busy * 1e3:.1f} ms among them",
            faults,
        )


def short_connections(visits: int) -> Verdict:
    """Short connections leave no descriptors or memory behind."""
    faults: list[str] = []
    with fresh_home() as home:
        told = home.serve()
        pid, path = int(told["pid"]), str(told["socket"])
        _visit(path, max(20, visits // 5), faults)
        before = stdio_client.resident_bytes(pid), _settled(pid, 0, 0.5)
        _visit(path, visits, faults)
        after = stdio_client.resident_bytes(pid), _settled(pid, before[1])
        faults += _growth(before, after, 5 * MEGABYTE)
        return Verdict(
            "short_connections",
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


# --- helpers ------------------------------------------------------------------------------------


def _socket_talker(stack: ExitStack, path: str, name: str, window: int) -> Talker:
    peer = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
    peer.connect(path)
    return Talker(name, peer.fileno(), peer.fileno(), window)


def _deaf(stack: ExitStack, path: str) -> socket.socket:
    peer = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
    peer.connect(path)
    peer.sendall(stdio_client.initialize("open") + stdio_client.INITIALIZED)
    peer.setblocking(False)
    return peer


def _talk(
    talkers: Sequence[Talker],
    seconds: float,
    faults: list[str],
    tick: Callable[[float], None] = lambda now: None,
) -> None:
    try:
        many_clients.talk(talkers, seconds, tick=tick)
    except many_clients.WrongResponse as error:
        faults.append(str(error))


def _unanswered(talkers: Sequence[Talker]) -> list[str]:
    count = many_clients.lost(talkers)
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
    """The descriptor count of the server after it has closed all finished connections."""
    deadline = time.monotonic() + seconds
    while (
        count := stdio_client.open_descriptors(pid)
    ) > wanted + 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    return count


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/soak.py wire", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("soak", nargs="*", metavar="SOAK", help="tests to run (default: all)")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    soaks: dict[str, Callable[[], Verdict]] = {
        "crowd": lambda: crowd(64, 8, options.seconds),
        "kills": lambda: kills(8, options.seconds, 2.0),
        "stops": lambda: kills(8, options.seconds, 2.0, signal.SIGTERM),
        "stampede": lambda: stampede(20, options.rounds),
        "stalled_readers": lambda: stalled_readers(50, min(20.0, options.seconds)),
        "short_connections": lambda: short_connections(2_000),
    }
    unknown = [name for name in options.soak if name not in soaks]
    if unknown:
        parser.error(f"unknown soak test {unknown[0]!r}; use {', '.join(soaks)}")
    if not Path(COMMAND).exists():
        parser.error(f"{COMMAND} does not exist; run scripts/install")
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

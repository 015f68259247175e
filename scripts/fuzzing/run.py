"""One fuzz run: segments of frames, each on its own connection and in one revision.

After every burst the run sends a valid marker request and waits for its response, which proves that
the connection is still usable. It compares the resident set after a third of a segment, when caches
are full, with the one at the end.
"""

import contextlib
import json
import os
import shlex
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

from scripts.fuzzing import corpus, mutate
from scripts.fuzzing.oracle import Oracle, Violation
from scripts.fuzzing.tool_calls import tool_call
from scripts.kit.duplex import Duplex, Hangup, Silence
from scripts.kit.peer_packages import CACHE
from scripts.kit.recalld import Home, alive, daemons, fresh_home
from scripts.kit.stdio_client import Child, resident_bytes

TRANSPORTS: Final = ("stdio", "bridge", "unix")
PATIENCE: Final = 20.0
LEAVING: Final = 5.0
GROWTH: Final = 12_000_000
HUGE: Final = (300_000, 2_000_000, 12_000_000)


@dataclass
class FuzzFailure(Exception):
    """A violation, with the data to reproduce it."""

    words: str
    seed: int
    revision: str
    frames: int
    saved: Path | None = None

    def __str__(self) -> str:
        kept = f"; the frames are in {self.saved}" if self.saved else ""
        where = f"seed {self.seed}, revision {self.revision}, after {self.frames} frames"
        return f"{self.words} ({where}{kept})"


@dataclass
class Tally:
    """Counts of a run."""

    frames: int = 0
    answers: int = 0
    nameless: int = 0
    notices: int = 0
    killed: int = 0
    codes: dict[int, int] = field(default_factory=dict)
    growth: dict[str, int] = field(default_factory=dict)
    resident: dict[str, int] = field(default_factory=dict)


@dataclass
class Wire:
    """An open connection and its server processes by name."""

    read: int
    write: int
    processes: dict[str, int]
    hang_up: Callable[[], None]
    exit_code: Callable[[], int]

    @property
    def is_process(self) -> bool:
        return self.read != self.write


class Target:
    """The server under test: opens a new connection for each segment."""

    def __init__(
        self,
        stack: ExitStack,
        transport: str,
        command: str | None = None,
        kills: float = 0.0,
        *,
        real: bool = False,
    ) -> None:
        self.transport = transport
        self.kills = kills
        self.real = real
        self.tools: list[corpus.Frame] = []
        self.command = command
        self.daemon = 0
        self.home: Home | None = None
        self.socket = ""
        if command is None:
            self.home = stack.enter_context(fresh_home())
            if transport != "stdio" and not kills:
                status = self.home.serve(fixtures=not real)
                self.daemon, self.socket = int(status["pid"]), str(status["socket"])

    def open(self, stack: ExitStack) -> Wire:
        if self.transport == "unix":
            peer = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            peer.connect(self.socket)
            number = peer.fileno()
            return Wire(
                number,
                number,
                {"daemon": self.daemon},
                hang_up=lambda: peer.shutdown(socket.SHUT_WR),
                exit_code=lambda: 0,
            )
        if self.command is not None:
            command, env = shlex.split(self.command), {}
        else:
            assert self.home is not None
            embedded = self.transport == "stdio"
            command = self.home.stdio(embedded=embedded, fixtures=not self.real)
            env = self.home.env
        log = self.home.log if self.home else None
        child = stack.enter_context(Child(command, env, log))
        processes = {"server" if self.transport == "stdio" else "bridge": child.pid}
        if self.daemon:
            processes["daemon"] = self.daemon

        return Wire(child.out, child.to, processes, child.hang_up, child.close)

    def list_tools(self) -> None:
        """Fetch the server's list of tools on a separate connection."""
        heard: list[bytes] = []
        with ExitStack() as stack:
            wire = self.open(stack)
            duplex = Duplex(wire.read, wire.write, heard.append)
            opening = mutate.write(corpus.opening(0, corpus.LEGACY[-1]))
            listing = mutate.write(corpus.call(1, "tools/list", None, modern=False))
            duplex.exchange(opening + b"\n" + listing + b"\n", lambda: len(heard) >= 2, PATIENCE)
            wire.hang_up()
            wire.exit_code()
        self.tools = json.loads(heard[1])["result"]["tools"]


class Maker:
    """Generates the frames of one segment from one `Random`."""

    def __init__(
        self, rng: Random, revision: str, oracle: Oracle, tools: list[corpus.Frame]
    ) -> None:
        self.rng, self.revision, self.oracle, self.tools = rng, revision, oracle, tools
        self.number = 0
        self.known: list[Any] = [0, 1, "1", "", -1]
        self.lasting: list[Any] = [0, 1, "1", "", -1]

    def next(self) -> bytes:
        self.number += 1
        kind = self.rng.random()
        if kind < 0.25:
            identity = f"V-{self.number}"
            self.oracle.require(identity)
            return mutate.write(self.prompt(identity)) + b"\n"
        if kind < 0.32:
            identity = f"s-{self.number}"
            self.lasting.append(identity)
            frame = corpus.lasting_request(self.rng, identity, self.revision)
            return mutate.write(frame) + b"\n"
        if kind < 0.37:
            return mutate.write(corpus.notice(self.rng)) + b"\n"
        if kind < 0.40:
            answer = corpus.unasked_response(self.rng, self.rng.choice(self.known))
            return mutate.write(answer) + b"\n"
        if kind < 0.44:
            return mutate.write(corpus.cancel(self.rng.choice(self.known))) + b"\n"
        if kind < 0.46:
            batch = [self.base() for _ in range(self.rng.randrange(1, 6))]
            return mutate.write(batch) + b"\n"
        if kind < 0.4605:
            return b'{"jsonrpc":"2.0","id":1,"x":"' + b"a" * self.rng.choice(HUGE) + b'"}\n'
        return self.harmed()

    def base(self) -> dict[str, Any]:
        """A frame to mutate; its id requires no response."""
        identity: Any = self.number if self.rng.random() < 0.5 else f"t-{self.number}"
        self.known.append(identity)
        if len(self.known) > 40:
            del self.known[5]
        kind = self.rng.random()
        if kind < 0.08:
            return corpus.opening(identity, self.rng.choice(corpus.REVISIONS))
        if kind < 0.16:
            return corpus.cancel(self.rng.choice(self.known))
        if kind < 0.24:
            self.lasting.append(identity)
            return corpus.lasting_request(self.rng, identity, self.revision)
        return self.prompt(identity)

    def prompt(self, identity: Any) -> corpus.Frame:
        """A request that is answered at once: a fixture tool or a tool of the server."""
        if self.tools and self.rng.random() < 0.8:
            method, params = tool_call(self.rng, self.tools)
            modern = self.revision == corpus.MODERN
            return corpus.call(identity, method, params, modern=modern)
        return corpus.prompt_request(self.rng, identity, self.revision)

    def harmed(self) -> bytes:
        tree = self.rng.random()
        frame: Any = self.base()
        if tree < 0.75:
            frame = mutate.mutate_tree(self.rng, frame, self.known)
        line = mutate.write(frame)
        if tree > 0.65:
            line = mutate.mutate_bytes(self.rng, line, mutate.write(self.base()))
        if self.rng.random() < 0.01:
            # Two frames on one line. Mutate the second too, because its response may be lost.
            return line + self.harmed()
        return line + self.rng.choice((b"\n",) * 8 + (b"\r\n", b"\n\n"))

    def marker(self) -> tuple[str, bytes]:
        self.number += 1
        identity = f"M-{self.number}"
        self.oracle.require(identity)
        modern = self.revision == corpus.MODERN
        method = "server/discover" if modern else "ping"
        return identity, mutate.write(corpus.call(identity, method, None, modern=modern)) + b"\n"

    def cancellations(self) -> bytes:
        """Frames that cancel everything that may still be running."""
        frames = b"".join(mutate.write(corpus.cancel(each)) + b"\n" for each in self.lasting)
        del self.lasting[5:]
        return frames


def fuzz(
    transport: str,
    frames: int,
    seed: int,
    *,
    command: str | None = None,
    revisions: tuple[str, ...] = corpus.REVISIONS,
    kills: float = 0.0,
    real: bool = False,
    say: Callable[[str], None] = lambda words: None,
) -> Tally:
    """Send this many frames, spread over the revisions; raise `FuzzFailure` at the first violation.

    `kills` is the probability, for each burst, that the daemon behind a bridge is killed during it.
    An error that reports the kill then counts as the one response. `real` calls the shipped tools
    instead of the fixtures.
    """
    tally = Tally()
    with ExitStack() as stack:
        target = Target(stack, transport, command, kills, real=real)
        if real:
            target.list_tools()
        for part, revision in enumerate(revisions):
            share = frames // len(revisions) + (part < frames % len(revisions))
            before = time.monotonic()
            _segment(target, Random(f"{seed}/{revision}"), revision, share, seed, tally)
            say(f"{transport} {revision}: {share} frames in {time.monotonic() - before:.1f} s")
    return tally


def _segment(
    target: Target, rng: Random, revision: str, frames: int, seed: int, tally: Tally
) -> None:
    oracle = Oracle(deaths=target.kills > 0)
    maker = Maker(rng, revision, oracle, target.tools)
    log: list[bytes] = []
    sent = 0
    try:
        with ExitStack() as stack:
            wire = target.open(stack)
            duplex = Duplex(wire.read, wire.write, oracle.received)

            def pump(data: bytes, awaited: str | None) -> None:
                log.append(data)
                oracle.sending(data)
                for piece in _chopped(rng, data):
                    duplex.exchange(piece, lambda: True, PATIENCE)
                if target.home is not None and rng.random() < target.kills:
                    tally.killed += _kill(target.home)
                if awaited:
                    duplex.exchange(b"", lambda: awaited not in oracle.unanswered, PATIENCE)

            if revision != corpus.MODERN:
                oracle.require("M-0")
                opening = mutate.write(corpus.opening("M-0", revision)) + b"\n"
                ready = mutate.write({"jsonrpc": "2.0", "method": "notifications/initialized"})
                pump(opening + ready + b"\n", "M-0")
            warm: dict[str, int] = {}
            for burst in _bursts(rng, frames):
                data = b"".join(maker.next() for _ in range(burst))
                sent += burst
                if rng.random() < 0.2:
                    data += maker.cancellations()
                identity, marker = maker.marker()
                pump(data + marker, identity)
                if not warm and sent * 3 > frames:
                    warm = {name: resident_bytes(pid) for name, pid in wire.processes.items()}
            identity, marker = maker.marker()
            pump(maker.cancellations() + marker, identity)
            with contextlib.suppress(Silence):
                duplex.exchange(b"", lambda: not oracle.unanswered, PATIENCE)
            oracle.settle()
            _look(wire, warm, tally, real=target.real)
            _leave(wire, duplex)
            if target.daemon and not alive(target.daemon):
                raise Violation("the daemon has died")
    except (Violation, Silence, Hangup, OSError) as fault:
        if target.daemon and not alive(target.daemon):
            fault = Violation(f"the daemon has died; seen as: {fault}")
        saved = _save(target, seed, revision, log)
        raise FuzzFailure(str(fault), seed, revision, sent, saved) from fault
    tally.frames += sent
    tally.answers += oracle.answered.total()
    tally.nameless += oracle.nameless
    tally.notices += oracle.notices
    for code, count in oracle.codes.items():
        tally.codes[code] = tally.codes.get(code, 0) + count


def _kill(home: Home) -> int:
    found = daemons(home)
    for daemon in found:
        os.kill(daemon, signal.SIGKILL)
    return len(found)


def _leave(wire: Wire, duplex: Duplex) -> None:
    """End the input and check the remaining output."""
    wire.hang_up()
    try:
        duplex.exchange(b"", lambda: False, LEAVING if wire.is_process else 0.2)
    except Silence:
        # A socket may stay half-open while calls run, but a process must exit.
        if wire.is_process:
            raise
    except Hangup:
        pass
    if (code := wire.exit_code()) != 0:
        raise Violation(f"exit code {code} after its input ended")


def _bursts(rng: Random, frames: int) -> Iterator[int]:
    while frames > 0:
        burst = min(frames, rng.choice((1, 2, 5, 20, 60)))
        yield burst
        frames -= burst


def _chopped(rng: Random, data: bytes) -> Iterator[bytes]:
    """Sometimes split the bytes into small writes; boundaries must not matter."""
    if rng.random() < 0.9 or len(data) > 50_000:
        yield data
        return
    at = 0
    while at < len(data):
        size = rng.choice((1, 3, 17, 200, 5_000))
        yield data[at : at + size]
        at += size


def _look(wire: Wire, warm: dict[str, int], tally: Tally, *, real: bool) -> None:
    """Check the memory growth of every server process."""
    for process, pid in wire.processes.items():
        now = resident_bytes(pid)
        grown = now - warm.get(process, now)
        tally.growth[process] = max(grown, tally.growth.get(process, 0))
        tally.resident[process] = max(now, tally.resident.get(process, 0))
        # The caches of the engine (models, vectors, pages) fill as tools are used.
        if grown > GROWTH and not real:
            raise Violation(f"{process} grew by {grown / 1e6:.1f} MB in two thirds of a segment")


def _save(target: Target, seed: int, revision: str, log: list[bytes]) -> Path:
    """Save the sent frames, and the stderr of the server processes."""
    folder = CACHE / "fuzz"
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / f"{target.transport}-{revision}-{seed}.frames"
    place.write_bytes(b"".join(log))
    if target.home is not None:
        place.with_suffix(".stderr").write_text(target.home.last_words())
    return place


def replay(transport: str, saved: Path, *, command: str | None = None) -> Oracle:
    """Send saved frames again, line by line, with a marker at the end."""
    oracle = Oracle()
    with ExitStack() as stack:
        wire = Target(stack, transport, command).open(stack)
        duplex = Duplex(wire.read, wire.write, oracle.received)
        for line in saved.read_bytes().splitlines(keepends=True):
            oracle.sending(line)
            duplex.exchange(line, lambda: True, PATIENCE)
        oracle.require("M-last")
        modern = mutate.write(corpus.call("M-last", "server/discover", None, modern=True)) + b"\n"
        oracle.sending(modern)
        duplex.exchange(modern, lambda: not oracle.unanswered, PATIENCE)
        _leave(wire, duplex)
    return oracle


def print_line(words: str) -> None:
    print(f"fuzz: {words}", file=sys.stderr, flush=True)

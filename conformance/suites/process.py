"""Z: start and exit of the process, signals, and random input."""

from __future__ import annotations

import os
import random
import signal
import time
from typing import Any

from conformance.check import case, cases_of, need, opening_is_tested
from conformance.client.frames import dump, key, show
from conformance.client.peer import Peer
from conformance.client.stdio import ChildWire
from conformance.context import Context


def child(ctx: Context, **more: Any) -> tuple[ChildWire, Peer]:
    wire = ctx.stdio().start(**more)
    peer = ctx.open(ctx.adopt(wire))
    peer.marker()
    return wire, peer


def grace(ctx: Context) -> float:
    """The time that a server may take to exit: two seconds, or its start-up time if longer."""
    return max(2.0, ctx.facts.startup_seconds * 2)


@case("Z01a")
def _ends_at_eof(ctx: Context) -> None:
    wire, _ = child(ctx)
    wire.half_close()
    need(
        wire.wait_exit(grace(ctx)) is not None, f"still running {grace(ctx):g} s after end of input"
    )


@case("Z01b")
def _ends_in_flight(ctx: Context) -> None:
    wire, peer = child(ctx)
    peer.request("tools/call", ctx.slow(20))
    wire.half_close()
    need(
        wire.wait_exit(grace(ctx)) is not None, f"still running {grace(ctx):g} s after end of input"
    )


@case("Z01c")
def _exit_status(ctx: Context) -> None:
    wire, _ = child(ctx)
    wire.half_close()
    status = wire.wait_exit(grace(ctx))
    need(status == 0, f"at end of input the server exits with {status!r}")


@case("Z02")
def _answers_flushed(ctx: Context) -> None:
    wire, peer = child(ctx)
    ids = [peer.request(peer.basic) for _ in range(20)]
    wire.half_close()
    for id in ids:
        peer.reply(id)


def signalled(ctx: Context, number: int) -> None:
    wire, peer = child(ctx)
    wire.child.send_signal(number)
    status = wire.wait_exit(grace(ctx))
    need(status is not None, f"still running {grace(ctx):g} s after {signal.Signals(number).name}")
    rest = wire.unfinished
    need(not rest, f"half a line at the end: {show(rest)}")
    need(b"Traceback" not in rest, "a traceback on stdout")
    _ = peer


cases_of((("Z03a", signal.SIGTERM), ("Z03b", signal.SIGINT)), signalled)


@case("Z03c")
def _exit_status_of_a_signal(ctx: Context) -> None:
    wire, _ = child(ctx)
    wire.child.send_signal(signal.SIGTERM)
    status = wire.wait_exit(grace(ctx))
    allowed = (0, -signal.SIGTERM, 128 + signal.SIGTERM)
    need(status in allowed, f"after SIGTERM the server exits with {status!r}")


@case("Z05")
def _broken_pipe_signal(ctx: Context) -> None:
    wire, peer = child(ctx)
    wire.child.send_signal(signal.SIGPIPE)
    peer.marker()


@case("Z06")
def _no_orphans(ctx: Context) -> None:
    wire, _ = child(ctx)
    wire.half_close()
    need(
        wire.wait_exit(grace(ctx)) is not None, f"still running {grace(ctx):g} s after end of input"
    )
    until = time.monotonic() + 1
    while True:
        try:
            os.killpg(wire.child.pid, 0)
        except ProcessLookupError:
            return
        need(time.monotonic() < until, "the server left processes behind")
        time.sleep(0.05)


@case("Z08")
def _without_stderr(ctx: Context) -> None:
    with opening_is_tested():
        child(ctx, close_stderr=True)


@case("Z14")
def _stderr_is_text(ctx: Context) -> None:
    wire, peer = child(ctx)
    peer.send_raw(b'{"broken \xff\xfe\n')
    peer.marker()
    wire.half_close()
    wire.wait_exit(grace(ctx))
    wire.drain_stderr()
    tail = wire.stderr_tail()
    try:
        tail[tail.find(b"\n") + 1 :].decode("utf-8")
    except UnicodeDecodeError:
        need(False, f"stderr is not UTF-8: {show(tail[-200:])}")


@case("Z15")
def _restart(ctx: Context) -> None:
    with opening_is_tested():
        first, _ = child(ctx)
        first.child.kill()
        first.wait_exit(2)
        _, peer = child(ctx)
    need(peer.call(peer.basic).kind == "result", "after a kill the next server does not answer")


def mutations(good: list[bytes], count: int, seed: int) -> list[bytes]:
    """Randomly damaged copies of valid frames."""
    dice = random.Random(seed)
    frames = []
    for _ in range(count):
        frame = bytearray(dice.choice(good))
        for _ in range(dice.randint(1, 6)):
            position = dice.randrange(len(frame)) if frame else 0
            action = dice.randrange(4)
            if action == 0 and frame:
                frame[position] = dice.randrange(256)
            elif action == 1:
                frame[position:position] = bytes([dice.randrange(256)])
            elif action == 2 and frame:
                del frame[position : position + dice.randint(1, 12)]
            else:
                frame[position:position] = dice.choice(
                    (b'"', b"{", b"[", b"null", b"\\u0000", b"1e9")
                )
        frames.append(bytes(frame).replace(b"\n", b" ").replace(b"cancelled", b"cancelle"))
    return frames


def noisy(ctx: Context) -> Peer:
    """A connection that no scan observes: mutated frames can carry ids of other requests."""
    peer = ctx.open(ctx.raw())
    peer.scanned = False
    return peer


@case("Z09a")
def _mutated_frames(ctx: Context) -> None:
    peer = noisy(ctx)
    good = [
        dump(peer.build(peer.basic, id=61)),
        dump(peer.build("tools/list", {}, id=62)),
        dump(peer.build("tools/call", {"name": "no-such", "arguments": {"a": [1, None]}}, id=63)),
        dump({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}}),
    ]
    frames = mutations(good, 400, seed=20261)
    for start in range(0, len(frames), 50):
        peer.send_raw(b"\n".join(frames[start : start + 50]) + b"\n")
        for frame in peer.marker(max(ctx.timeout, 10)):
            need(frame.problem is None, f"the answer {frame.problem}: {show(frame.raw)}")


@case("Z09b")
def _random_bytes(ctx: Context) -> None:
    peer = noisy(ctx)
    dice = random.Random(20262)
    for _ in range(20):
        peer.send_raw(dice.randbytes(2000).replace(b"\n", b"") + b"\n")
        for frame in peer.marker():
            need(frame.problem is None, f"the answer {frame.problem}: {show(frame.raw)}")
            need(frame.kind != "result", f"noise was answered with {show(frame.raw)}")


@case("Z09c")
def _no_answer_to_strangers(ctx: Context) -> None:
    peer = noisy(ctx)
    good = [dump(peer.build("no/such/method", id=f"fuzz-{n:03d}")) for n in range(20)]
    frames = mutations(good, 100, seed=20263)
    text = b"\n".join(frames)
    peer.send_raw(text + b"\n")
    for frame in peer.marker(max(ctx.timeout, 10)):
        if frame.kind in ("result", "error") and isinstance(frame.id, str) and frame.id.isascii():
            plain = key(frame.id)[1].encode()
            need(plain in text, f"a response with an id that was not sent: {show(frame.raw)}")

"""N: concurrent requests and connections."""

from __future__ import annotations

import time
from typing import Any

from conformance.check import case, fail, need
from conformance.client.frames import dump, key, show
from conformance.context import Context


@case("N01a")
def _no_head_of_line(ctx: Context) -> None:
    peer = ctx.fresh()
    slow = peer.request("tools/call", ctx.slow(1.5))
    frame = peer.call(peer.basic)
    need(frame.kind == "result", f"beside a slow call: {show(frame.raw)}")
    held_up = [f for f in peer.inbox if key(f.id) == key(slow)]
    need(not held_up, "a request was answered only after the slow call before it")
    peer.cancel(slow)


@case("N01b")
def _calls_side_by_side(ctx: Context) -> None:
    peer = ctx.fresh()
    began = time.monotonic()
    ids = [peer.request("tools/call", ctx.slow(0.8)) for _ in range(6)]
    for id in ids:
        need(peer.reply(id).kind == "result", "a slow call failed")
    seconds = time.monotonic() - began
    need(seconds < 4, f"six calls of 0.8 seconds took {seconds:.1f} s")


@case("N02")
def _each_once(ctx: Context) -> None:
    peer = ctx.fresh()
    messages: list[dict[str, Any]] = []
    for number in range(100):
        messages.append(peer.build(peer.basic, id=number))
        messages.append(peer.build("no/such/method", id=f"s{number}"))
        messages.append(peer.build("tools/list", {}, id=f"{number}"))
    for message in messages:
        peer.expect(message, b"")
    peer.send_raw(b"".join(dump(message) + b"\n" for message in messages))
    counts = {key(message["id"]): 0 for message in messages}
    for _ in messages:
        frame = peer.wait(lambda f: f.kind in ("result", "error"), ctx.timeout)
        if frame is None:
            missing = [name for name, count in counts.items() if count == 0]
            fail(f"{len(missing)} of {len(messages)} requests were not answered: {missing[:3]}")
        counts[key(frame.id)] = counts.get(key(frame.id), 0) + 1
    more = [f for f in peer.marker() if f.kind in ("result", "error")]
    wrong = [name for name, count in counts.items() if count != 1]
    need(not wrong and not more, f"duplicate or unsolicited responses: {wrong[:3]}")


@case("N04")
def _in_flight(ctx: Context) -> None:
    peer = ctx.fresh()
    ids = [peer.request("tools/call", ctx.slow(0.3)) for _ in range(400)]
    for id in ids:
        peer.reply(id, 2 * ctx.timeout)
    peer.marker()


@case("N06")
def _in_order(ctx: Context) -> None:
    peer = ctx.fresh()
    lines = []
    for number in range(20):
        message = peer.build("tools/call", ctx.slow(10), id=f"n{number}")
        peer.expect(message, b"")
        lines.append(dump(message))
        cancel = {"method": "notifications/cancelled", "params": {"requestId": f"n{number}"}}
        lines.append(dump({"jsonrpc": "2.0", **cancel}))
    peer.send_raw(b"\n".join(lines) + b"\n")
    early = [f for f in peer.marker() if f.kind == "result"]
    late = early[0] if early else peer.wait(lambda f: f.kind == "result", 0.5)
    need(
        late is None,
        f"a cancel sent after its call did not reach it: {show(late.raw) if late else ''}",
    )

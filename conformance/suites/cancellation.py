"""X: cancellation of calls, and its race conditions."""

from __future__ import annotations

import json
import time
from typing import Any

from conformance.check import NotApplicable, case, cases_of, need
from conformance.client.frames import Frame, dump, key, show
from conformance.client.peer import Peer
from conformance.client.results import text_of
from conformance.context import Context


def answer_to(peer: Peer, id: Any, seconds: float) -> Frame | None:
    wanted = key(id)
    return peer.wait(lambda f: f.kind in ("result", "error") and key(f.id) == wanted, seconds)


def cancelled(ctx: Context, seconds: float = 0.5) -> tuple[Peer, Any]:
    """Cancel a call while it runs."""
    peer = ctx.fresh()
    id = peer.request("tools/call", ctx.slow(seconds))
    peer.marker()
    peer.cancel(id, reason="no longer needed")
    peer.inbox += peer.marker()  # frames before the marker can be answers too
    return peer, id


def silence(ctx: Context, _: Any) -> None:
    peer, id = cancelled(ctx)
    late = answer_to(peer, id, 0.9)
    if late is not None and late.kind == "error" and ctx.endpoint.transport == "http":
        return  # a POST needs a response; an error is one way to end it
    need(late is None, f"a cancelled call was answered: {show(late.raw) if late else ''}")


cases_of((("X01a", None), ("X01b", None)), silence)


@case("X01c")
def _work_stops(ctx: Context) -> None:
    role = ctx.role("tally")
    peer = ctx.fresh()

    def tally() -> dict[str, int]:
        counts = json.loads(text_of(peer.tool(role.tool, role.arguments())))
        return {name: int(counts[name]) for name in ("started", "finished", "cancelled")}

    before = tally()
    id = peer.request("tools/call", ctx.slow(0.6))
    until = time.monotonic() + 2
    while tally()["started"] <= before["started"] and time.monotonic() < until:
        time.sleep(0.01)
    peer.cancel(id)
    until = time.monotonic() + 1
    while (after := tally())["cancelled"] <= before["cancelled"] and time.monotonic() < until:
        time.sleep(0.01)
    need(after["cancelled"] > before["cancelled"], f"the work was not stopped: {before} {after}")


@case("X01d")
def _connection_lives(ctx: Context) -> None:
    peer, _ = cancelled(ctx, 0.4)
    frame = peer.call("tools/call", ctx.slow(0.05))
    need(frame.kind == "result", f"a call after a cancelled one: {show(frame.raw)}")


@case("X02")
def _after_the_answer(ctx: Context) -> None:
    peer = ctx.peer
    for _ in range(50):
        id = peer.request(peer.basic)
        need(peer.reply(id).kind == "result", "a plain request failed")
        peer.cancel(id)
    strays = [f for f in peer.marker() if f.kind in ("result", "error")]
    need(not strays, f"a late cancel was answered: {show(strays[0].raw) if strays else ''}")


@case("X03a")
def _right_behind(ctx: Context) -> None:
    peer = ctx.fresh()
    message = peer.build("tools/call", ctx.slow(0.6), id=5401)
    peer.expect(message, b"")
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5401}}
    peer.send_raw(dump(message) + b"\n" + dump(cancel) + b"\n")
    peer.marker()
    again = peer.call("tools/call", ctx.slow(0.05))
    need(again.kind == "result", f"the next call: {show(again.raw)}")


@case("X03b")
def _before_the_request(ctx: Context) -> None:
    peer = ctx.fresh()
    peer.cancel(5402)
    frame = peer.call(peer.basic, id=5402)
    need(frame.kind == "result", f"a cancel sent before the request affected it: {show(frame.raw)}")


def ignored(ctx: Context, paramses: tuple[Any, ...]) -> None:
    for params in paramses:
        message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
        ctx.peer.expect_silence(dump(message))


cases_of(
    (
        ("X04a", ({"requestId": 987654}, {"requestId": "nobody"})),
        ("X04b", ({}, {"reason": "x"})),
        ("X04c", ({"requestId": None}, {"requestId": 1.5}, {"requestId": [1]})),
        ("X04d", ({"requestId": 987655, "reason": 7, "extra": {"a": 1}},)),
    ),
    ignored,
)


@case("X05")
def _exact_type(ctx: Context) -> None:
    peer = ctx.fresh()
    id = peer.request("tools/call", ctx.slow(0.4), id=5403)
    peer.marker()
    peer.cancel("5403")
    frame = answer_to(peer, id, ctx.timeout)
    need(frame is not None, 'cancelling "5403" ended the call 5403')


@case("X06")
def _storm(ctx: Context) -> None:
    peer = ctx.fresh()
    ids = [peer.request("tools/call", ctx.slow(20)) for _ in range(100)]
    peer.marker()
    for id in ids:
        peer.cancel(id)
    strays = [f for f in peer.marker() if f.kind == "result" and f.id in ids]
    need(not strays, "cancelled calls were answered")
    frame = peer.call("tools/call", ctx.slow(0.05))
    need(frame.kind == "result", f"after a hundred cancels: {show(frame.raw)}")


@case("X12")
def _only_that_one(ctx: Context) -> None:
    peer = ctx.fresh()
    stopped = peer.request("tools/call", ctx.slow(5))
    kept = peer.request("tools/call", ctx.slow(0.4))
    peer.marker()
    peer.cancel(stopped)
    frame = answer_to(peer, kept, ctx.timeout)
    need(frame is not None and frame.kind == "result", "cancelling one call ended another")


@case("X13")
def _instant(ctx: Context) -> None:
    role = ctx.has_role("echo")
    if role is None:
        raise NotApplicable("no tool of this server plays the role 'echo'")
    peer = ctx.fresh()
    for number in range(100):
        id = peer.request("tools/call", ctx.echo(str(number)))
        peer.cancel(id)
    peer.marker(4 * ctx.timeout)
    frame = peer.call("tools/call", ctx.echo("still here"))
    need(frame.kind == "result", f"after cancelling quick calls: {show(frame.raw)}")

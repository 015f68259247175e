"""W: several connections to one server on a unix socket."""

from __future__ import annotations

import contextlib
import os
import stat
import time

from conformance import revisions
from conformance.check import NotApplicable, case, need, opening_is_tested
from conformance.client.frames import show
from conformance.client.results import result_of, text_of
from conformance.client.unix_socket import UnixEndpoint
from conformance.client.wire import Closed
from conformance.context import Context


@case("W02")
def _own_state(ctx: Context) -> None:
    for other in revisions.LEGACY:
        if other in ctx.settings.spoken and other != ctx.revision:
            break
    else:
        raise NotApplicable("the server supports one legacy revision only")
    first = ctx.raw()
    second = ctx.raw(other)
    one = result_of(first.initialize(), "initialize")
    two = result_of(second.initialize(), "initialize")
    need(one.get("protocolVersion") == ctx.revision, f"A got {one.get('protocolVersion')!r}")
    need(two.get("protocolVersion") == other, f"B got {two.get('protocolVersion')!r}")
    first.marker()
    second.marker()


@case("W03")
def _all_revisions_at_once(ctx: Context) -> None:
    peers = [ctx.fresh(revision) for revision in revisions.ALL if revision in ctx.settings.spoken]
    method = "tools/list" if ctx.offers("tools") else None
    asked = [(peer, peer.request(method or peer.basic)) for peer in peers]
    for peer, id in asked:
        fine = peer.modern or peer.agreed == peer.revision
        need(fine, f"{peer.revision} next to other revisions became {peer.agreed!r}")
        frame = peer.reply(id)
        need(frame.kind == "result", f"{peer.revision} next to other revisions: {show(frame.raw)}")
        modern = "resultType" in frame.result
        need(modern == peer.modern, f"{peer.revision} was answered in the shape of another era")


@case("W04")
def _client_leaves(ctx: Context) -> None:
    with opening_is_tested():
        staying, leaving = ctx.fresh(), ctx.fresh()
    if ctx.has_role("slow"):
        leaving.request("tools/call", ctx.slow(5))
    leaving.wire.close()
    for _ in range(3):
        staying.marker()
    with opening_is_tested():
        ctx.fresh().marker()


@case("W05")
def _half_close(ctx: Context) -> None:
    peer = ctx.fresh()
    params = ctx.slow(0.3) if ctx.has_role("slow") else None
    id = peer.request("tools/call", params) if params else peer.request(peer.basic)
    peer.wire.half_close()
    frame = peer.reply(id)
    need(frame.kind == "result", f"after a half-close the pending call gave {show(frame.raw)}")


@case("W06")
def _mode(ctx: Context) -> None:
    assert isinstance(ctx.endpoint, UnixEndpoint)
    try:
        mode = stat.S_IMODE(os.stat(ctx.endpoint.path).st_mode)
    except OSError as error:
        raise NotApplicable(f"the socket's mode cannot be read ({error.strerror})") from error
    need(mode & 0o077 == 0, f"the socket's mode is {mode:04o}: others may connect")


@case("W07")
def _many_connections(ctx: Context) -> None:
    idle = [ctx.raw() for _ in range(60)]
    active = ctx.fresh()
    began = time.monotonic()
    for _ in range(20):
        active.marker()
    seconds = time.monotonic() - began
    need(seconds < 5, f"20 requests beside {len(idle)} idle connections took {seconds:.1f} s")


@case("W11")
def _foreign_cancel(ctx: Context) -> None:
    mine, other = ctx.fresh(), ctx.fresh()
    id = 5301
    mine.request("tools/call", ctx.slow(0.5), id=id)
    mine.marker()
    other.cancel(id)
    other.marker()
    frame = mine.reply(id)
    need(frame.kind == "result", f"another connection's cancel ended the call: {show(frame.raw)}")


@case("W12")
def _foreign_notifications(ctx: Context) -> None:
    role = ctx.role("progress")
    mine, other = ctx.fresh(), ctx.fresh()
    other.marker()
    params = {"name": role.tool, "arguments": role.arguments()}
    mine.result("tools/call", params, meta={"progressToken": "mine"})
    heard = [f for f in [*other.marker(), *other.inbox] if f.method == "notifications/progress"]
    need(
        not heard,
        f"progress of one connection reached another: {show(heard[0].raw) if heard else ''}",
    )


@case("W13")
def _torn_frame(ctx: Context) -> None:
    with opening_is_tested():
        staying, torn = ctx.fresh(), ctx.fresh()
    torn.send_raw(b'{"jsonrpc":"2.0","id":1,"meth')
    torn.wire.close()
    staying.marker()
    with opening_is_tested():
        ctx.fresh().marker()


@case("W14")
def _same_id(ctx: Context) -> None:
    peers = [ctx.fresh() for _ in range(4)]
    for number, peer in enumerate(peers):
        peer.request("tools/call", ctx.echo(f"connection {number}"), id="shared")
    for number, peer in reversed(list(enumerate(peers))):
        told = text_of(result_of(peer.reply("shared"), "tools/call"))
        need(f"connection {number}" in told, f"connection {number} got the answer {told[:60]!r}")


@case("W15")
def _unread_answers(ctx: Context) -> None:
    with opening_is_tested():
        staying, leaving = ctx.fresh(), ctx.fresh()
    with contextlib.suppress(Closed):
        for _ in range(50):
            leaving.request(leaving.basic)
    leaving.wire.close()
    staying.marker()

"""O: progress notifications."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from conformance import revisions
from conformance.check import NotApplicable, case, cases_of, need
from conformance.client.frames import Frame, same, show
from conformance.client.peer import Peer
from conformance.client.results import result_of
from conformance.context import Context


def progress(frame: Frame) -> bool:
    return frame.method == "notifications/progress"


def told(ctx: Context, peer: Peer, **more: Any) -> tuple[list[Frame], list[Frame]]:
    """The progress notifications before and after the response."""
    role = ctx.role("progress")
    params = {"name": role.tool, "arguments": role.arguments()}
    id = peer.request("tools/call", params, **more)
    result_of(peer.reply(id, 2 * ctx.timeout), "tools/call")
    early = [frame for frame in peer.inbox if progress(frame)]
    peer.inbox.clear()
    late = [frame for frame in peer.marker() if progress(frame)]
    return early, late


@case("O01a")
def _not_without_a_token(ctx: Context) -> None:
    early, late = told(ctx, ctx.peer)
    need(not early + late, "progress for a request that gave no token")


def echoed(ctx: Context, token: Any) -> None:
    early, late = told(ctx, ctx.peer, meta={"progressToken": token})
    need(early + late, f"no progress for token {token!r}")
    for frame in early + late:
        got = frame.params.get("progressToken")
        need(same(got, token), f"token {token!r} came back as {got!r}")


cases_of((("O01b", "tok-é"), ("O01c", 4242), ("O01d", 0), ("O01e", "")), echoed)


@case("O02a")
def _increases(ctx: Context) -> None:
    early, late = told(ctx, ctx.peer, meta={"progressToken": "up"})
    values: list[Any] = [frame.params.get("progress") for frame in early + late]
    if len(values) < 2:
        raise NotApplicable("the tool reported progress less than twice")
    for value in values:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        need(number, f"progress is {value!r}")
    rising = all(a < b for a, b in pairwise(values))
    need(rising, f"progress went {values}")


@case("O02b")
def _stops(ctx: Context) -> None:
    early, late = told(ctx, ctx.peer, meta={"progressToken": "stop"})
    # A server with several threads can answer the marker before it sends late progress.
    later = ctx.peer.wait(progress, ctx.peer.quiet)
    late += [later] if later is not None else []
    if not early + late:
        raise NotApplicable("the tool reported no progress")
    need(not late, f"progress after the answer: {show(late[0].raw) if late else ''}")


@case("O02c", "O02d")
def _stops_when_cancelled(ctx: Context) -> None:
    peer = ctx.fresh()
    id = peer.request("tools/call", ctx.slow(4, steps=20), meta={"progressToken": "cancelled"})
    if peer.wait(progress, 2) is None:
        raise NotApplicable("the slow tool reports no progress")
    peer.cancel(id)
    peer.marker()
    late = peer.wait(progress, 0.7)
    need(late is None, f"progress after the cancel: {show(late.raw) if late else ''}")


def odd_token(ctx: Context, tokens: tuple[Any, ...]) -> None:
    role = ctx.role("progress")
    for token in tokens:
        frame = ctx.peer.call(
            "tools/call",
            {"name": role.tool, "arguments": role.arguments()},
            meta={"progressToken": token},
            timeout=2 * ctx.timeout,
        )
        if frame.kind == "error":
            need(frame.code in (-32602, -32600), f"token {token!r} gave {frame.code!r}")


cases_of((("O03a", (1.5, True)), ("O03b", ({"a": 1}, [1]))), odd_token)


@case("O04")
def _no_message_yet(ctx: Context) -> None:
    early, late = told(ctx, ctx.peer, meta={"progressToken": "words"})
    for frame in early + late:
        need("message" not in frame.params, f"progress.message came with {revisions.B}")


@case("O05")
def _total(ctx: Context) -> None:
    early, late = told(ctx, ctx.peer, meta={"progressToken": "total"})
    for frame in early + late:
        total, value = frame.params.get("total"), frame.params.get("progress")
        if total is not None:
            fine = isinstance(total, int | float) and not isinstance(total, bool)
            need(fine and value <= total, f"progress {value!r} of {total!r}")


@case("O07")
def _two_tokens(ctx: Context) -> None:
    role = ctx.role("progress")
    peer = ctx.peer
    params = {"name": role.tool, "arguments": role.arguments()}
    ids = [peer.request("tools/call", params, meta={"progressToken": t}) for t in ("one", "two")]
    for id in ids:
        result_of(peer.reply(id, 2 * ctx.timeout), "tools/call")
    heard = [frame.params for frame in peer.inbox if progress(frame)]
    peer.inbox.clear()
    if not heard:
        raise NotApplicable("the tool reported no progress")
    for token in ("one", "two"):
        values: list[Any] = [p.get("progress") for p in heard if p.get("progressToken") == token]
        need(values, f"no progress for token {token!r}")
        rising = all(a < b for a, b in pairwise(values))
        need(rising, f"progress for token {token!r} went {values}")

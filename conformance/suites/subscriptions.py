"""U: subscriptions with `subscriptions/listen`."""

from __future__ import annotations

import signal
from typing import Any

from conformance import revisions
from conformance.check import NotApplicable, case, cases_of, fail, need
from conformance.client.frames import Frame, key, same, show
from conformance.client.peer import Peer
from conformance.client.results import result_of
from conformance.context import Context

SID = revisions.SUBSCRIPTION_ID
ACK = "notifications/subscriptions/acknowledged"
TOOLS = "notifications/tools/list_changed"
PROMPTS = "notifications/prompts/list_changed"


def sid(frame: Frame) -> Any:
    meta = frame.params.get("_meta")
    return meta.get(SID) if isinstance(meta, dict) else None


def listen(ctx: Context, peer: Peer, filter: Any, id: Any = None) -> Frame:
    """Open a subscription and return the first frame that belongs to it."""
    id = f"listen-{peer.next_id()}" if id is None else id
    peer.request("subscriptions/listen", {"notifications": filter}, id=id)

    def belongs(frame: Frame) -> bool:
        if frame.kind == "notification":
            return frame.method == ACK or (sid(frame) is not None and key(sid(frame)) == key(id))
        return frame.kind in ("result", "error") and key(frame.id) == key(id)

    frame = peer.wait(belongs, ctx.timeout)
    if frame is None:
        fail("no acknowledgement")
    if frame.code == -32601 or (frame.kind == "error" and not _can_notify(ctx)):
        raise NotApplicable("the server offers no subscriptions")
    return frame


def _can_notify(ctx: Context) -> bool:
    """Whether the server declares anything that a client could subscribe to."""
    declared = ctx.facts.capabilities
    return any(
        isinstance(declared.get(name), dict) and declared[name].get(flag) is True
        for name in ("tools", "prompts", "resources")
        for flag in ("listChanged", "subscribe")
    )


def acknowledged(ctx: Context, peer: Peer, filter: Any, id: Any = None) -> dict[str, Any]:
    frame = listen(ctx, peer, filter, id)
    need(frame.method == ACK, f"the first message is {show(frame.raw)}")
    honoured = frame.params.get("notifications")
    need(isinstance(honoured, dict), f"the acknowledgement's notifications are {honoured!r}")
    assert isinstance(honoured, dict)
    return honoured


def trigger(ctx: Context, peer: Peer, role: str) -> None:
    part = ctx.role(role)
    result_of(
        peer.call("tools/call", {"name": part.tool, "arguments": part.arguments()}), "tools/call"
    )


def changes(ctx: Context) -> None:
    ctx.require("tools", "listChanged")
    ctx.role("change_tools")


@case("U01a")
def _acknowledged_first(ctx: Context) -> None:
    acknowledged(ctx, ctx.fresh(), {"toolsListChanged": True})


@case("U01b")
def _subset(ctx: Context) -> None:
    asked = {"toolsListChanged": True, "promptsListChanged": True}
    honoured = acknowledged(ctx, ctx.fresh(), asked)
    extra = {name for name, value in honoured.items() if value and not asked.get(name)}
    need(not extra, f"the acknowledgement lists {extra}, which was not requested")


def exact_id(ctx: Context, id: Any) -> None:
    frame = listen(ctx, ctx.fresh(), {"toolsListChanged": True}, id)
    need(frame.method == ACK, f"the first message is {show(frame.raw)}")
    need(same(sid(frame), id), f"subscription {id!r} is acknowledged as {sid(frame)!r}")


cases_of((("U02a", 4711), ("U02b", "listen:é"), ("U02c", 0)), exact_id)


@case("U02d")
def _changes_carry_the_id(ctx: Context) -> None:
    changes(ctx)
    peer = ctx.fresh()
    acknowledged(ctx, peer, {"toolsListChanged": True}, 77)
    trigger(ctx, peer, "change_tools")
    frame = peer.wait(lambda f: f.method == TOOLS, 2)
    if frame is None:
        fail("the subscriber was not notified of changed tools")
    need(same(sid(frame), 77), f"the notification names subscription {sid(frame)!r}")


@case("U03a")
def _only_what_was_asked(ctx: Context) -> None:
    changes(ctx)
    peer = ctx.fresh()
    acknowledged(ctx, peer, {"promptsListChanged": True})
    trigger(ctx, peer, "change_tools")
    heard = [f for f in [*peer.marker(), *peer.inbox] if f.method == TOOLS]
    need(not heard, "a subscriber to prompts was notified of changed tools")


@case("U03b")
def _unknown_type(ctx: Context) -> None:
    honoured = acknowledged(ctx, ctx.fresh(), {"moonPhaseChanged": True, "toolsListChanged": True})
    need("moonPhaseChanged" not in honoured, "an unknown notification type is acknowledged")


@case("U03c")
def _empty_filter(ctx: Context) -> None:
    honoured = acknowledged(ctx, ctx.fresh(), {})
    need(not any(honoured.values()), f"the filter is empty, but {honoured} is acknowledged")


@case("U03d")
def _declined_type(ctx: Context) -> None:
    changes(ctx)
    peer = ctx.fresh()
    acknowledged(ctx, peer, {"toolsListChanged": False})
    trigger(ctx, peer, "change_tools")
    heard = [f for f in [*peer.marker(), *peer.inbox] if f.method == TOOLS]
    need(not heard, "changed tools were notified although the filter is false")


@case("U04")
def _two_subscriptions(ctx: Context) -> None:
    changes(ctx)
    peer = ctx.fresh()
    for id in ("one", 4812):
        acknowledged(ctx, peer, {"toolsListChanged": True}, id)
    trigger(ctx, peer, "change_tools")
    heard: set[Any] = set()
    while len(heard) < 2:
        frame = peer.wait(lambda f: f.method == TOOLS, 2)
        if frame is None:
            fail(f"two subscriptions, but only {heard} were notified")
        heard.add(sid(frame))
    need(heard == {"one", 4812}, f"the notifications name {heard}")


def bad_filter(ctx: Context, params: dict[str, Any]) -> None:
    peer = ctx.fresh()
    frame = peer.call("subscriptions/listen", params)
    if frame.code == -32601:
        raise NotApplicable("the server offers no subscriptions")
    need(frame.kind == "error", f"{params} was answered with {show(frame.raw)}")


cases_of(
    (
        ("U05a", {}),
        ("U05b", {"notifications": "all"}),
        ("U05c", {"notifications": ["toolsListChanged"]}),
        ("U05d", {"notifications": {"toolsListChanged": "yes"}}),
        ("U05e", {"notifications": {"resourceSubscriptions": "test://static-text"}}),
    ),
    bad_filter,
)


@case("U05f")
def _bad_filter_code(ctx: Context) -> None:
    peer = ctx.fresh()
    params: Any
    for params in ({}, {"notifications": "all"}):
        frame = peer.call("subscriptions/listen", params)
        if frame.code == -32601:
            raise NotApplicable("the server offers no subscriptions")
        need(frame.code == -32602, f"{params} gave {frame.code!r}, which is not -32602")


@case("U06a")
def _cancelled_quietly(ctx: Context) -> None:
    peer = ctx.fresh()
    acknowledged(ctx, peer, {"toolsListChanged": True}, "gone")
    peer.cancel("gone")
    frames = [f for f in [*peer.marker(), *peer.marker()] if f.kind in ("result", "error")]
    need(
        not frames,
        f"a cancelled subscription was answered: {show(frames[0].raw) if frames else ''}",
    )


@case("U06b")
def _cancelled_for_good(ctx: Context) -> None:
    changes(ctx)
    peer = ctx.fresh()
    acknowledged(ctx, peer, {"toolsListChanged": True}, "gone")
    peer.cancel("gone")
    peer.marker()
    trigger(ctx, peer, "change_tools")
    heard = [f for f in [*peer.marker(), *peer.inbox] if f.method == TOOLS]
    need(not heard, "a cancelled subscription still gets notifications")


@case("U07")
def _told_at_the_end(ctx: Context) -> None:
    wire = ctx.stdio().start()
    peer = ctx.open(ctx.adopt(wire))
    acknowledged(ctx, peer, {"toolsListChanged": True}, "last")
    wire.child.send_signal(signal.SIGTERM)
    frame = peer.reply("last", 3)
    need(frame.kind == "result", f"the end of a subscription is {show(frame.raw)}")
    meta = frame.result.get("_meta", {})
    need(same(meta.get(SID), "last"), f"its result names subscription {meta.get(SID)!r}")


@case("U09")
def _not_across_connections(ctx: Context) -> None:
    changes(ctx)
    first = ctx.fresh()
    acknowledged(ctx, first, {"toolsListChanged": True}, "old")
    first.wire.close()
    second = ctx.fresh()
    trigger(ctx, second, "change_tools")
    heard = [f for f in [*second.marker(), *second.inbox] if f.kind == "notification"]
    need(
        not heard,
        f"a new connection has old subscriptions: {show(heard[0].raw) if heard else ''}",
    )


@case("U12")
def _prompts(ctx: Context) -> None:
    ctx.require("prompts", "listChanged")
    ctx.role("change_prompts")
    peer = ctx.fresh()
    acknowledged(ctx, peer, {"promptsListChanged": True}, "prompts")
    trigger(ctx, peer, "change_prompts")
    frame = peer.wait(lambda f: f.method == PROMPTS, 2)
    need(frame is not None, "the subscriber was not notified of changed prompts")


@case("U13")
def _resources(ctx: Context) -> None:
    ctx.require("resources", "subscribe")
    uri = "test://watched-resource"
    if uri not in {r.get("uri") for r in ctx.facts.resources}:
        uri = str(ctx.facts.resources[0].get("uri")) if ctx.facts.resources else ""
    honoured = acknowledged(ctx, ctx.fresh(), {"resourceSubscriptions": [uri]})
    told = honoured.get("resourceSubscriptions")
    need(told == [uri], f"resources.subscribe is declared, but {told!r} is acknowledged")


@case("U14")
def _requests_beside(ctx: Context) -> None:
    peer = ctx.fresh()
    acknowledged(ctx, peer, {"toolsListChanged": True}, "beside")
    need(peer.call("server/discover").kind == "result", "a request beside a subscription failed")


@case("U15")
def _needs_meta(ctx: Context) -> None:
    peer = ctx.fresh()
    message = {
        "jsonrpc": "2.0",
        "id": peer.next_id(),
        "method": "subscriptions/listen",
        "params": {"notifications": {}},
    }
    peer.send(message)
    frame = peer.reply(message["id"])
    need(frame.kind == "error", f"listen without _meta: {show(frame.raw)}")

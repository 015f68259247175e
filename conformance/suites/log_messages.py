"""G: log messages: `logging/setLevel` in the legacy era, `_meta` of each request in the modern."""

from __future__ import annotations

from typing import Any

from conformance import revisions
from conformance.check import case, cases_of, need
from conformance.client.frames import Frame, show
from conformance.client.peer import Peer
from conformance.client.results import result_of
from conformance.context import Context

LEVELS = revisions.LEVELS


def logs(peer: Peer, ctx: Context, role: str, **more: Any) -> tuple[list[Frame], list[Frame]]:
    """Log messages before and after the answer to a call of the logging tool."""
    part = ctx.role(role)
    id = peer.request("tools/call", {"name": part.tool, "arguments": part.arguments()}, **more)
    result_of(peer.reply(id), "tools/call")
    early = [f for f in peer.inbox if f.method == "notifications/message"]
    late = [f for f in peer.marker() if f.method == "notifications/message"]
    peer.inbox.clear()
    return early, late


def ranks(frames: list[Frame]) -> list[int]:
    levels = [frame.params.get("level") for frame in frames]
    for level in levels:
        need(level in LEVELS, f"a log message has the level {level!r}")
    return [LEVELS.index(str(level)) for level in levels]


@case("G01a")
def _all_levels(ctx: Context) -> None:
    ctx.require("logging")
    for level in LEVELS:
        frame = ctx.peer.call("logging/setLevel", {"level": level})
        need(frame.kind == "result", f"level {level!r} was refused: {show(frame.raw)}")


def bad_level(ctx: Context, params: dict[str, Any]) -> None:
    ctx.require("logging")
    frame = ctx.peer.call("logging/setLevel", params)
    need(frame.kind == "error", f"{params} was answered with {show(frame.raw)}")
    need(frame.code == -32602, f"{params} gave {frame.code!r}, which is not -32602")


cases_of((("G01b", {"level": "verbose"}), ("G01c", {}), ("G01d", {"level": 3})), bad_level)


@case("G01e")
def _filtered(ctx: Context) -> None:
    ctx.require("logging")
    peer = ctx.fresh()
    peer.result("logging/setLevel", {"level": "emergency"})
    early, late = logs(peer, ctx, "logging")
    below = [f for f in early + late if ranks([f])[0] < LEVELS.index("emergency")]
    need(not below, f"a log message below the level: {show(below[0].raw) if below else ''}")


@case("G01f")
def _has_received(ctx: Context) -> None:
    ctx.require("logging")
    peer = ctx.fresh()
    peer.result("logging/setLevel", {"level": "debug"})
    early, late = logs(peer, ctx, "logging")
    need(early or late, "no log messages at level debug")


@case("G01g")
def _own_level(ctx: Context) -> None:
    ctx.require("logging")
    quiet, loud = ctx.fresh(), ctx.fresh()
    quiet.result("logging/setLevel", {"level": "emergency"})
    loud.result("logging/setLevel", {"level": "debug"})
    early, late = logs(loud, ctx, "logging")
    need(early or late, "the level of one connection suppressed messages of another")
    early, late = logs(quiet, ctx, "logging")
    need(not early and not late, "the level of one connection enabled messages on another")


@case("G03a")
def _silent_by_default(ctx: Context) -> None:
    early, late = logs(ctx.peer, ctx, "request_logging")
    need(not early and not late, "log messages for a request without a log level")


@case("G03b")
def _asked_for(ctx: Context) -> None:
    ctx.require("logging")
    peer = ctx.fresh()
    early, late = logs(peer, ctx, "request_logging", meta={revisions.LOG_LEVEL: "debug"})
    need(early or late, "no log messages although the request sets a log level")
    early, late = logs(peer, ctx, "request_logging", meta={revisions.LOG_LEVEL: "emergency"})
    need(
        all(r >= LEVELS.index("emergency") for r in ranks(early + late)),
        "a log message below the requested level",
    )


@case("G03c")
def _before_the_answer(ctx: Context) -> None:
    ctx.require("logging")
    _, late = logs(ctx.fresh(), ctx, "request_logging", meta={revisions.LOG_LEVEL: "debug"})
    need(not late, f"a log message after the answer: {show(late[0].raw) if late else ''}")


@case("G03d")
def _level_not_remembered(ctx: Context) -> None:
    ctx.require("logging")
    peer = ctx.fresh()
    logs(peer, ctx, "request_logging", meta={revisions.LOG_LEVEL: "debug"})
    early, late = logs(peer, ctx, "request_logging")
    need(not early and not late, "the log level of one request was remembered for the next")


@case("G04")
def _bad_request_level(ctx: Context) -> None:
    ctx.require("logging")
    frame = ctx.peer.call("tools/list", {}, meta={revisions.LOG_LEVEL: "verbose"})
    need(frame.kind == "error", f"level 'verbose' was accepted: {show(frame.raw, 160)}")
    need(frame.code == -32602, f"level 'verbose' gave {frame.code!r}, which is not -32602")

"""L: the handshake of the legacy revisions, and ping."""

from __future__ import annotations

import re
from typing import Any

from conformance import revisions
from conformance.check import NotApplicable, case, cases_of, fail, need
from conformance.client.frames import Frame, dump, show
from conformance.client.peer import Peer
from conformance.client.results import result_of
from conformance.context import Context

DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def opening(ctx: Context, peer: Peer | None = None, **changes: Any) -> tuple[Peer, Frame]:
    """Send initialize with changed params, on a new connection unless one is given.

    None removes a param.
    """
    peer = peer or ctx.raw()
    params: dict[str, Any] = {
        "protocolVersion": ctx.revision,
        "capabilities": {},
        "clientInfo": revisions.CLIENT,
    }
    for name, value in changes.items():
        if value is None:
            params.pop(name)
        else:
            params[name] = value
    return peer, peer.call("initialize", params)


def version_of(frame: Frame) -> Any:
    return result_of(frame, "initialize").get("protocolVersion")


@case("L01a")
def _result_fields(ctx: Context) -> None:
    result = ctx.facts.opening
    need(isinstance(result.get("protocolVersion"), str), "no protocolVersion in the result")
    need(isinstance(result.get("capabilities"), dict), "no capabilities object in the result")
    need(isinstance(result.get("serverInfo"), dict), "no serverInfo object in the result")


@case("L01b")
def _server_info(ctx: Context) -> None:
    info = ctx.facts.opening.get("serverInfo")
    for member in ("name", "version"):
        value = info.get(member) if isinstance(info, dict) else None
        need(isinstance(value, str), f"serverInfo.{member} is {value!r}")


@case("L02")
def _echoed_or_supported(ctx: Context) -> None:
    for version in revisions.LEGACY:
        told = version_of(opening(ctx, protocolVersion=version)[1])
        if told == version:
            continue
        need(isinstance(told, str), f"{version} was answered with {told!r}")
        again = version_of(opening(ctx, protocolVersion=told)[1])
        need(
            again == told,
            f"{version} was answered with {told!r}, which the server does not support",
        )


def counter_offer(ctx: Context, versions: tuple[str, ...]) -> None:
    for version in versions:
        frame = opening(ctx, protocolVersion=version)[1]
        if frame.code == -32602:
            continue  # the page's own example of an initialization error is this answer
        told = version_of(frame)
        need(told != version, f"the server claims to support {version!r}")
        need(isinstance(told, str) and DATE.fullmatch(told), f"{version!r} gave version {told!r}")


cases_of(
    (
        ("L03a", ("2099-01-01", "1999-12-31")),
        ("L03b", ("", "draft", "not a version")),
    ),
    counter_offer,
)


@case("L03c")
def _latest(ctx: Context) -> None:
    latest = max(version for version in ctx.settings.spoken if version in revisions.LEGACY)
    told = version_of(opening(ctx, protocolVersion="2099-01-01")[1])
    need(told == latest, f"an unknown version was answered with {told!r}, the latest is {latest!r}")


@case("L03d")
def _modern_date(ctx: Context) -> None:
    told = version_of(opening(ctx, protocolVersion=revisions.E)[1])
    need(told in revisions.LEGACY, f"initialize agreed on {told!r}, which has no initialize")


def wrong_version(ctx: Context, value: Any) -> None:
    _, frame = opening(ctx, protocolVersion=value)
    need(frame.kind == "error", f"initialize succeeded: {show(frame.raw)}")


cases_of((("L04a", None), ("L04b", 20250618), ("L04d", ["2025-06-18"])), wrong_version)


@case("L04e")
def _wrong_version_code(ctx: Context) -> None:
    peer = None
    for value in (None, 20250618):
        peer, frame = opening(ctx, peer, protocolVersion=value)
        code = frame.code
        need(code == -32602, f"protocolVersion {value!r} gave {code!r}, which is not -32602")


@case("L04c")
def _second_chance(ctx: Context) -> None:
    peer, frame = opening(ctx, protocolVersion=17)
    need(frame.kind == "error", f"initialize succeeded: {show(frame.raw)}")
    need(version_of(peer.initialize()) == ctx.revision, "a good initialize after a bad one fails")


def tolerated(ctx: Context, name: str) -> None:
    _, frame = opening(ctx, **{name: None})
    if frame.kind == "error":
        need(frame.code == -32602, f"without {name} the error is {frame.code!r}, not -32602")


cases_of((("L05a", "clientInfo"), ("L05b", "capabilities")), tolerated)


@case("L06a")
def _unknown_capabilities(ctx: Context) -> None:
    capabilities = {"experimental": {"x/y": {}}, "teleport": {"range": 7}, "tasks": {}}
    need(
        version_of(opening(ctx, capabilities=capabilities)[1]) == ctx.revision,
        "initialize did not negotiate the revision",
    )


@case("L06b")
def _unknown_fields(ctx: Context) -> None:
    info = {**revisions.CLIENT, "title": "x", "icons": [], "colour": "green"}
    _, frame = opening(ctx, clientInfo=info, somethingNew={"a": [1]}, _meta={"x/y": 1})
    need(version_of(frame) == ctx.revision, "initialize did not negotiate the revision")


# -- ping -----------------------------------------------------------------------------------------


def empty(frame: Frame) -> None:
    result = result_of(frame, "ping")
    rest = set(result) - {"_meta"}
    need(not rest, f"the result of ping is not empty: {show(frame.raw)}")


@case("L08a")
def _ping_before(ctx: Context) -> None:
    empty(ctx.raw().call("ping"))


@case("L08b")
def _ping_between(ctx: Context) -> None:
    peer = ctx.raw()
    result_of(peer.initialize(say_initialized=False), "initialize")
    empty(peer.call("ping"))


@case("L08c")
def _ping_after(ctx: Context) -> None:
    empty(ctx.peer.call("ping"))


@case("L08d")
def _ping_with_params(ctx: Context) -> None:
    empty(ctx.peer.call("ping", {}))
    empty(ctx.peer.call("ping", {"_meta": {}}))


# -- ordering -------------------------------------------------------------------------------------


@case("L09")
def _too_early(ctx: Context) -> None:
    frame = ctx.raw().call("tools/list", {})
    need(frame.kind == "error", f"tools/list before initialize was served: {show(frame.raw, 120)}")


@case("L10")
def _pipelined(ctx: Context) -> None:
    peer = ctx.raw()
    first = peer.build(
        "initialize",
        {"protocolVersion": ctx.revision, "capabilities": {}, "clientInfo": revisions.CLIENT},
    )
    last = peer.build("ping")
    lines = [first, {"jsonrpc": "2.0", "method": "notifications/initialized"}, last]
    for message in (first, last):
        peer.expect(message, b"")
    peer.send_raw(b"".join(dump(message) + b"\n" for message in lines))
    need(
        version_of(peer.reply(first["id"])) == ctx.revision,
        "initialize did not negotiate the revision",
    )
    need(peer.reply(last["id"]).kind == "result", "the pipelined request failed")


@case("L11a")
def _initialized_is_not_answered(ctx: Context) -> None:
    peer = ctx.raw()
    result_of(peer.initialize(say_initialized=False), "initialize")
    peer.expect_silence(dump({"jsonrpc": "2.0", "method": "notifications/initialized"}))


@case("L11b")
def _initialized_twice(ctx: Context) -> None:
    for _ in range(2):
        ctx.peer.expect_silence(
            dump({"jsonrpc": "2.0", "method": "notifications/initialized", "params": {}})
        )


@case("L11c")
def _without_initialized(ctx: Context) -> None:
    ctx.require("tools")
    peer = ctx.raw()
    result_of(peer.initialize(say_initialized=False), "initialize")
    need(peer.call("tools/list", {}).kind == "result", "no request is served before initialized")


@case("L12")
def _server_holds_back(ctx: Context) -> None:
    peer = ctx.raw()
    full = {"roots": {"listChanged": True}, "sampling": {}, "elicitation": {}}
    result_of(peer.initialize(capabilities=full, say_initialized=False), "initialize")
    early = [*peer.marker(), *peer.inbox, *peer.server_requests]
    for frame in early:
        allowed = frame.method in (None, "ping", "notifications/message")
        need(allowed, f"before initialized the server sends {show(frame.raw)}")


@case("L13a")
def _second_initialize(ctx: Context) -> None:
    peer = ctx.fresh()
    frame = peer.initialize(revisions.A)
    need(frame.kind == "error", f"a second initialize succeeded: {show(frame.raw)}")
    need(frame.code == -32600, f"error {frame.code!r}, which is not -32600")


@case("L13b")
def _second_initialize_changes_nothing(ctx: Context) -> None:
    ctx.require("tools")
    peer = ctx.fresh()
    other = revisions.A if ctx.revision != revisions.A else revisions.D
    before = peer.result("tools/list", {})
    peer.initialize(other)
    need(
        peer.result("tools/list", {}) == before,
        "the list of tools changed after a second initialize",
    )


@case("L14")
def _instructions(ctx: Context) -> None:
    first = result_of(opening(ctx)[1], "initialize").get("instructions")
    need(first is None or isinstance(first, str), f"instructions are {first!r}")
    second = result_of(opening(ctx)[1], "initialize").get("instructions")
    need(first == second, "instructions differ between connections")


@case("L15")
def _info_vocabulary(ctx: Context) -> None:
    info = ctx.facts.opening.get("serverInfo")
    members = set(info) if isinstance(info, dict) else set()
    if ctx.revision < revisions.C:
        need("title" not in members, "serverInfo.title came with 2025-06-18")
    if ctx.revision < revisions.D:
        newer = members & {"icons", "description", "websiteUrl"}
        need(not newer, f"serverInfo.{', '.join(newer)} came with 2025-11-25")


@case("L16")
def _no_ping(ctx: Context) -> None:
    frame = ctx.peer.call("ping")
    need(frame.kind == "error", f"ping was answered with {show(frame.raw)}")
    need(frame.code == -32601, f"ping gave {frame.code!r}, which is not -32601")


@case("L16b")
def _ping_by_era(ctx: Context) -> None:
    if not any(revision in ctx.settings.spoken for revision in revisions.LEGACY):
        raise NotApplicable("the server supports the modern revision only")
    peer = ctx.raw()
    result_of(peer.initialize(revisions.D), "initialize")
    frame = peer.call("ping", revision=revisions.E)
    need(frame.kind == "error" and frame.code == -32601, f"modern ping: {show(frame.raw)}")
    frame = peer.call("ping", revision=revisions.D)
    need(frame.kind == "result", f"legacy ping beside it: {show(frame.raw)}")


@case("L17")
def _cancelled_initialize(ctx: Context) -> None:
    peer = ctx.raw()
    message = peer.build(
        "initialize",
        {"protocolVersion": ctx.revision, "capabilities": {}, "clientInfo": revisions.CLIENT},
    )
    raw = dump(message) + b"\n"
    cancel = {"method": "notifications/cancelled", "params": {"requestId": message["id"]}}
    peer.expect(message, raw)
    peer.send_raw(raw + dump({"jsonrpc": "2.0", **cancel}) + b"\n")
    frame = peer.reply(message["id"])
    if frame.kind != "result":
        fail(f"initialize was cancelled: {show(frame.raw)}")

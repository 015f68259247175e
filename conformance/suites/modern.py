"""V: 2026-07-28: self-describing requests, and both eras on one connection."""

from __future__ import annotations

from typing import Any

from conformance import revisions
from conformance.check import NotApplicable, case, cases_of, need
from conformance.client.frames import Frame, dump, show
from conformance.client.peer import Peer
from conformance.client.results import result_of
from conformance.context import Context

LISTS = {"tools": "tools/list", "resources": "resources/list", "prompts": "prompts/list"}


def a_list(ctx: Context) -> str:
    """A list method that the server offers, or server/discover if it offers none."""
    return next((m for c, m in LISTS.items() if ctx.offers(c)), "server/discover")


def with_meta(peer: Peer, method: str, meta: Any, **params: Any) -> Frame:
    """A request with exactly this `_meta`."""
    message = {
        "jsonrpc": "2.0",
        "id": peer.next_id(),
        "method": method,
        "params": {**params, "_meta": meta},
    }
    peer.send(message)
    return peer.reply(message["id"])


def code(frame: Frame, *codes: int) -> None:
    need(frame.kind == "error", f"served: {show(frame.raw, 160)}")
    names = " or ".join(map(str, codes))
    need(frame.code in codes, f"error {frame.code!r}, which is not {names}: {show(frame.raw, 160)}")


def discover(peer: Peer, **more: Any) -> dict[str, Any]:
    result = peer.result("server/discover", **more)
    result.pop("ttlMs", None)  # the remaining time may decrease
    return result


# -- discover -------------------------------------------------------------------------------------


@case("V01a")
def _supported_versions(ctx: Context) -> None:
    versions = discover(ctx.peer).get("supportedVersions")
    need(isinstance(versions, list) and versions, f"supportedVersions is {versions!r}")
    assert isinstance(versions, list)
    need(all(isinstance(v, str) for v in versions), f"supportedVersions is {versions!r}")
    need(revisions.E in versions, f"the version in use is missing in {versions!r}")
    need(len(set(versions)) == len(versions), f"a version twice in {versions!r}")


@case("V01b")
def _capabilities(ctx: Context) -> None:
    capabilities = discover(ctx.peer).get("capabilities")
    need(isinstance(capabilities, dict), f"capabilities is {capabilities!r}")


@case("V01c")
def _server_info(ctx: Context) -> None:
    meta = discover(ctx.peer).get("_meta")
    info = meta.get(revisions.SERVER_INFO) if isinstance(meta, dict) else None
    need(isinstance(info, dict), f"no {revisions.SERVER_INFO} in the discover result's _meta")
    assert isinstance(info, dict)
    for member in ("name", "version"):
        need(isinstance(info.get(member), str), f"serverInfo.{member} is {info.get(member)!r}")


@case("V02a")
def _declared_works(ctx: Context) -> None:
    tried = [(c, m) for c, m in LISTS.items() if ctx.offers(c)]
    if not tried:
        raise NotApplicable("the server declares no list")
    for capability, method in tried:
        frame = ctx.peer.call(method)
        need(
            frame.kind == "result", f"{capability} is declared but {method} gave {show(frame.raw)}"
        )


def _legacy(ctx: Context) -> None:
    if revisions.D not in ctx.settings.spoken:
        raise NotApplicable("the server does not also support 2025-11-25")


@case("V02b")
def _same_capabilities(ctx: Context) -> None:
    _legacy(ctx)
    old = result_of(ctx.raw().initialize(revisions.D), "initialize").get("capabilities", {})
    new = ctx.facts.capabilities
    shared = {"tools", "resources", "prompts", "completions"}
    need(
        set(old) & shared == set(new) & shared,
        f"{sorted(old)} by handshake, {sorted(new)} by discover",
    )


@case("V21a")
def _discover_twice(ctx: Context) -> None:
    first = discover(ctx.peer)
    if ctx.offers("tools"):
        ctx.peer.call("tools/list")
    need(discover(ctx.peer) == first, "discover changed after another request")


@case("V21b")
def _discover_elsewhere(ctx: Context) -> None:
    need(discover(ctx.fresh()) == discover(ctx.peer), "discover depends on the connection")


# -- the envelope ---------------------------------------------------------------------------------


def _is_dual(ctx: Context) -> bool:
    """Whether a bare request may mean the other era: a dual-era server without HTTP headers."""
    legacy = ctx.settings.spoken & set(revisions.LEGACY)
    return bool(legacy) and ctx.endpoint.transport != "http"


@case("V03a")
def _no_meta(ctx: Context) -> None:
    if _is_dual(ctx):
        raise NotApplicable("a bare request is undefined for a server of both eras")
    peer = ctx.raw()
    message = {"jsonrpc": "2.0", "id": peer.next_id(), "method": a_list(ctx), "params": {}}
    peer.send(message)
    frame = peer.reply(message["id"])
    need(frame.kind == "error", f"a request without _meta was served: {show(frame.raw, 160)}")


@case("V03b")
def _meta_not_an_object(ctx: Context) -> None:
    peer = ctx.raw()
    for meta in (5, "x", [1]):
        frame = with_meta(peer, a_list(ctx), meta)
        need(frame.kind == "error", f"_meta {meta!r} was served: {show(frame.raw, 160)}")


@case("V03c")
def _no_version(ctx: Context) -> None:
    meta = {revisions.CLIENT_CAPABILITIES: {}, revisions.CLIENT_INFO: revisions.CLIENT}
    frame = with_meta(ctx.raw(), a_list(ctx), meta)
    need(frame.kind == "error", f"a request without a version was served: {show(frame.raw, 160)}")


@case("V03d")
def _no_capabilities(ctx: Context) -> None:
    meta = {revisions.PROTOCOL_VERSION: revisions.E, revisions.CLIENT_INFO: revisions.CLIENT}
    for method in {a_list(ctx), "server/discover"}:
        code(with_meta(ctx.peer, method, meta), -32602)


@case("V03e")
def _no_meta_code(ctx: Context) -> None:
    peer = ctx.raw()
    for method in {a_list(ctx), "server/discover"}:
        message = {"jsonrpc": "2.0", "id": peer.next_id(), "method": method}
        peer.send(message)
        code(peer.reply(message["id"]), -32602)


@case("V04a")
def _no_client_info(ctx: Context) -> None:
    meta = {revisions.PROTOCOL_VERSION: revisions.E, revisions.CLIENT_CAPABILITIES: {}}
    frame = with_meta(ctx.peer, "server/discover", meta)
    need(frame.kind == "result", f"without clientInfo: {show(frame.raw)}")


@case("V04b")
def _odd_client_info(ctx: Context) -> None:
    frame = with_meta(ctx.peer, "server/discover", {**revisions.meta(), revisions.CLIENT_INFO: 7})
    if frame.kind == "error":
        need(frame.code == -32602, f"refused with {frame.code!r}, which is not -32602")


@case("V05a")
def _empty_capabilities(ctx: Context) -> None:
    frame = with_meta(ctx.peer, a_list(ctx), revisions.meta({}))
    need(frame.kind == "result", f"empty client capabilities: {show(frame.raw)}")


def odd_capabilities(ctx: Context, value: Any) -> None:
    meta = {**revisions.meta(), revisions.CLIENT_CAPABILITIES: value}
    frame = with_meta(ctx.peer, "server/discover", meta)
    need(
        frame.kind == "error",
        f"client capabilities {value!r} were accepted: {show(frame.raw, 160)}",
    )


cases_of((("V05b", None), ("V05c", []), ("V05d", "all")), odd_capabilities)


@case("V05e")
def _odd_capabilities_code(ctx: Context) -> None:
    value: Any
    for value in (None, []):
        meta = {**revisions.meta(), revisions.CLIENT_CAPABILITIES: value}
        code(with_meta(ctx.peer, "server/discover", meta), -32602)


def _unsupported(peer: Peer, version: Any, method: str = "server/discover") -> Frame:
    return with_meta(peer, method, revisions.meta(version=version))


@case("V06a")
def _unknown_version(ctx: Context) -> None:
    for version in ("2099-01-01", "1900-01-01"):
        code(_unsupported(ctx.peer, version), -32022)
        code(_unsupported(ctx.peer, version, a_list(ctx)), -32022)


@case("V06b")
def _legacy_date(ctx: Context) -> None:
    for version in revisions.LEGACY:
        code(_unsupported(ctx.peer, version), -32022)


@case("V06c")
def _empty_version(ctx: Context) -> None:
    code(_unsupported(ctx.peer, ""), -32022, -32602)


@case("V06d")
def _supported_is_listed(ctx: Context) -> None:
    error = _unsupported(ctx.peer, "2099-01-01").error
    data = error.get("data")
    supported = data.get("supported") if isinstance(data, dict) else None
    need(isinstance(supported, list) and supported, f"data.supported is {supported!r}")
    listed = discover(ctx.peer).get("supportedVersions", [])
    assert isinstance(supported, list)
    need(set(supported) <= set(listed), f"{supported!r} is not part of discover's {listed!r}")
    need(revisions.E in supported, f"{revisions.E} is missing in {supported!r}")


@case("V06e")
def _requested_is_told(ctx: Context) -> None:
    data = _unsupported(ctx.peer, "2099-01-01").error.get("data")
    requested = data.get("requested") if isinstance(data, dict) else None
    need(requested == "2099-01-01", f"data.requested is {requested!r}")


def odd_version(ctx: Context, value: Any) -> None:
    # A header is text: over HTTP it cannot mirror a value that is not a string.
    mismatch = [-32020] if ctx.endpoint.transport == "http" else []
    code(_unsupported(ctx.peer, value), -32602, -32022, *mismatch)


cases_of((("V07a", 20260728), ("V07b", None), ("V07c", [revisions.E])), odd_version)


@case("V08")
def _first_frame(ctx: Context) -> None:
    peer = ctx.raw()
    method = a_list(ctx)
    need(peer.call(method).kind == "result", f"{method} as the first frame was refused")


@case("V09")
def _not_remembered(ctx: Context) -> None:
    if _is_dual(ctx):
        raise NotApplicable("a bare request is undefined for a server of both eras")
    peer = ctx.raw()
    method = a_list(ctx)
    need(peer.call(method).kind == "result", f"{method} was refused")
    message = {"jsonrpc": "2.0", "id": peer.next_id(), "method": method, "params": {}}
    peer.send(message)
    frame = peer.reply(message["id"])
    need(frame.kind == "error", "a request without _meta was served after one with it")


@case("V09b")
def _capabilities_not_remembered(ctx: Context) -> None:
    role = ctx.role("missing_capability")
    peer = ctx.raw()
    params = {"name": role.tool, "arguments": role.arguments()}
    peer.call("tools/call", params, capabilities={"sampling": {}, "elicitation": {}, "roots": {}})
    code(peer.call("tools/call", params, capabilities={}), -32021)


# -- both eras ------------------------------------------------------------------------------------


@case("V10")
def _modern_legacy_modern(ctx: Context) -> None:
    _legacy(ctx)
    peer = ctx.raw()
    need(peer.call("server/discover").kind == "result", "discover first")
    need(peer.initialize(revisions.D).kind == "result", "initialize after a modern request failed")
    need(peer.call("server/discover").kind == "result", "a modern request after initialize failed")


@case("V11")
def _interleaved(ctx: Context) -> None:
    _legacy(ctx)
    ctx.require("tools")
    peer = ctx.raw()
    result_of(peer.initialize(revisions.D), "initialize")
    ids = [
        (era, peer.request("tools/list", {}, revision=era))
        for era in (revisions.D, revisions.E, revisions.D, revisions.E)
    ]
    for era, id in ids:
        result = result_of(peer.reply(id), "tools/list")
        modern = "resultType" in result
        need(
            modern == (era == revisions.E),
            f"a {era} request was answered in the shape of the other era",
        )


@case("V12")
def _no_legacy_notifications(ctx: Context) -> None:
    role = ctx.role("change_tools")
    peer = ctx.raw()
    peer.call("tools/call", {"name": role.tool, "arguments": role.arguments()})
    heard = [f.method for f in [*peer.marker(), *peer.inbox] if f.kind == "notification"]
    changed = [m for m in heard if m and m.endswith("list_changed")]
    need(not changed, f"{changed} on a connection that neither initialised nor listens")


@case("V13a")
def _initialize_with_meta(ctx: Context) -> None:
    _legacy(ctx)
    peer = ctx.raw()
    params = {
        "protocolVersion": revisions.D,
        "capabilities": {},
        "clientInfo": revisions.CLIENT,
        "_meta": revisions.meta(),
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    peer.send(message, revision=revisions.D)
    frame = peer.reply(1)
    need(frame.kind == "result", f"initialize with _meta: {show(frame.raw)}")
    need(frame.result.get("protocolVersion") == revisions.D, f"agreed on {show(frame.raw, 120)}")


@case("V13b")
def _modern_initialize(ctx: Context) -> None:
    code(ctx.raw().call("initialize", {}), -32601)


def removed(ctx: Context, row: tuple[str, dict[str, Any]]) -> None:
    method, params = row
    code(ctx.peer.call(method, params), -32601)


cases_of(
    (
        ("V23a", ("logging/setLevel", {"level": "info"})),
        ("R08a", ("resources/subscribe", {"uri": "test://static-text"})),
        ("R08b", ("resources/unsubscribe", {"uri": "test://static-text"})),
        ("V23b", ("roots/list", {})),
        ("V23c", ("sampling/createMessage", {"messages": [], "maxTokens": 1})),
        ("V23d", ("elicitation/create", {"message": "x"})),
    ),
    removed,
)


@case("V23e")
def _initialized_is_harmless(ctx: Context) -> None:
    ctx.peer.expect_silence(dump({"jsonrpc": "2.0", "method": "notifications/initialized"}))


# -- _meta and extensions -------------------------------------------------------------------------


@case("V16a")
def _unknown_meta(ctx: Context) -> None:
    frame = ctx.peer.call(ctx.peer.basic, {"_meta": {"org.example/x": [1, {"y": None}], "z": 1}})
    need(frame.kind == "result", f"unknown _meta keys: {show(frame.raw)}")


@case("V16b")
def _trace_context(ctx: Context) -> None:
    trace = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
    frame = ctx.peer.call(
        ctx.peer.basic, {"_meta": {**trace, "tracestate": "a=b", "baggage": "c=d"}}
    )
    need(frame.kind == "result", f"trace context in _meta: {show(frame.raw)}")


@case("V16c")
def _meta_not_echoed(ctx: Context) -> None:
    frame = ctx.peer.call(ctx.peer.basic, {"_meta": {"org.example/canary": "c4n4ry"}})
    need(b"c4n4ry" not in frame.raw, "the client's _meta is returned in the result")


@case("V18a")
def _unknown_extension(ctx: Context) -> None:
    capabilities = {"extensions": {"org.example/nothing": {"x": 1}}}
    frame = ctx.peer.call(a_list(ctx), capabilities=capabilities)
    need(frame.kind == "result", f"an unknown extension in capabilities: {show(frame.raw)}")


@case("V18b")
def _extensions_shape(ctx: Context) -> None:
    extensions = ctx.facts.capabilities.get("extensions", {})
    need(isinstance(extensions, dict), f"extensions is {extensions!r}")
    for name, value in extensions.items():
        need("/" in name, f"extension {name!r} has no prefix")
        need(isinstance(value, dict), f"extension {name!r} is {value!r}")


@case("V20a")
def _missing_capability(ctx: Context) -> None:
    role = ctx.role("missing_capability")
    params = {"name": role.tool, "arguments": role.arguments()}
    frame = ctx.peer.call("tools/call", params, capabilities={})
    code(frame, -32021)
    data = frame.error.get("data")
    needed = data.get("requiredCapabilities") if isinstance(data, dict) else None
    need(isinstance(needed, dict) and needed, f"data.requiredCapabilities is {needed!r}")


@case("V20b")
def _capability_present(ctx: Context) -> None:
    role = ctx.role("missing_capability")
    params = {"name": role.tool, "arguments": role.arguments()}
    everything: dict[str, Any] = {"sampling": {}, "elicitation": {}, "roots": {}}
    frame = ctx.peer.call("tools/call", params, capabilities=everything)
    need(
        frame.code != -32021,
        f"the capability is declared, but still reported as missing: {show(frame.raw)}",
    )


@case("V24")
def _version_before_method(ctx: Context) -> None:
    code(_unsupported(ctx.peer, "2099-01-01", "no/such/method"), -32022)

"""R: resources: lists, templates, reading, subscriptions."""

from __future__ import annotations

import re
import tempfile
import uuid
from pathlib import Path
from typing import Any

from conformance import revisions
from conformance.check import NotApplicable, case, cases_of, need
from conformance.client.frames import Frame, show
from conformance.client.results import result_of
from conformance.context import Context
from conformance.suites.tool_results import encoded

MOST = 50
"""The number of resources that a case reads."""
URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[!#$%&'()*+,/:;=?@A-Za-z0-9\[\]._~-]*")


def read(ctx: Context, uri: Any) -> Frame:
    return ctx.peer.call("resources/read", {"uri": uri})


def some(ctx: Context) -> list[dict[str, Any]]:
    ctx.require("resources")
    if not ctx.facts.resources:
        raise NotApplicable("the server lists no resources")
    return ctx.facts.resources[:MOST]


def readable(ctx: Context) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The listed resources that can be read now, each with its result."""
    found = []
    for resource in some(ctx):
        frame = read(ctx, resource.get("uri"))
        if frame.kind == "result":
            found.append((resource, result_of(frame, "resources/read")))
    if not found:
        raise NotApplicable("no listed resource can be read now")
    return found


@case("R01")
def _list(ctx: Context) -> None:
    ctx.require("resources")
    listed = ctx.peer.result("resources/list", {}).get("resources")
    need(isinstance(listed, list), f"resources is {listed!r}")


@case("R02a")
def _contents(ctx: Context) -> None:
    for _, result in readable(ctx):
        contents = result.get("contents")
        need(isinstance(contents, list), f"contents is {contents!r}")
        assert isinstance(contents, list)
        for item in contents:
            need(isinstance(item.get("uri"), str), "contents without a uri")
            need(("text" in item) != ("blob" in item), "contents need text or blob, one of them")


@case("R02b")
def _same_uri(ctx: Context) -> None:
    for resource, result in readable(ctx):
        uris = [item.get("uri") for item in result.get("contents", [])]
        need(resource.get("uri") in uris, f"{resource.get('uri')!r} was answered with {uris}")


@case("R02c")
def _blobs(ctx: Context) -> None:
    found = False
    for resource, result in readable(ctx):
        for item in result.get("contents", []):
            if "blob" in item:
                found = True
                encoded(item["blob"], f"the blob of {resource.get('uri')}")
    if not found:
        raise NotApplicable("no resource is binary")


MISSING = "test://conform/no-such-resource"
NUL_URI = "test://static-text\u0000.txt"


@case("R03a")
def _missing(ctx: Context) -> None:
    ctx.require("resources")
    frame = read(ctx, MISSING)
    need(frame.kind == "error", f"a resource that does not exist: {show(frame.raw)}")


@case("R03b")
def _missing_code_legacy(ctx: Context) -> None:
    ctx.require("resources")
    code = read(ctx, MISSING).code
    need(code == -32002, f"a missing resource gave {code!r}, which is not -32002")


@case("R03c")
def _missing_code_modern(ctx: Context) -> None:
    ctx.require("resources")
    code = read(ctx, MISSING).code
    need(code == -32602, f"a missing resource gave {code!r}, which is not -32602")


@case("R03d")
def _missing_uri_told(ctx: Context) -> None:
    ctx.require("resources")
    data = read(ctx, MISSING).error.get("data")
    uri = data.get("uri") if isinstance(data, dict) else None
    need(uri == MISSING, f"data.uri is {uri!r}")


def bad_uri(ctx: Context, uris: tuple[str, ...]) -> None:
    ctx.require("resources")
    for uri in uris:
        frame = read(ctx, uri)
        need(frame.kind == "error", f"{uri!r} was answered with {show(frame.raw)}")


cases_of((("R04a", ("", "not a uri", "://", "test:")), ("R04c", (NUL_URI,))), bad_uri)


@case("R04b")
def _traversal(ctx: Context) -> None:
    """Ask for a file of our own, outside the server's resources. It contains no secret."""
    ctx.require("resources")
    secret = f"mcp-conform-{uuid.uuid4().hex}"
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "outside.txt")
        path.write_text(secret)
        steps = "../" * 12
        inside = str(path).lstrip("/")
        for uri in (
            path.as_uri(),
            f"test://{steps}{inside}",
            f"file:///{steps}{inside}",
            f"test://{'%2e%2e/' * 12}{inside}",
            f"test://..%2f{'..%2f' * 11}{inside}",
            *(f"{base}/{steps}{inside}" for base in _bases(ctx)),
        ):
            frame = read(ctx, uri)
            need(secret.encode() not in frame.raw, f"{uri!r} reads a file outside the resources")


def _bases(ctx: Context) -> list[str]:
    """The folders of some listed resources, from which a server may be led astray."""
    uris = [str(resource.get("uri")) for resource in ctx.facts.resources[:5]]
    return [uri.rpartition("/")[0] for uri in uris if uri.count("/") > 2]


@case("R05")
def _uris_are_valid(ctx: Context) -> None:
    for resource in some(ctx):
        uri = resource.get("uri")
        need(isinstance(uri, str) and URI.fullmatch(uri), f"a resource has the uri {uri!r}")


@case("R06a")
def _templates(ctx: Context) -> None:
    ctx.require("resources")
    frame = ctx.peer.call("resources/templates/list", {})
    if frame.code == -32601:
        raise NotApplicable("the server has no resource templates")
    listed = result_of(frame, "resources/templates/list").get("resourceTemplates")
    need(isinstance(listed, list), f"resourceTemplates is {listed!r}")


@case("R06b")
def _expanded(ctx: Context) -> None:
    ctx.require("resources")
    known = {t.get("uriTemplate") for t in ctx.facts.templates}
    if "test://template/{id}/data" not in known:
        raise NotApplicable("no known template")
    uri = "test://template/123/data"
    result = result_of(read(ctx, uri), "resources/read")
    texts = [item.get("text", "") for item in result.get("contents", [])]
    need(any("123" in text for text in texts), f"the id is not in {texts!r}")


@case("R07a")
def _subscribe(ctx: Context) -> None:
    ctx.require("resources", "subscribe")
    uri = some(ctx)[-1].get("uri")
    for method in ("resources/subscribe", "resources/unsubscribe"):
        result_of(ctx.peer.call(method, {"uri": uri}), method)


@case("R07b")
def _subscribe_nothing(ctx: Context) -> None:
    ctx.require("resources", "subscribe")
    frame = ctx.peer.call("resources/subscribe", {"uri": MISSING})
    need(frame.kind == "error", f"subscribed to a missing resource: {show(frame.raw)}")


@case("R07c")
def _subscribe_without_uri(ctx: Context) -> None:
    ctx.require("resources", "subscribe")
    frame = ctx.peer.call("resources/subscribe", {})
    need(frame.kind == "error", f"subscribed without a uri: {show(frame.raw)}")


def no_uri(ctx: Context, params: dict[str, Any]) -> None:
    ctx.require("resources")
    frame = ctx.peer.call("resources/read", params)
    need(frame.kind == "error", f"{params} was answered with {show(frame.raw)}")


cases_of((("R09a", {}), ("R09b", {"uri": 17}), ("R09c", {"uri": ["test://static-text"]})), no_uri)


@case("R09d")
def _no_uri_code(ctx: Context) -> None:
    ctx.require("resources")
    params: Any
    for params in ({}, {"uri": 17}):
        code = ctx.peer.call("resources/read", params).code
        # Over modern HTTP a read without a uri has no Mcp-Name header, which is an error itself.
        allowed = (-32602, -32020) if ctx.endpoint.transport == "http" else (-32602,)
        need(code in allowed, f"{params} gave {code!r}, which is not -32602")


@case("R10")
def _same_list_elsewhere(ctx: Context) -> None:
    ctx.require("resources")
    other = ctx.fresh().result("resources/list", {}).get("resources")
    here = ctx.peer.result("resources/list", {}).get("resources")
    need(other == here, "resources/list depends on the connection")


@case("R11")
def _link_vocabulary(ctx: Context) -> None:
    newer = {"title": revisions.C, "icons": revisions.D}
    for resource in some(ctx):
        for member, since in newer.items():
            if ctx.revision < since:
                need(member not in resource, f"{member} of a resource came with {since}")

"""Q and K: paginated lists and cache hints."""

from __future__ import annotations

import json
from typing import Any

from conformance.check import NotApplicable, case, cases_of, need
from conformance.client.frames import show
from conformance.client.results import result_of
from conformance.context import Context
from conformance.discovery import walk

LISTS = {
    "tools": ("tools", "tools/list", "tools", "name"),
    "resources": ("resources", "resources/list", "resources", "uri"),
    "templates": ("resources", "resources/templates/list", "resourceTemplates", "uriTemplate"),
    "prompts": ("prompts", "prompts/list", "prompts", "name"),
}


def each_once(ctx: Context, which: str) -> None:
    capability, method, member, name = LISTS[which]
    ctx.require(capability)
    if which == "templates" and not ctx.facts.templates:
        raise NotApplicable("the server has no resource templates")
    pages = walk(ctx.peer, method, member)
    names = [json.dumps(item.get(name)) for page in pages for item in page]
    twice = sorted({found for found in names if names.count(found) > 1})
    need(not twice, f"listed more than once over {len(pages)} pages: {twice}")


cases_of(
    (("Q01a", "tools"), ("Q01b", "resources"), ("Q01c", "prompts"), ("Q01d", "templates")),
    each_once,
)


def bad_cursor(ctx: Context, row: tuple[str, tuple[Any, ...]]) -> None:
    which, cursors = row
    capability, method, _, _ = LISTS[which]
    ctx.require(capability)
    for cursor in cursors:
        frame = ctx.peer.call(method, {"cursor": cursor})
        need(frame.kind == "error", f"cursor {cursor!r} was accepted: {show(frame.raw, 120)}")
        need(frame.code == -32602, f"cursor {cursor!r} gave {frame.code!r}, which is not -32602")


cases_of(
    (
        ("Q02a", ("tools", ("conform-no-such-cursor",))),
        ("Q02b", ("resources", ("conform-no-such-cursor",))),
        ("Q02c", ("prompts", ("conform-no-such-cursor",))),
        ("Q03b", ("tools", (17, ["x"], {"page": 2}))),
    ),
    bad_cursor,
)


@case("Q03")
def _odd_cursor(ctx: Context) -> None:
    ctx.require("tools")
    for cursor in (17, ["x"], {"page": 2}):
        frame = ctx.peer.call("tools/list", {"cursor": cursor})
        need(frame.kind == "error", f"cursor {cursor!r} was accepted: {show(frame.raw, 120)}")


@case("Q02d")
def _foreign_cursor(ctx: Context) -> None:
    found = None
    for capability, method, _, _ in LISTS.values():
        if ctx.offers(capability) and found is None:
            frame = ctx.peer.call(method, {})
            cursor = frame.result.get("nextCursor") if frame.kind == "result" else None
            found = (method, cursor) if cursor is not None else None
    if found is None:
        raise NotApplicable("no list of this server has a second page")
    for capability, method, _, _ in LISTS.values():
        if ctx.offers(capability) and method != found[0]:
            frame = ctx.peer.call(method, {"cursor": found[1]})
            need(frame.kind == "error", f"{method} accepted a cursor of {found[0]}")


@case("Q04")
def _cursor_elsewhere(ctx: Context) -> None:
    ctx.require("tools")
    pages = walk(ctx.peer, "tools/list", "tools")
    if len(pages) < 2:
        raise NotApplicable("tools/list has one page only")
    cursor = ctx.peer.result("tools/list", {})["nextCursor"]
    other = ctx.fresh().result("tools/list", {"cursor": cursor}).get("tools")
    need(other == pages[1], "a cursor gives another page on another connection")


# -- caching --------------------------------------------------------------------------------------


def hints(ctx: Context, which: str) -> None:
    if which == "discover":
        result = ctx.peer.result("server/discover")
    elif which == "read":
        ctx.require("resources")
        if not ctx.facts.resources:
            raise NotApplicable("the server lists no resources")
        replies = [
            ctx.peer.call("resources/read", {"uri": resource.get("uri")})
            for resource in ctx.facts.resources[:20]
        ]
        good = [reply for reply in replies if reply.kind == "result"]
        if not good:
            raise NotApplicable("no listed resource can be read now")
        for frame in good:
            _hinted(result_of(frame, "resources/read"))
        return
    else:
        capability, method, _, _ = LISTS[which]
        ctx.require(capability)
        frame = ctx.peer.call(method, {})
        if which == "templates" and frame.code == -32601:
            raise NotApplicable("the server has no resource templates")
        result = result_of(frame, method)
    _hinted(result)


def _hinted(result: dict[str, Any]) -> None:
    ttl: Any = result.get("ttlMs")
    scope = result.get("cacheScope")
    whole = isinstance(ttl, int | float) and not isinstance(ttl, bool) and float(ttl).is_integer()
    need(whole and ttl >= 0, f"ttlMs is {ttl!r}")
    need(scope in ("public", "private"), f"cacheScope is {scope!r}")


cases_of(
    (
        ("K01a", "discover"),
        ("K01b", "tools"),
        ("K01c", "resources"),
        ("K01d", "templates"),
        ("K01e", "prompts"),
        ("K01f", "read"),
    ),
    hints,
)


@case("K02")
def _one_scope(ctx: Context) -> None:
    looked = False
    for capability, method, _, _ in LISTS.values():
        if not ctx.offers(capability):
            continue
        scopes = []
        params: dict[str, Any] = {}
        for _ in range(100):
            frame = ctx.peer.call(method, params)
            if frame.kind == "error":
                break
            scopes.append(frame.result.get("cacheScope"))
            if frame.result.get("nextCursor") is None:
                break
            params = {"cursor": frame.result["nextCursor"]}
        looked = looked or len(scopes) > 1
        need(len(set(map(str, scopes))) <= 1, f"{method} has pages of scopes {scopes}")
    if not looked:
        raise NotApplicable("no list of this server has a second page")

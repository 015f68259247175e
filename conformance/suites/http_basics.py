"""H and S: Streamable HTTP: status codes, headers, methods and sessions."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from conformance import revisions
from conformance.check import NotApplicable, case, cases_of, need
from conformance.client.http_headers import ACCEPT, encoded, headers_for
from conformance.context import Context
from conformance.suites.http_requests import (
    Headers,
    Session,
    basic,
    code,
    endpoint,
    error_of,
    open_session,
    post,
    status,
    verb,
)

EVIL = "http://evil.example"


def _tool(ctx: Context) -> dict[str, Any]:
    """A tools/call of an unknown tool: a server checks the headers before the tool's name."""
    params = {"name": "conform_nothing", "arguments": {}, "_meta": revisions.meta({})}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


@case("H01")
def _one_path(ctx: Context) -> None:
    headers = headers_for(basic(ctx), None, None)
    body = json.dumps(basic(ctx)).encode()
    status(endpoint(ctx).ask("POST", body, headers, path="/conform-nothing-here"), 404)


# -- endpoint and credentials ---------------------------------------------------------------------


def _origin(ctx: Context, row: tuple[str, tuple[str, ...]]) -> None:
    """A request with a foreign origin is refused; from 2025-11-25 with 403.

    GET and DELETE need a session, so that the origin is the only fault. A server may answer them
    with 405, which refuses them as well.
    """
    name, origins = row
    for origin in origins:
        more: Headers = {"Origin": origin}
        if name == "POST":
            answer = post(ctx, basic(ctx), more)
        else:
            session = Session("", ctx.revision) if ctx.modern else open_session(ctx)
            answer = verb(ctx, name, session, more)
            if answer.status == 405:
                continue
        if ctx.revision >= revisions.D:
            status(answer, 403)
        need(400 <= answer.status < 500, f"origin {origin}: status {answer.status}")


cases_of(
    (
        ("H02a", ("POST", (EVIL,))),
        ("H02b", ("POST", ("null",))),
        ("H02c", ("GET", (EVIL,))),
        ("H02d", ("DELETE", (EVIL,))),
        (
            "H02e",
            (
                "POST",
                (
                    "https://evil.example",
                    "http://localhost.evil.example",
                    "http://127.0.0.1.evil.example",
                    "http://evil.example:6274",
                    "http://evil.example/?localhost",
                ),
            ),
        ),
    ),
    _origin,
)


@case("H03")
def _local_origin(ctx: Context) -> None:
    status(post(ctx, basic(ctx), {"Origin": f"http://localhost:{endpoint(ctx).port}"}), 200)


@case("H04")
def _foreign_host(ctx: Context) -> None:
    for host in ("evil.example", f"evil.example:{endpoint(ctx).port}", "localhost.evil.example"):
        answer = post(ctx, basic(ctx), {"Host": host})
        need(400 <= answer.status < 500, f"host {host}: status {answer.status}")


@case("H06")
def _credential(ctx: Context) -> None:
    if endpoint(ctx).token is None:
        raise NotApplicable("no credential was given (--token)")
    for said in ("", "Bearer conform-made-this-up"):
        headers = {**headers_for(basic(ctx), None, None), "Authorization": said}
        for name in ("POST", "GET", "DELETE"):
            body = json.dumps(basic(ctx)).encode() if name == "POST" else None
            status(endpoint(ctx).ask(name, body, headers), 401)


@case("H07")
def _kind(ctx: Context) -> None:
    answer = post(ctx, basic(ctx))
    status(answer, 200)
    kind = answer.headers.get("content-type", "").partition(";")[0]
    need(kind in ("application/json", "text/event-stream"), f"content type {kind!r}")
    need(answer.messages()[-1].get("id") == 1, "the response is missing")


@case("H08")
def _accept(ctx: Context) -> None:
    status(post(ctx, basic(ctx), {"Accept": "text/html"}), 406)
    status(post(ctx, basic(ctx), {"Accept": "*/*"}), 200)


@case("H09")
def _content_type(ctx: Context) -> None:
    status(post(ctx, basic(ctx), {"Content-Type": "text/plain"}), 400, 415)
    json_type = "application/json; charset=utf-8"
    status(post(ctx, basic(ctx), {"Content-Type": json_type}), 200)


@case("H10")
def _accepted(ctx: Context) -> None:
    note = {"jsonrpc": "2.0", "method": "notifications/initialized", "params": {}}
    session = None if ctx.modern else open_session(ctx)
    if session is None:
        note["method"] = "notifications/cancelled"
        note["params"] = {"requestId": 1}
    answer = post(ctx, note, None, session)
    if ctx.modern and 400 <= answer.status < 500:
        return  # no client notification is defined over HTTP: the server may refuse it
    status(answer, 202)
    need(not answer.body, f"a body: {answer.body[:100]!r}")


@case("H11")
def _unacceptable(ctx: Context) -> None:
    session = None if ctx.modern else open_session(ctx)
    more: Headers = {"MCP-Protocol-Version": ctx.revision} if ctx.modern else {}
    answer = post(ctx, {"jsonrpc": "2.0", "method": 7}, more, session)
    need(400 <= answer.status < 500, f"status {answer.status}")
    if "json" in answer.headers.get("content-type", "") and answer.body:
        id = answer.json.get("id")
        need(id is None, f"the error carries the id {id!r}, which was not sent")


@case("H12")
def _malformed(ctx: Context) -> None:
    answer = post(ctx, b"{bad")
    status(answer, 400)
    code(answer, -32700)


@case("H13")
def _unsupported(ctx: Context) -> None:
    session = open_session(ctx)
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    status(post(ctx, ping, {"MCP-Protocol-Version": "1999-01-01"}, session), 400)


@case("H14")
def _no_version(ctx: Context) -> None:
    session = open_session(ctx)
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    status(post(ctx, ping, {"MCP-Protocol-Version": None}, session), 200)


def _mismatch(ctx: Context, row: tuple[bool, dict[str, str | None]]) -> None:
    calls, headers = row
    answer = post(ctx, _tool(ctx) if calls else basic(ctx), headers)
    status(answer, 400)
    code(answer, -32020)


cases_of(
    (
        ("H15b", (False, {"MCP-Protocol-Version": None})),
        ("H16", (False, {"MCP-Protocol-Version": "2025-11-25"})),
        ("H17a", (False, {"Mcp-Method": None})),
        ("H17b", (False, {"Mcp-Method": "tools/list"})),
        ("H17c", (False, {"Mcp-Method": "Server/Discover"})),
        ("H18a", (True, {"Mcp-Name": None})),
        ("H18b", (True, {"Mcp-Name": "another_tool"})),
        ("H19b", (True, {"Mcp-Name": "=?base64?Y29uZm9ybV9ub3RoaW5n!?="})),
    ),
    _mismatch,
)


@case("H15")
def _version_missing(ctx: Context) -> None:
    answer = post(ctx, basic(ctx), {"MCP-Protocol-Version": None})
    older = {revisions.A, revisions.B} & ctx.settings.spoken
    if not older:  # without it a server may assume an older revision, which has no such header
        status(answer, 400)
        code(answer, -32020)
    need(error_of(answer) or answer.status >= 400, "the request was served")


@case("H19a")
def _base64(ctx: Context) -> None:
    message = _tool(ctx)
    message["params"]["name"] = "naïve tool"
    answer = post(ctx, message, {"Mcp-Name": encoded("naïve tool")})
    need(error_of(answer).get("code") != -32020, "the name was not decoded")


@case("H20")
def _spelling(ctx: Context) -> None:
    headers = headers_for(basic(ctx), None, None)
    loud = {name.upper(): f" {value} " for name, value in headers.items()}
    status(endpoint(ctx).ask("POST", json.dumps(basic(ctx)).encode(), loud), 200)


@case("H23")
def _unknown_method(ctx: Context) -> None:
    message = basic(ctx)
    message["method"] = "conform/nothing"
    answer = post(ctx, message)
    status(answer, 404)
    code(answer, -32601)
    need(answer.messages()[-1].get("id") == 1, "the response lacks the id")


@case("H24")
def _missing_meta(ctx: Context) -> None:
    message = basic(ctx)
    headers: dict[str, str | None] = dict(headers_for(message, None, None))
    message["params"] = {}
    answer = post(ctx, message, headers)
    status(answer, 400)
    code(answer, -32602)


def _modern_only(ctx: Context) -> None:
    if ctx.settings.spoken & set(revisions.LEGACY):
        raise NotApplicable("the clause is for servers that support only this revision")


def _gone(ctx: Context, name: str) -> None:
    _modern_only(ctx)
    headers = {"Accept": ACCEPT, "MCP-Protocol-Version": ctx.revision}
    status(endpoint(ctx).ask(name, None, headers), 405)


cases_of((("H25a", "GET"), ("H25b", "DELETE")), _gone)


@case("H26")
def _no_session(ctx: Context) -> None:
    _modern_only(ctx)
    answer = post(ctx, basic(ctx), {"Mcp-Session-Id": "made-up", "Last-Event-ID": "1"})
    status(answer, 200)
    need("mcp-session-id" not in answer.headers, "the response contains a session id")


@case("H34")
def _parallel(ctx: Context) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda id: (id, post(ctx, basic(ctx, id))), range(20)))
    for id, answer in answers:
        need(answer.messages()[-1].get("id") == id, f"request {id} got {answer.body[:100]!r}")


@case("H38")
def _other_verbs(ctx: Context) -> None:
    answer = endpoint(ctx).ask("PUT", b"{}", {"Content-Type": "application/json"})
    status(answer, 405)
    need("POST" in answer.headers.get("allow", ""), "no Allow header that lists POST")


@case("H39")
def _both_eras(ctx: Context) -> None:
    spoken = ctx.settings.spoken
    eras = [max(spoken & set(era), default="") for era in (revisions.LEGACY, revisions.MODERN)]
    if not all(eras):
        raise NotApplicable("the server supports the revisions of one era only")

    def ask(number: int) -> str | None:
        version = eras[number % 2]
        answer = post(ctx, _opening(version, number))
        message = answer.messages()[-1] if answer.body else {}
        told = {"resultType": "complete"} if version in revisions.MODERN else {}
        told = told or {"protocolVersion": version}
        if answer.status != 200 or message.get("id") != number:
            return f"{version} was answered with {answer.status} {answer.body[:100]!r}"
        result = message.get("result", {})
        return None if told.items() <= result.items() else f"{version} was answered {result}"

    with ThreadPoolExecutor(8) as pool:
        wrong = [what for what in pool.map(ask, range(24)) if what is not None]
    need(not wrong, f"{len(wrong)} of 24 clients of both eras: {wrong[:1]}")


def _opening(version: str, id: int) -> dict[str, Any]:
    if version in revisions.MODERN:
        params: dict[str, Any] = {"_meta": revisions.meta({})}
        return {"jsonrpc": "2.0", "id": id, "method": "server/discover", "params": params}
    client = dict(revisions.CLIENT)
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": client}
    return {"jsonrpc": "2.0", "id": id, "method": "initialize", "params": params}


# -- sessions -------------------------------------------------------------------------------------


@case("S01")
def _handles(ctx: Context) -> None:
    handles = [open_session(ctx).handle for _ in range(20)]
    for handle in handles:
        need(all("!" <= character <= "~" for character in handle), f"not visible: {handle!r}")


@case("S01b")
def _unique_handles(ctx: Context) -> None:
    handles = [open_session(ctx).handle for _ in range(20)]
    need(len(set(handles)) == 20, "a session id was issued twice")


@case("S02a")
def _without(ctx: Context) -> None:
    open_session(ctx)
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    answer = post(ctx, ping, {"MCP-Protocol-Version": ctx.revision})
    if answer.status == 200:
        raise NotApplicable("the server does not require a session id")
    status(answer, 400)


def _unknown(ctx: Context, name: str) -> None:
    session = replace(open_session(ctx), handle="0123456789abcdef0123456789abcdef")
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    if name == "POST":
        status(post(ctx, ping, None, session), 404)
        return
    answer = verb(ctx, name, session, {"Accept": ACCEPT})
    need(400 <= answer.status < 500, f"status {answer.status}")


cases_of((("S02b", "POST"), ("S02c", "GET"), ("S02d", "DELETE")), _unknown)


@case("S03")
def _ended(ctx: Context) -> None:
    session = open_session(ctx)
    answer = verb(ctx, "DELETE", session)
    if answer.status == 405:
        raise NotApplicable("the server does not support DELETE")
    status(answer, 200, 202, 204)
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    status(post(ctx, ping, None, session), 404)


@case("S04")
def _own_version(ctx: Context) -> None:
    first = open_session(ctx)
    second = open_session(ctx)
    need(first.handle != second.handle, "two clients share a session")
    for number, session in enumerate((first, second)):
        ping = {"jsonrpc": "2.0", "id": number, "method": "ping"}
        answer = post(ctx, ping, None, session)
        status(answer, 200)
        need(answer.messages()[-1].get("id") == number, "the response went to another client")


@case("S14")
def _failed(ctx: Context) -> None:
    message = basic(ctx)
    message["params"]["protocolVersion"] = 7
    answer = post(ctx, message)
    need(error_of(answer), "an invalid handshake was accepted")
    need("mcp-session-id" not in answer.headers, "a failed handshake left a session")

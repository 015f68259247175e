"""H and S: what Streamable HTTP has of its own: statuses, headers, sessions."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from conformance import revisions
from conformance.check import NotApplicable, case, cases_of, need
from conformance.context import Context
from conformance.http import ACCEPT, HttpEndpoint, Reply, encoded, headers_for

EVIL = "http://evil.example"


def _endpoint(ctx: Context) -> HttpEndpoint:
    assert isinstance(ctx.endpoint, HttpEndpoint)  # the cases say that they are for http
    return ctx.endpoint


def _basic(ctx: Context, id: Any = 1) -> dict[str, Any]:
    """The request that every server of the revision answers: discover, or initialize."""
    if ctx.revision in revisions.MODERN:
        return {
            "jsonrpc": "2.0",
            "id": id,
            "method": "server/discover",
            "params": {"_meta": revisions.meta({})},
        }
    params = {
        "protocolVersion": ctx.revision,
        "capabilities": {},
        "clientInfo": dict(revisions.CLIENT),
    }
    return {"jsonrpc": "2.0", "id": id, "method": "initialize", "params": params}


def _post(
    ctx: Context, message: Any, more: dict[str, str | None] | None = None, **session: str
) -> Reply:
    """A correct POST of this message, with the headers in `more` changed, added or left out."""
    headers = headers_for(message, session.get("session"), session.get("version"))
    for name, value in (more or {}).items():
        for known in list(headers):
            if known.lower() == name.lower():
                del headers[known]
        if value is not None:
            headers[name] = value
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    return _endpoint(ctx).ask("POST", body, headers)


def _open(ctx: Context) -> dict[str, str]:
    """A legacy session, as keyword arguments for `_post`."""
    answer = _post(ctx, _basic(ctx))
    need(answer.status == 200, f"initialize was answered with {answer.status}")
    handle = answer.headers.get("mcp-session-id")
    if handle is None:
        raise NotApplicable("the server keeps no sessions")
    version = str(answer.messages()[0]["result"]["protocolVersion"])
    return {"session": handle, "version": version}


def _status(answer: Reply, *wanted: int) -> None:
    need(answer.status in wanted, f"status {answer.status}, body {answer.body[:200]!r}")


def _code(answer: Reply, code: int) -> None:
    found = answer.json.get("error", {}).get("code")
    need(found == code, f"error {found}, not {code}")


def _tool(ctx: Context) -> dict[str, Any]:
    """A tools/call of a tool that is not there: the headers are judged before that is noticed."""
    params = {"name": "conform_nothing", "arguments": {}, "_meta": revisions.meta({})}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


# -- who is asked, and how -----------------------------------------------------------------------


def _origin(ctx: Context, row: tuple[str, str]) -> None:
    verb, origin = row
    headers = {**headers_for(_basic(ctx), None, None), "Origin": origin}
    body = json.dumps(_basic(ctx)).encode() if verb == "POST" else None
    _status(_endpoint(ctx).ask(verb, body, headers), 403)


cases_of(
    (
        ("H02a", ("POST", EVIL)),
        ("H02b", ("POST", "null")),
        ("H02c", ("GET", EVIL)),
        ("H02d", ("DELETE", EVIL)),
    ),
    _origin,
)


@case("H03")
def _local_origin(ctx: Context) -> None:
    _status(_post(ctx, _basic(ctx), {"Origin": f"http://localhost:{_endpoint(ctx).port}"}), 200)


@case("H04")
def _foreign_host(ctx: Context) -> None:
    answer = _post(ctx, _basic(ctx), {"Host": "evil.example"})
    need(400 <= answer.status < 500, f"status {answer.status}")


@case("H07")
def _kind(ctx: Context) -> None:
    answer = _post(ctx, _basic(ctx))
    _status(answer, 200)
    kind = answer.headers.get("content-type", "").partition(";")[0]
    need(kind in ("application/json", "text/event-stream"), f"content type {kind!r}")
    need(answer.messages()[-1].get("id") == 1, "the answer is not there")


@case("H08")
def _accept(ctx: Context) -> None:
    _status(_post(ctx, _basic(ctx), {"Accept": "text/html"}), 406)
    _status(_post(ctx, _basic(ctx), {"Accept": "*/*"}), 200)


@case("H09")
def _content_type(ctx: Context) -> None:
    _status(_post(ctx, _basic(ctx), {"Content-Type": "text/plain"}), 400, 415)
    json_type = "application/json; charset=utf-8"
    _status(_post(ctx, _basic(ctx), {"Content-Type": json_type}), 200)


@case("H10")
def _accepted(ctx: Context) -> None:
    note = {"jsonrpc": "2.0", "method": "notifications/initialized", "params": {}}
    session = {} if ctx.revision in revisions.MODERN else _open(ctx)
    if not session:
        note["method"] = "notifications/cancelled"
        note["params"] = {"requestId": 1}
    answer = _post(ctx, note, None, **session)
    _status(answer, 202)
    need(not answer.body, f"a body: {answer.body[:100]!r}")


@case("H12")
def _malformed(ctx: Context) -> None:
    answer = _post(ctx, b"{bad")
    _status(answer, 400)
    _code(answer, -32700)


@case("H13")
def _unsupported(ctx: Context) -> None:
    session = _open(ctx)
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    _status(_post(ctx, ping, {"MCP-Protocol-Version": "1999-01-01"}, **session), 400)


@case("H14")
def _no_version(ctx: Context) -> None:
    session = _open(ctx)
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    _status(_post(ctx, ping, {"MCP-Protocol-Version": None}, **session), 200)


def _mismatch(ctx: Context, row: tuple[bool, dict[str, str | None]]) -> None:
    calls, headers = row
    answer = _post(ctx, _tool(ctx) if calls else _basic(ctx), headers)
    _status(answer, 400)
    _code(answer, -32020)


cases_of(
    (
        ("H15", (False, {"MCP-Protocol-Version": None})),
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


@case("H19a")
def _base64(ctx: Context) -> None:
    message = _tool(ctx)
    message["params"]["name"] = "naïve tool"
    answer = _post(ctx, message, {"Mcp-Name": encoded("naïve tool")})
    need(answer.json.get("error", {}).get("code") != -32020, "the name was not decoded")


@case("H20")
def _spelling(ctx: Context) -> None:
    headers = headers_for(_basic(ctx), None, None)
    loud = {name.upper(): f" {value} " for name, value in headers.items()}
    _status(_endpoint(ctx).ask("POST", json.dumps(_basic(ctx)).encode(), loud), 200)


@case("H23")
def _unknown_method(ctx: Context) -> None:
    message = _basic(ctx)
    message["method"] = "conform/nothing"
    answer = _post(ctx, message)
    _status(answer, 404)
    _code(answer, -32601)
    need(answer.json.get("id") == 1, "the id is not there")


@case("H24")
def _missing_meta(ctx: Context) -> None:
    message = _basic(ctx)
    headers: dict[str, str | None] = dict(headers_for(message, None, None))
    message["params"] = {}
    answer = _post(ctx, message, headers)
    _status(answer, 400)
    _code(answer, -32602)


def _gone(ctx: Context, verb: str) -> None:
    headers = {"Accept": ACCEPT, "MCP-Protocol-Version": ctx.revision}
    _status(_endpoint(ctx).ask(verb, None, headers), 405)


cases_of((("H25a", "GET"), ("H25b", "DELETE")), _gone)


@case("H26")
def _no_session(ctx: Context) -> None:
    answer = _post(ctx, _basic(ctx), {"Mcp-Session-Id": "made-up", "Last-Event-ID": "1"})
    _status(answer, 200)
    need("mcp-session-id" not in answer.headers, "a session was given")


@case("H34")
def _parallel(ctx: Context) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda id: (id, _post(ctx, _basic(ctx, id))), range(20)))
    for id, answer in answers:
        need(answer.messages()[-1].get("id") == id, f"request {id} got {answer.body[:100]!r}")


@case("H38")
def _other_verbs(ctx: Context) -> None:
    answer = _endpoint(ctx).ask("PUT", b"{}", {"Content-Type": "application/json"})
    _status(answer, 405)
    need("POST" in answer.headers.get("allow", ""), "no Allow header that lists POST")


# -- sessions ------------------------------------------------------------------------------------


@case("S01")
def _handles(ctx: Context) -> None:
    handles = [_open(ctx)["session"] for _ in range(20)]
    need(len(set(handles)) == 20, "a session id was given twice")
    for handle in handles:
        need(all("!" <= character <= "~" for character in handle), f"not visible: {handle!r}")


@case("S02a")
def _without(ctx: Context) -> None:
    _open(ctx)
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    _status(_post(ctx, ping, {"MCP-Protocol-Version": ctx.revision}), 400)


def _unknown(ctx: Context, verb: str) -> None:
    session = {**_open(ctx), "session": "0123456789abcdef0123456789abcdef"}
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    if verb == "POST":
        _status(_post(ctx, ping, None, **session), 404)
        return
    headers = headers_for(None, session["session"], session["version"])
    _status(_endpoint(ctx).ask(verb, None, headers), 404, 405)


cases_of((("S02b", "POST"), ("S02c", "GET"), ("S02d", "DELETE")), _unknown)


@case("S03")
def _ended(ctx: Context) -> None:
    session = _open(ctx)
    headers = headers_for(None, session["session"], session["version"])
    answer = _endpoint(ctx).ask("DELETE", None, headers)
    if answer.status == 405:
        raise NotApplicable("sessions cannot be ended by clients")
    _status(answer, 200, 202, 204)
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    _status(_post(ctx, ping, None, **session), 404)


@case("S04")
def _own_version(ctx: Context) -> None:
    first = _open(ctx)
    second = _open(ctx)
    need(first["session"] != second["session"], "two clients share a session")
    for number, session in enumerate((first, second)):
        ping = {"jsonrpc": "2.0", "id": number, "method": "ping"}
        answer = _post(ctx, ping, None, **session)
        _status(answer, 200)
        need(answer.messages()[-1].get("id") == number, "the answer went to somebody else")


@case("S14")
def _failed(ctx: Context) -> None:
    message = _basic(ctx)
    message["params"]["protocolVersion"] = 7
    answer = _post(ctx, message)
    need("error" in answer.json, "a handshake that makes no sense was accepted")
    need("mcp-session-id" not in answer.headers, "a failed handshake left a session")

"""The duties of a client, checked on the transcript of a script."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

from conformance import revisions
from conformance.check import NotApplicable, need
from conformance.clients.script import (
    ADD,
    INVALID,
    MIRRORED,
    NO_SUCH_VERSION,
    PING,
    QUESTION,
    ROOTS,
    STATE,
    UNKNOWN,
    Heard,
    Transcript,
)

Verdict = Callable[[Transcript], None]
VERDICTS: dict[str, tuple[tuple[str, ...], Verdict]] = {}
HANDSHAKE = ("legacy", "forgets", "refuses")
TALKING = ("legacy", "forgets")
ALL = (*HANDSHAKE, "modern")


def verdict(id: str, *scripts: str) -> Callable[[Verdict], Verdict]:
    """Register a check for these scripts."""

    def register(check: Verdict) -> Verdict:
        VERDICTS[id] = scripts, check
        return check

    return register


def _requests(heard: Transcript, method: str | None = None) -> list[dict[str, Any]]:
    found = heard.requests(method)
    if not found:
        raise NotApplicable(f"the client sent no {method or 'request'}")
    return found


def _spoke_modern(heard: Transcript) -> list[dict[str, Any]]:
    """The requests of a modern client; a client that only knows the handshake has none."""
    found = [m for m in _requests(heard) if m["method"] != "initialize"]
    if not found:
        raise NotApplicable("the client does not speak 2026-07-28")
    return found


def _posts(heard: Transcript) -> list[Heard]:
    found = [h for h in heard.heard if h.headers is not None and h.verb == "POST"]
    if not found:
        raise NotApplicable("the client does not use HTTP")
    return found


def _meta(message: dict[str, Any]) -> dict[str, Any]:
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    return meta if isinstance(meta, dict) else {}


# -- messages -------------------------------------------------------------------------------------


@verdict("Y01", *ALL)
def _messages(heard: Transcript) -> None:
    for item in heard.heard:
        if item.verb != "POST":
            continue
        parts = item.message if isinstance(item.message, list) else [item.message]
        for part in parts:
            is_message = isinstance(part, dict) and part.get("jsonrpc") == "2.0"
            need(is_message, f"this is not a JSON-RPC 2.0 message: {item.raw[:200]!r}")
    need(heard.heard, "the client sent nothing")


@verdict("Y02", *ALL)
def _ids(heard: Transcript) -> None:
    for message in heard.messages():
        if "method" in message and "id" in message:
            id = message["id"]
            good = isinstance(id, str | int) and not isinstance(id, bool)
            need(good, f"the id of {message['method']} is {id!r}")


@verdict("Y03", *ALL)
def _unique(heard: Transcript) -> None:
    seen: set[tuple[str, Any]] = set()
    for message in _requests(heard):
        if message["method"] == "initialize":
            seen.clear()  # a new session
        name = type(message["id"]).__name__, message["id"]
        need(name not in seen, f"the id {message['id']!r} was used twice")
        seen.add(name)


@verdict("Y04", *ALL)
def _single(heard: Transcript) -> None:
    if heard.agreed == revisions.B:
        raise NotApplicable("2025-03-26 has batches")
    for item in heard.heard:
        need(not isinstance(item.message, list), f"the client sent a batch: {item.raw[:200]!r}")


# -- the handshake --------------------------------------------------------------------------------


@verdict("Y10", *HANDSHAKE)
def _first(heard: Transcript) -> None:
    first = next((m for m in heard.messages() if m.get("method") != "server/discover"), None)
    if first is None:
        raise NotApplicable("the client sent no message")
    need(first.get("method") == "initialize", f"the first message is {first.get('method')!r}")


@verdict("Y11", *HANDSHAKE)
def _contents(heard: Transcript) -> None:
    for message in _requests(heard, "initialize"):
        params = message.get("params") or {}
        need(isinstance(params.get("protocolVersion"), str), "initialize has no protocolVersion")
        for name in ("capabilities", "clientInfo"):
            need(isinstance(params.get(name), dict), f"initialize has no {name}")


@verdict("Y12", *TALKING)
def _initialized(heard: Transcript) -> None:
    _requests(heard, "initialize")
    told = [m.get("method") for m in heard.messages()]
    need("notifications/initialized" in told, "the client sent no notifications/initialized")
    later = told[told.index("initialize") + 1 :]
    others = [m for m in later if m not in ("ping", "initialize", "server/discover", None)]
    need(
        others[:1] == ["notifications/initialized"],
        f"{others[0] if others else 'nothing'} came before notifications/initialized",
    )


@verdict("Y13", "refuses")
def _disconnects(heard: Transcript) -> None:
    _requests(heard, "initialize")
    told = [m["method"] for m in heard.requests()]
    later = [m for m in told[told.index("initialize") :] if m in ("tools/list", "tools/call")]
    need(not later, f"the server speaks {NO_SUCH_VERSION}, and the client went on with {later}")


# -- answers --------------------------------------------------------------------------------------


def _answers(heard: Transcript, id: str) -> list[dict[str, Any]]:
    _requests(heard, "tools/list")
    return heard.answers(id)


@verdict("Y20", "legacy")
def _ping(heard: Transcript) -> None:
    found = _answers(heard, PING)
    need(found, "the ping of the server was not answered")
    need(found[0].get("result") == {}, f"the ping was answered with {found[0]}")


@verdict("Y21", "legacy")
def _unknown(heard: Transcript) -> None:
    found = _answers(heard, UNKNOWN)
    need(found, "a request for an unknown method was not answered")
    code = (found[0].get("error") or {}).get("code")
    need(code == -32601, f"a request for an unknown method was answered with {found[0]}")


@verdict("Y22", "legacy")
def _once(heard: Transcript) -> None:
    _requests(heard, "tools/list")
    expected = {PING, UNKNOWN, ROOTS}
    for message in heard.messages():
        if "method" not in message:
            need(message.get("id") in expected, f"an answer to no request: {message}")
    for id in expected:
        count = len(heard.answers(id))
        need(count <= 1, f"the request {id!r} was answered {count} times")


@verdict("Y23", "legacy")
def _roots(heard: Transcript) -> None:
    found = heard.answers(ROOTS)
    opened = heard.requests("initialize")
    declared = (opened[0].get("params") or {}).get("capabilities") if opened else None
    if not isinstance(declared, dict) or "roots" not in declared:
        raise NotApplicable("the client does not declare roots")
    _requests(heard, "tools/list")
    need(found, "roots/list was not answered, although the client declares roots")
    roots = (found[0].get("result") or {}).get("roots")
    need(isinstance(roots, list), f"roots/list was answered with {found[0]}")
    for root in roots or []:
        uri = root.get("uri") if isinstance(root, dict) else None
        need(isinstance(uri, str) and uri.startswith("file://"), f"a root has the uri {uri!r}")


# -- HTTP -----------------------------------------------------------------------------------------


@verdict("Y30", *ALL)
def _accept(heard: Transcript) -> None:
    for post in _posts(heard):
        accept = (post.headers or {}).get("accept", "")
        for kind in ("application/json", "text/event-stream"):
            need(kind in accept, f"the Accept header {accept!r} lacks {kind}")


@verdict("Y31", *TALKING)
def _version(heard: Transcript) -> None:
    if heard.agreed is None or heard.agreed < revisions.C:
        raise NotApplicable("the agreed revision has no MCP-Protocol-Version header")
    posts = _posts(heard)
    opened = next((n for n, post in enumerate(posts) if _method(post) == "initialize"), 0)
    for post in posts[opened:]:
        if _method(post) not in ("initialize", "server/discover"):
            said = (post.headers or {}).get("mcp-protocol-version")
            need(said is not None, f"{_method(post)} has no MCP-Protocol-Version header")


@verdict("Y32", *TALKING)
def _session(heard: Transcript) -> None:
    for post in _posts(heard):
        if post.session is not None and _method(post) != "initialize":
            said = (post.headers or {}).get("mcp-session-id")
            need(said is not None, f"{_method(post)} has no Mcp-Session-Id header")
            need(said in (post.session, "old"), f"{_method(post)} names the session {said!r}")


@verdict("Y33", "forgets")
def _new_session(heard: Transcript) -> None:
    posts = _posts(heard)
    lost = next((n for n, post in enumerate(posts) if post.lost), None)
    if lost is None:
        raise NotApplicable("the client sent nothing after its session had ended")
    later = [post for post in posts[lost + 1 :] if _method(post) == "initialize"]
    need(later, "the session has ended (404), and the client did not start a new one")
    said = (later[0].headers or {}).get("mcp-session-id")
    need(said is None, f"the new initialize names the session {said!r}")


@verdict("Y34", *ALL)
def _get_accept(heard: Transcript) -> None:
    gets = [h for h in heard.heard if h.verb == "GET"]
    if not gets:
        raise NotApplicable("the client opened no stream with GET")
    for get in gets:
        accept = (get.headers or {}).get("accept", "")
        need("text/event-stream" in accept, f"the Accept header of GET is {accept!r}")


def _method(post: Heard) -> str:
    return str(post.message.get("method", "a response")) if isinstance(post.message, dict) else "?"


# -- 2026-07-28 -----------------------------------------------------------------------------------


@verdict("Y40", "modern")
def _envelope(heard: Transcript) -> None:
    for message in _spoke_modern(heard):
        meta = _meta(message)
        for name in (revisions.PROTOCOL_VERSION, revisions.CLIENT_CAPABILITIES):
            need(name in meta, f"{message['method']} has no {name} in its _meta")


@verdict("Y41", "modern")
def _mirrors(heard: Transcript) -> None:
    _spoke_modern(heard)
    for post in _posts(heard):
        message, headers = post.message, post.headers or {}
        if not isinstance(message, dict) or "id" not in message or _method(post) == "initialize":
            continue
        version = _meta(message).get(revisions.PROTOCOL_VERSION)
        said = headers.get("mcp-protocol-version")
        need(said == version, f"MCP-Protocol-Version is {said!r}, the body says {version!r}")
        said = headers.get("mcp-method")
        need(said == message["method"], f"Mcp-Method is {said!r} on {message['method']}")
        if message["method"] == "tools/call":
            name = (message.get("params") or {}).get("name")
            said = plain(headers.get("mcp-name"))
            need(said == name, f"Mcp-Name is {said!r}, the body says {name!r}")


def plain(value: str | None) -> str | None:
    """A header value, decoded from the Base64 form."""
    if value is None or not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    return base64.b64decode(value[9:-2]).decode("utf-8", "replace")


def _retries(heard: Transcript, tool: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The first call of a tool that asked, and the call with the answers."""
    calls = [
        m
        for m in heard.requests("tools/call")
        if isinstance(m.get("params"), dict) and m["params"].get("name") == tool
    ]
    able = _meta(calls[0]).get(revisions.CLIENT_CAPABILITIES) if calls else None
    if not isinstance(able, dict) or "elicitation" not in able:
        raise NotApplicable(f"the client did not call {tool} with the elicitation capability")
    if len(calls) < 2:
        raise NotApplicable("the client did not repeat the call")
    return calls[0], calls[1]


@verdict("Y42", "modern")
def _state_echoed(heard: Transcript) -> None:
    said = _retries(heard, ADD)[1]["params"].get("requestState")
    need(said == STATE, f"requestState came back as {said!r}, expected {STATE!r}")


@verdict("Y43", "modern")
def _inputs(heard: Transcript) -> None:
    given = _retries(heard, ADD)[1]["params"].get("inputResponses")
    need(isinstance(given, dict) and QUESTION in given, f"inputResponses is {given!r}")


@verdict("Y44", "modern")
def _no_state(heard: Transcript) -> None:
    said = _retries(heard, MIRRORED)[1]["params"]
    need("requestState" not in said, "the retry has a requestState that the server never gave")


@verdict("Y45", "modern")
def _new_id(heard: Transcript) -> None:
    first, again = _retries(heard, ADD)
    need(first["id"] != again["id"], f"the retry has the same id {again['id']!r}")


@verdict("Y46", "modern")
def _argument_headers(heard: Transcript) -> None:
    for post in _posts(heard):
        message = post.message if isinstance(post.message, dict) else {}
        params = message.get("params") if message.get("method") == "tools/call" else None
        if not isinstance(params, dict) or params.get("name") != MIRRORED:
            continue
        region = (params.get("arguments") or {}).get("region")
        said = plain((post.headers or {}).get("mcp-param-region"))
        need(said == region, f"Mcp-Param-Region is {said!r}, the argument is {region!r}")
        return
    raise NotApplicable(f"the client did not call {MIRRORED}")


@verdict("Y47", "modern")
def _left_out(heard: Transcript) -> None:
    _posts(heard)
    _requests(heard, "tools/list")
    called = [(m.get("params") or {}).get("name") for m in heard.requests("tools/call")]
    need(INVALID not in called, f"the client called {INVALID}, whose x-mcp-header is invalid")


@verdict("Y48", "modern")
def _no_responses(heard: Transcript) -> None:
    _spoke_modern(heard)
    for post in _posts(heard):
        is_response = isinstance(post.message, dict) and "method" not in post.message
        need(not is_response, f"the client posted a response: {post.raw[:200]!r}")

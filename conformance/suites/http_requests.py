"""HTTP requests for the H and S suites: correct by default, with single headers replaced."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

from conformance import revisions
from conformance.check import NotApplicable, need
from conformance.client.frames import show
from conformance.client.http_headers import head_of, headers_for
from conformance.client.sse import Event, EventStream
from conformance.client.streamable_http import HttpEndpoint, Reply
from conformance.context import Context

Headers = dict[str, str | None]


@dataclass(frozen=True)
class Session:
    """A legacy session: its id and the negotiated version."""

    handle: str
    version: str


def endpoint(ctx: Context) -> HttpEndpoint:
    assert isinstance(ctx.endpoint, HttpEndpoint)  # the runner tries these cases over HTTP only
    return ctx.endpoint


def basic(ctx: Context, id: Any = 1) -> dict[str, Any]:
    """The request that every server of the revision answers: server/discover or initialize."""
    if ctx.modern:
        return request(ctx, "server/discover", {}, id=id)
    params = {
        "protocolVersion": ctx.revision,
        "capabilities": {},
        "clientInfo": dict(revisions.CLIENT),
    }
    return {"jsonrpc": "2.0", "id": id, "method": "initialize", "params": params}


def request(
    ctx: Context,
    method: str,
    params: dict[str, Any] | None = None,
    *,
    id: Any = 1,
    token: str | None = None,
) -> dict[str, Any]:
    """A request of the revision. A token asks for progress notifications."""
    body = dict(params or {})
    meta = dict(revisions.meta({})) if ctx.modern else {}
    if token is not None:
        meta["progressToken"] = token
    if meta:
        body["_meta"] = {**meta, **body.get("_meta", {})}
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": body}


def call(ctx: Context, role: str, *, id: Any = 1, token: str | None = None) -> dict[str, Any]:
    """A call of the tool with this role."""
    found = ctx.role(role)
    params = {"name": found.tool, "arguments": found.arguments(text="conform")}
    return request(ctx, "tools/call", params, id=id, token=token)


def _headers(
    ctx: Context, message: Any, more: Headers | None, session: Session | None
) -> dict[str, str]:
    handle, version = (session.handle, session.version) if session else (None, None)
    headers = headers_for(message, handle, version, ctx.revision if ctx.modern else None)
    for name, value in (more or {}).items():
        for known in list(headers):
            if known.lower() == name.lower():
                del headers[known]
        if value is not None:
            headers[name] = value
    return headers


def post(
    ctx: Context, message: Any, more: Headers | None = None, session: Session | None = None
) -> Reply:
    """A correct POST of this message, with the headers in `more` changed, added or left out."""
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    headers = _headers(ctx, message, more, session)
    ctx.record(True, body, head_of("POST", endpoint(ctx).path, headers))
    answer = endpoint(ctx).ask("POST", body, headers)
    ctx.record(False, answer.body, answer.head)
    return answer


def post_stream(ctx: Context, message: Any, session: Session | None = None) -> EventStream:
    """The same POST; the response is read as a stream."""
    body = json.dumps(message).encode()
    headers = _headers(ctx, message, None, session)
    ctx.record(True, body, head_of("POST", endpoint(ctx).path, headers))
    return endpoint(ctx).stream("POST", body, headers)


def verb(ctx: Context, name: str, session: Session, more: Headers | None = None) -> Reply:
    """Send GET or DELETE and read the whole response."""
    headers = _headers(ctx, None, more, session)
    ctx.record(True, b"", head_of(name, endpoint(ctx).path, headers))
    answer = endpoint(ctx).ask(name, None, headers)
    ctx.record(False, answer.body, answer.head)
    return answer


def get_stream(
    ctx: Context, session: Session, last: str | None = None, *, accept: str = "text/event-stream"
) -> EventStream:
    """Open a stream with GET; `last` is the Last-Event-ID to resume after."""
    more: Headers = {"Accept": accept, "Content-Type": None}
    if last is not None:
        more["Last-Event-ID"] = last
    headers = _headers(ctx, None, more, session)
    ctx.record(True, b"", head_of("GET", endpoint(ctx).path, headers))
    stream = endpoint(ctx).stream("GET", None, headers)
    ctx.record(False, b"", str(stream.status))  # the response has started, so the stream is open
    return stream


def listen(ctx: Context, session: Session) -> EventStream:
    """The standalone stream. Not applicable if the server does not offer one."""
    stream = get_stream(ctx, session)
    if stream.status == 405:
        stream.close()
        raise NotApplicable("the server offers no stream at GET")
    if stream.status != 200 or not stream.is_stream:
        stream.close()
        need(False, f"GET was answered with {stream.status} {stream.headers.get('content-type')}")
    return stream


def open_session(
    ctx: Context, capabilities: dict[str, Any] | None = None, *, ready: bool = False
) -> Session:
    """Open a new session; `ready` also sends `notifications/initialized`."""
    message = basic(ctx)
    message["params"]["capabilities"] = capabilities or {}
    answer = post(ctx, message)
    need(answer.status == 200, f"initialize was answered with {answer.status}")
    handle = answer.headers.get("mcp-session-id")
    if handle is None:
        raise NotApplicable("the server keeps no sessions")
    session = Session(handle, str(answer.messages()[0]["result"]["protocolVersion"]))
    if ready:
        note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        status(post(ctx, note, None, session), 202)
    return session


def streamed(
    ctx: Context, role: str, session: Session | None = None, *, id: Any = 1, token: str = "conform"
) -> EventStream:
    """Call a tool that sends messages before its response; read the stream until it ends.

    A server may answer with JSON and drop those messages; the case does not apply then.
    """
    with post_stream(ctx, call(ctx, role, id=id, token=token), session) as stream:
        need(stream.status == 200, f"a call was answered with {stream.status}")
        stream.gather(patience(ctx))
    if not stream.is_stream:
        raise NotApplicable("the server answers a call that reports progress with JSON")
    for message in stream.messages:
        ctx.record(False, json.dumps(message).encode())
    return stream


def answer_in(stream: EventStream, id: Any, seconds: float) -> Any:
    """The response to this request, or None if it does not arrive in time."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0 and not stream.ended:
        message = stream.next_message(left)
        if is_response(message) and message.get("id") == id:
            return message
    return None


def patience(ctx: Context) -> float:
    """The time that a call of a fixture tool may take."""
    return ctx.timeout + 2.0


def is_response(message: Any) -> bool:
    return isinstance(message, dict) and ("result" in message or "error" in message)


def identified(events: list[Event]) -> list[Event]:
    return [event for event in events if event.id]


def error_of(answer: Reply) -> dict[str, Any]:
    """The error in a response, JSON or stream; {} if there is none."""
    messages = answer.messages()
    error = messages[-1].get("error") if messages and isinstance(messages[-1], dict) else None
    return error if isinstance(error, dict) else {}


def status(answer: Reply, *wanted: int) -> None:
    need(answer.status in wanted, f"status {answer.status}, body {show(answer.body, 200)}")


def code(answer: Reply, code: int) -> None:
    found = error_of(answer).get("code")
    need(found == code, f"error {found}, not {code}")

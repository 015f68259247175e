"""Streamable HTTP: one endpoint, five revisions, both eras at once.

    POST ── one message ── says its revision in _meta ──► modern: no session, headers checked,
      │                                                   a dropped connection is a cancellation
      └── initialize ──► a session, and its handle in Mcp-Session-Id
      └── anything else ──► the session that Mcp-Session-Id leads to; a dropped connection is only
                            that, and the stream can be resumed
    GET ──► a session's standalone stream, or the rest of another one (Last-Event-ID)
    DELETE ──► the end of a session

Here is which of these a request is; what follows is in `modern`, `legacy` and `standing`.
"""

from typing import TYPE_CHECKING, Final

from daemon.tools.authority import Principal
from daemon.tools.surface import Surface
from daemon.transports.http.edge.access_log import Access
from daemon.transports.http.edge.messages import (
    CLOSE,
    Pace,
    Receive,
    Refusal,
    Scope,
    Send,
    accepts,
    headers_of,
    read_body,
    require_json,
)
from daemon.transports.http.mcp import legacy, modern, session_stream
from daemon.transports.http.mcp.calls import Calls, Inbound
from daemon.transports.http.mcp.refusals import refuse_event
from daemon.transports.http.mcp.sessions import HttpSessions
from protocol import jsonrpc
from protocol.jsonrpc import Invalid, Notification, Request, Response

if TYPE_CHECKING:
    from daemon.rpc.hub import Hub

ALLOW: Final = (b"allow", b"GET, POST, DELETE, OPTIONS")


class Streamable:
    """The MCP endpoint of one surface."""

    def __init__(
        self, hub: "Hub", sessions: HttpSessions, surface: Surface, *, dialects: str, pace: Pace
    ) -> None:
        self._calls = Calls(hub, sessions, surface, dialects=dialects, pace=pace)

    def close(self) -> None:
        """The daemon is leaving: calls without a session are answered now."""
        self._calls.close()

    async def __call__(
        self, scope: Scope, receive: Receive, send: Send, principal: Principal, access: Access
    ) -> None:
        inbound = Inbound(headers_of(scope), receive, send, principal, access)
        match scope["method"]:
            case "POST":
                await self._post(inbound)
            case "GET":
                await session_stream.listen(self._calls, inbound)
            case "DELETE":
                await session_stream.end(self._calls, inbound)
            case method:
                raise Refusal(405, f"{method} is not for this endpoint", headers=[ALLOW, CLOSE])

    async def _post(self, inbound: Inbound) -> None:
        calls, headers = self._calls, inbound.headers
        require_json(headers)
        if not accepts(headers, "application/json", "text/event-stream"):
            raise Refusal(
                406, "Accept must list application/json and text/event-stream", headers=[CLOSE]
            )
        body = await read_body(headers, inbound.receive, calls.hub.settings.frame_bytes)
        inbound.access.took = len(body)
        if jsonrpc.is_array(body):
            await legacy.in_session(calls, inbound, body, None)
            return
        message = jsonrpc.decode(body)
        match message:
            case Request():
                known = message.method in calls.hub.methods
                inbound.access.method = message.method if known else "?"
                if modern.is_modern(message, headers):
                    await modern.answer(calls, inbound, message)
                elif message.method == "initialize" and legacy.SESSION not in headers:
                    await legacy.open_session(calls, inbound, message)
                else:
                    await legacy.in_session(calls, inbound, body, message)
            case Invalid():
                await refuse_event(inbound.send, calls.fresh().message(message), 400)
            case Notification() | Response():
                await legacy.in_session(calls, inbound, body, message)

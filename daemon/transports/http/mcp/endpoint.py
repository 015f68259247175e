"""Streamable HTTP: one endpoint for five revisions, both eras at once.

    POST ── one message ── names its revision in _meta ──► modern: no session, headers checked,
      │                                                    a dropped connection cancels the call
      └── initialize ──► a new session, and its handle in Mcp-Session-Id
      └── anything else ──► the session of Mcp-Session-Id; the call outlives a dropped connection
                            and its stream can be resumed
    GET ──► a session's standalone stream, or the rest of another one (Last-Event-ID)
    DELETE ──► the end of a session

This module tells these cases apart; `modern`, `legacy` and `session_stream` handle them.
"""

from typing import Final

from daemon.tools.authority import Principal
from daemon.tools.surface import Surface
from daemon.transports.http.edge.access_log import AccessRecord
from daemon.transports.http.edge.messages import (
    CLOSE,
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
from daemon.transports.http.mcp.calls import Calls, Inbound, McpServices
from daemon.transports.http.mcp.refusals import refuse_event
from protocol import jsonrpc
from protocol.jsonrpc import Invalid, Notification, Request, Response

ALLOW: Final = (b"allow", b"GET, POST, DELETE, OPTIONS")


class McpEndpoint:
    """The MCP endpoint of one surface."""

    def __init__(self, services: McpServices, surface: Surface, *, dialects: str) -> None:
        self._calls = Calls(services, surface, dialects=dialects)

    def close(self) -> None:
        """The daemon is leaving: answer the calls without a session now, with an error."""
        self._calls.close()

    async def __call__(
        self, scope: Scope, receive: Receive, send: Send, principal: Principal, access: AccessRecord
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
                raise Refusal(405, f"{method} is not allowed here", headers=[ALLOW, CLOSE])

    async def _post(self, inbound: Inbound) -> None:
        calls, headers = self._calls, inbound.headers
        require_json(headers)
        if not accepts(headers, "application/json", "text/event-stream"):
            raise Refusal(
                406, "Accept must list application/json and text/event-stream", headers=[CLOSE]
            )
        body = await read_body(headers, inbound.receive, calls.frame_bytes)
        inbound.access.bytes_in = len(body)
        if jsonrpc.is_array(body):
            await legacy.in_session(calls, inbound, body, None)
            return
        message = jsonrpc.decode(body)
        match message:
            case Request():
                known = message.method in calls.methods
                inbound.access.method = message.method if known else "?"
                if modern.is_modern(message, headers):
                    await modern.answer(calls, inbound, message)
                elif message.method == "initialize" and legacy.SESSION not in headers:
                    await legacy.open_session(calls, inbound, message)
                else:
                    await legacy.in_session(calls, inbound, body, message)
            case Invalid():
                await refuse_event(inbound.send, calls.new_connection().message(message), 400)
            case Notification() | Response():
                await legacy.in_session(calls, inbound, body, message)

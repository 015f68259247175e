"""A request of 2026-07-28: no session, its headers repeat it, hanging up cancels it."""

from collections.abc import Awaitable
from functools import partial

import anyio

from daemon.transports.http.edge.messages import reply
from daemon.transports.http.mcp.calls import Calls, Inbound, cancel_when_gone, frame_of
from daemon.transports.http.mcp.event_stream import Stream
from daemon.transports.http.mcp.exchange import Exchange
from daemon.transports.http.mcp.refusals import refuse_event, refuse_id, status_of
from protocol.connection import Call
from protocol.errors import Fault, error_object
from protocol.headers import VERSION, check_request
from protocol.jsonrpc import Request
from protocol.lifecycle import speaks_modern
from protocol.revisions import MODERN, PROTOCOL_VERSION


def is_modern(request: Request, headers: dict[str, list[str]]) -> bool:
    """Whether the message or its headers say so; where only one does, the other is refused."""
    return speaks_modern(request) or MODERN.date in headers.get(VERSION, ())


async def answer(calls: Calls, inbound: Inbound, request: Request) -> None:
    if not speaks_modern(request):
        await _refuse_mismatch(inbound, request)
        return
    connection = calls.fresh()
    connection.lifecycle.mirror = partial(check_request, inbound.headers)
    call = connection.message(request)
    if not isinstance(call, Call):
        await refuse_event(inbound.send, call, 400)
        return
    access = inbound.access
    access.era = "modern"
    access.trace(call.meta.traceparent)
    client = call.meta.client
    visitor = calls.sessions.visitor(inbound.principal, client.name if client is not None else "")
    stream = Stream(limit=calls.hub.settings.output_bytes)
    exchange = Exchange(visitor, connection, calls.surface, stream, inbound.headers)
    outcome = calls.begin(call, exchange)
    try:
        if not isinstance(outcome, Awaitable):
            status, extra = status_of(outcome)
            await reply(inbound.send, status, frame_of(connection, call, outcome), extra)
            return
        with calls.ending(call, exchange):
            async with anyio.create_task_group() as group:
                group.start_soon(cancel_when_gone, inbound.receive, group.cancel_scope)
                group.start_soon(calls.finish, call, outcome, exchange)
                await calls.deliver(stream, inbound)
                group.cancel_scope.cancel()
    finally:
        access.tool = call.tool  # known once the handler ran, which may be late


async def _refuse_mismatch(inbound: Inbound, request: Request) -> None:
    """The header says modern, the body does not: what is missing is in the body (D23)."""
    if request.method == "initialize":
        error = error_object(Fault.METHOD_NOT_FOUND, request.method)
        await refuse_id(inbound.send, 404, request.id, error)
        return
    missing = f"_meta.{PROTOCOL_VERSION}: required field is missing"
    error = error_object(Fault.INVALID_PARAMS, missing)
    await refuse_id(inbound.send, 400, request.id, error)

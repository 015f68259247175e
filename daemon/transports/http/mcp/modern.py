"""Requests of 2026-07-28: no session, headers that repeat the message, cancel by disconnecting."""

from functools import partial

import anyio

from daemon.rpc.gate import Pending
from daemon.transports.http.edge.messages import reply
from daemon.transports.http.mcp.calls import Calls, Inbound, cancel_when_gone, frame_of
from daemon.transports.http.mcp.refusals import refuse_event, refuse_id, status_of
from protocol.connection import Call
from protocol.errors import Fault, error_object
from protocol.headers import VERSION, check_request
from protocol.jsonrpc import Request
from protocol.lifecycle import speaks_modern
from protocol.revisions import MODERN, PROTOCOL_VERSION


def is_modern(request: Request, headers: dict[str, list[str]]) -> bool:
    """Whether the message or its headers name 2026-07-28; `answer` rejects a mismatch."""
    return speaks_modern(request) or MODERN.date in headers.get(VERSION, ())


async def answer(calls: Calls, inbound: Inbound, request: Request) -> None:
    """Answer one modern request."""
    if not speaks_modern(request):
        await _refuse_mismatch(inbound, request)
        return
    connection = calls.new_connection()
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
    exchange = calls.exchange(visitor, connection, inbound, None)
    outcome = calls.begin(call, exchange)
    try:
        if not isinstance(outcome, Pending):
            status, extra = status_of(outcome)
            await reply(inbound.send, status, frame_of(connection, call, outcome), extra)
            return
        with calls.ending(call, exchange):
            async with anyio.create_task_group() as group:
                group.start_soon(cancel_when_gone, inbound.receive, group.cancel_scope)
                group.start_soon(calls.finish, call, outcome, exchange)
                await calls.deliver(exchange.stream, inbound)
                group.cancel_scope.cancel()
    finally:
        access.tool = call.tool  # the handler sets it, possibly late


async def _refuse_mismatch(inbound: Inbound, request: Request) -> None:
    """The header says 2026-07-28 and the body does not: the body lacks a field."""
    if request.method == "initialize":
        error = error_object(Fault.METHOD_NOT_FOUND, request.method)
        await refuse_id(inbound.send, 404, request.id, error)
        return
    missing = f"_meta.{PROTOCOL_VERSION}: required field is missing"
    error = error_object(Fault.INVALID_PARAMS, missing)
    await refuse_id(inbound.send, 400, request.id, error)

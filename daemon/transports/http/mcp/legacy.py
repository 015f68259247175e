"""Messages of 2025-03-26 to 2025-11-25: each opens a session or belongs to one.

A call outlives its connection: it continues in the daemon's task group, and its messages stay on
its stream for a client that comes back (`session_stream`).
"""

from typing import Final

import anyio

from daemon.rpc.failures import Failure, Overloaded, failure_for
from daemon.rpc.gate import Pending
from daemon.transports.http.edge.messages import RawHeaders, only, reply
from daemon.transports.http.mcp.calls import Calls, Inbound, cancel_when_gone, frame_of
from daemon.transports.http.mcp.exchange import Exchange
from daemon.transports.http.mcp.refusals import ProtocolRefusal, refuse_event, refuse_id, status_of
from daemon.transports.http.mcp.session import HttpSession, Running
from protocol.connection import Call, Cancelled, Event, Refused
from protocol.errors import Fault, error_object
from protocol.headers import VERSION
from protocol.jsonrpc import Notification, Request, Response
from protocol.revisions import MODERN, SUPPORTED

SESSION: Final = "mcp-session-id"

#: Methods that change the stored state of a session.
_REMEMBERED: Final = frozenset({"logging/setLevel", "resources/subscribe", "resources/unsubscribe"})


async def open_session(calls: Calls, inbound: Inbound, request: Request) -> None:
    """Answer `initialize`; the session exists only if the handshake succeeds."""
    check_version(inbound)
    connection = calls.new_connection()
    call = connection.message(request)
    if not isinstance(call, Call):
        await refuse_event(inbound.send, call, 400)
        return
    inbound.access.trace(call.meta.traceparent)
    visitor = calls.sessions.visitor(inbound.principal, "")
    exchange = calls.exchange(visitor, connection, inbound, None)
    outcome = await calls.run(call, exchange)
    if isinstance(outcome, Failure):
        await reply(inbound.send, status_of(outcome)[0], frame_of(connection, call, outcome))
        return
    try:
        session, handle = await calls.sessions.open(
            inbound.principal, connection, calls.surface, calls.dialects
        )
    except Overloaded as error:
        failure = failure_for(error, call.revision)
        status, extra = status_of(failure)
        await reply(inbound.send, status, frame_of(connection, call, failure), extra)
        return
    inbound.access.session = session.session_id
    answer = frame_of(connection, call, outcome)
    await reply(inbound.send, 200, answer, [(SESSION.encode(), handle.encode())])


async def in_session(
    calls: Calls, inbound: Inbound, body: bytes, message: Request | Notification | Response | None
) -> None:
    """Handle a message of a session, or an array of them (`message` None)."""
    check_version(inbound)
    if SESSION not in inbound.headers:
        if message is None:
            await refuse_event(inbound.send, next(calls.new_connection().frame(body)), 400)
        else:
            await _without_session(calls, inbound, message)
        return
    session = await find_session(calls, inbound)
    connection = session.connection
    stream = session.stream()
    exchange = calls.exchange(session, connection, inbound, stream)
    if message is None:
        events = connection.frame(body)
    else:
        event = connection.message(message)
        events = iter(() if event is None else (event,))
    answer, status, extra, waiting = b"", 202, [], False
    called: Call | None = None
    has_changed = False
    for event in events:
        if isinstance(event, Call):
            called = event
            inbound.access.trace(event.meta.traceparent)
        frame, said, more, waits = _handle(calls, event, session, exchange)
        waiting = waiting or waits
        if isinstance(event, Call) and event.method in _REMEMBERED and not waits:
            has_changed = True
        if frame:
            answer, status, extra = frame, said, more
    try:
        if has_changed:
            await session.save()  # before the answer that acknowledges the change
        if answer:
            is_array = message is None
            await reply(inbound.send, 200 if is_array and status != 400 else status, answer, extra)
        elif waiting:
            async with anyio.create_task_group() as group:
                group.start_soon(cancel_when_gone, inbound.receive, group.cancel_scope)
                await calls.deliver(stream, inbound, session)
                group.cancel_scope.cancel()
        else:
            await reply(inbound.send, 202)
    finally:
        if called is not None:
            inbound.access.tool = called.tool  # the handler sets it, possibly late


async def find_session(calls: Calls, inbound: Inbound) -> HttpSession:
    """The session of a request; 400 without a handle, 404 for an unknown one."""
    handle = only(inbound.headers, SESSION)
    if handle is None:
        raise ProtocolRefusal(400, Fault.INVALID_REQUEST, "Mcp-Session-Id is missing")
    session = await calls.sessions.find(handle, inbound.principal, calls.dialects)
    if session is None:
        raise ProtocolRefusal(404, Fault.INVALID_REQUEST, "no such session: initialize again")
    inbound.access.session = session.session_id
    inbound.access.era = "legacy"
    return session


def check_version(inbound: Inbound) -> None:
    """Reject an unsupported MCP-Protocol-Version header, also on requests without a message."""
    version = only(inbound.headers, VERSION)
    if version is not None and version not in SUPPORTED:
        raise ProtocolRefusal(
            400,
            Fault.UNSUPPORTED_VERSION,
            version[:64],
            supported=SUPPORTED,
            requested=version[:64],
        )


async def _without_session(
    calls: Calls, inbound: Inbound, message: Request | Notification | Response
) -> None:
    missing = "Mcp-Session-Id is missing: send initialize first, or speak 2026-07-28"
    if isinstance(message, Request):
        event = calls.new_connection().message(message)
        if isinstance(event, Call):
            error = error_object(Fault.INVALID_PARAMS, missing)
            await refuse_id(inbound.send, 400, message.id, error)
            return
        not_found = isinstance(event, Refused) and event.fault is Fault.METHOD_NOT_FOUND
        await refuse_event(inbound.send, event, 404 if not_found else 400)
    elif isinstance(message, Notification) and MODERN.date in inbound.headers.get(VERSION, ()):
        await reply(inbound.send, 202)  # accepted and ignored
    else:
        await refuse_id(inbound.send, 400, b"", error_object(Fault.INVALID_REQUEST, missing))


def _handle(
    calls: Calls, event: Event, session: HttpSession, exchange: Exchange
) -> tuple[bytes, int, RawHeaders, bool]:
    """Handle one event of a session.

    Gives the frame to answer with (empty if there is none yet), its status and headers, and
    whether a call is running that will answer later.
    """
    match event:
        case Call():
            outcome = calls.begin(event, exchange)
            if isinstance(outcome, Pending):
                running = Running(event, exchange.stream, outcome)
                session.running[id(event)] = running
                calls.tasks.start_soon(_run, calls, session, running, exchange)
                return b"", 0, [], True
            status, extra = status_of(outcome)
            frame = frame_of(session.connection, event, outcome)
            # In a legacy session 404 would mean that the session has ended.
            return frame, 200 if status == 404 else status, extra, False
        case Refused():
            is_broken = event.fault in (Fault.PARSE_ERROR, Fault.INVALID_REQUEST)
            return event.frame, 400 if is_broken else 200, [], False
        case Cancelled():
            session.cancel(event.call)
        case Response():
            session.answered(event)
        case Notification():
            pass
    return b"", 202, [], False


async def _run(calls: Calls, session: HttpSession, running: Running, exchange: Exchange) -> None:
    """Finish a call of a session; it outlives the connection it came on."""
    call = running.call
    save = session.save if call.method in _REMEMBERED else None
    try:
        await calls.finish(call, running.pending, exchange, save)
    finally:
        session.running.pop(id(call), None)

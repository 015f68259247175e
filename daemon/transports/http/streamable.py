"""Streamable HTTP: one endpoint, five revisions, both eras at once.

    POST ── one message ── says its revision in _meta ──► modern: no session, headers checked,
      │                                                   a dropped connection is a cancellation
      └── initialize ──► a session, and its handle in Mcp-Session-Id
      └── anything else ──► the session that Mcp-Session-Id leads to; a dropped connection is only
                            that, and the stream can be resumed
    GET ──► a session's standalone stream, or the rest of another one (Last-Event-ID)
    DELETE ──► the end of a session

Errors of the protocol are JSON-RPC in the body; the status beside them follows the revision.
"""

from collections.abc import Awaitable
from functools import partial
from typing import TYPE_CHECKING, Final

import anyio

from daemon.authority import Principal
from daemon.dispatcher import Outcome
from daemon.failures import Overloaded, error_for
from daemon.surface import Surface
from daemon.transports.http.access import Access
from daemon.transports.http.events import Stream, write_stream
from daemon.transports.http.exchange import Exchange
from daemon.transports.http.messages import (
    CLOSE,
    Pace,
    RawHeaders,
    Receive,
    Refusal,
    Scope,
    Send,
    accepts,
    headers_of,
    only,
    read_body,
    reply,
    require_json,
)
from daemon.transports.http.sessions import HttpSession, HttpSessions
from protocol import jsonrpc
from protocol.connection import Call, Cancelled, Connection, Event, Refused
from protocol.errors import ErrorObject, Fault, error_object
from protocol.headers import VERSION, check_request
from protocol.jsonrpc import Invalid, Notification, Request, Response
from protocol.lifecycle import speaks_modern
from protocol.revisions import MODERN, PROTOCOL_VERSION, SUPPORTED

if TYPE_CHECKING:
    from daemon.hub import Hub

SESSION: Final = "mcp-session-id"
LAST_EVENT: Final = "last-event-id"
ALLOW: Final = (b"allow", b"GET, POST, DELETE, OPTIONS")
ALLOW_MODERN: Final = (b"allow", b"POST, OPTIONS")

#: Methods that change what a session remembers across restarts.
_REMEMBERED: Final = frozenset({"logging/setLevel", "resources/subscribe", "resources/unsubscribe"})

#: Statuses of errors that a handler gave (D25); any other is 200, the answer being in the body.
_HANDLER_STATUS: Final = {
    Fault.METHOD_NOT_FOUND.modern_code: 404,
    Fault.HEADER_MISMATCH.modern_code: 400,
    Fault.MISSING_CAPABILITY.modern_code: 400,
    Fault.UNSUPPORTED_VERSION.modern_code: 400,
}


class Streamable:
    """The MCP endpoint of one surface."""

    def __init__(
        self,
        hub: "Hub",
        sessions: HttpSessions,
        surface: Surface,
        *,
        dialects: str,
        pace: Pace,
    ) -> None:
        self._hub = hub
        self._pace = pace
        self._sessions = sessions
        self._surface = surface
        self._dialects = dialects
        self._offered = surface.offered()

    async def __call__(
        self, scope: Scope, receive: Receive, send: Send, principal: Principal, access: Access
    ) -> None:
        headers = headers_of(scope)
        match scope["method"]:
            case "POST":
                await self._post(headers, receive, send, principal, access)
            case "GET":
                await self._get(headers, receive, send, principal, access)
            case "DELETE":
                await self._delete(headers, send, principal, access)
            case method:
                raise Refusal(405, f"{method} is not for this endpoint", headers=[ALLOW, CLOSE])

    # --- POST --------------------------------------------------------------------------------

    async def _post(
        self,
        headers: dict[str, list[str]],
        receive: Receive,
        send: Send,
        principal: Principal,
        access: Access,
    ) -> None:
        require_json(headers)
        if not accepts(headers, "application/json", "text/event-stream"):
            raise Refusal(
                406, "Accept must list application/json and text/event-stream", headers=[CLOSE]
            )
        body = await read_body(headers, receive, self._hub.settings.frame_bytes)
        access.took = len(body)
        if jsonrpc.is_array(body):
            await self._in_session(headers, body, None, receive, send, principal, access)
            return
        message = jsonrpc.decode(body)
        match message:
            case Request():
                access.method = message.method if message.method in self._hub.methods else "?"
                if self._is_modern(message, headers):
                    await self._modern(headers, message, receive, send, principal, access)
                elif message.method == "initialize" and SESSION not in headers:
                    await self._open(headers, message, send, principal, access)
                else:
                    await self._in_session(headers, body, message, receive, send, principal, access)
            case Invalid():
                await self._refused(send, self._fresh().message(message), 400)
            case Notification() | Response():
                await self._in_session(headers, body, message, receive, send, principal, access)

    def _is_modern(self, request: Request, headers: dict[str, list[str]]) -> bool:
        return speaks_modern(request) or MODERN.date in headers.get(VERSION, ())

    def _fresh(self) -> Connection:
        return Connection(self._offered, null_ids=False)

    async def _modern(
        self,
        headers: dict[str, list[str]],
        request: Request,
        receive: Receive,
        send: Send,
        principal: Principal,
        access: Access,
    ) -> None:
        connection = self._fresh()
        connection.lifecycle.mirror = partial(check_request, headers)
        if not speaks_modern(request):
            # The header says modern, the body does not: what is missing is in the body (D23).
            if request.method == "initialize":
                error = error_object(Fault.METHOD_NOT_FOUND, request.method)
                await self._failed(send, 404, request.id, error)
            else:
                error = error_object(
                    Fault.INVALID_PARAMS, f"_meta.{PROTOCOL_VERSION}: required field is missing"
                )
                await self._failed(send, 400, request.id, error)
            return
        call = connection.message(request)
        if not isinstance(call, Call):
            await self._refused(send, call, 400)
            return
        access.era = "modern"
        access.trace(call.meta.traceparent)
        client = call.meta.client
        visitor = self._sessions.visitor(principal, client.name if client is not None else "")
        stream = Stream(limit=self._hub.settings.output_bytes)
        exchange = Exchange(visitor, connection, self._surface, stream, headers)
        outcome = self._begin(call, exchange)
        access.tool = call.tool
        if not isinstance(outcome, Awaitable):
            status, extra = _status(outcome)
            await reply(send, status, _answer(connection, call, outcome), extra)
            return
        async with anyio.create_task_group() as group:
            group.start_soon(_cancel_when_gone, receive, group.cancel_scope)
            group.start_soon(self._finish, call, outcome, exchange)
            await self._deliver(stream, send, access)
            group.cancel_scope.cancel()

    async def _open(
        self,
        headers: dict[str, list[str]],
        request: Request,
        send: Send,
        principal: Principal,
        access: Access,
    ) -> None:
        """A legacy handshake: the session exists once the handshake is good (S14)."""
        self._check_version(headers)
        connection = self._fresh()
        call = connection.message(request)
        if not isinstance(call, Call):
            await self._refused(send, call, 400)
            return
        visitor = self._sessions.visitor(principal, "")
        stream = Stream(limit=self._hub.settings.output_bytes)
        outcome = self._begin(call, Exchange(visitor, connection, self._surface, stream, headers))
        assert not isinstance(outcome, Awaitable)  # initialize is answered at once
        if isinstance(outcome, ErrorObject):
            await reply(send, _status(outcome)[0], _answer(connection, call, outcome))
            return
        session, handle = await self._sessions.open(
            principal, connection, self._surface, self._dialects
        )
        access.session = session.session_id
        answer = _answer(connection, call, outcome)
        await reply(send, 200, answer, [(b"mcp-session-id", handle.encode())])

    async def _in_session(
        self,
        headers: dict[str, list[str]],
        body: bytes,
        message: Request | Notification | Response | None,
        receive: Receive,
        send: Send,
        principal: Principal,
        access: Access,
    ) -> None:
        """A legacy message, or an array of them (`message` None)."""
        self._check_version(headers)
        if SESSION not in headers:
            if message is None:
                await self._refused(send, next(self._fresh().frame(body)), 400)
            else:
                await self._without_session(headers, message, send)
            return
        session = await self._session(headers, principal, access)
        stream = session.stream()
        exchange = Exchange(session, session.connection, session.surface, stream, headers)
        connection = session.connection
        if message is None:
            events = connection.frame(body)
        else:
            event = connection.message(message)
            events = iter(() if event is None else (event,))
        answer, status, extra, waiting = b"", 202, [], False
        for event in events:
            frame, said, more, waits = self._handle(event, session, exchange, access)
            waiting = waiting or waits
            if frame:
                answer, status, extra = frame, said, more
        if answer:
            await reply(send, 200 if message is None and status != 400 else status, answer, extra)
        elif waiting:
            async with anyio.create_task_group() as group:
                group.start_soon(_cancel_when_gone, receive, group.cancel_scope)
                await self._deliver(stream, send, access, session)
                group.cancel_scope.cancel()
        else:
            await reply(send, 202)

    async def _without_session(
        self,
        headers: dict[str, list[str]],
        message: Request | Notification | Response,
        send: Send,
    ) -> None:
        missing = "Mcp-Session-Id is missing: send initialize first, or speak 2026-07-28"
        if isinstance(message, Request):
            event = self._fresh().message(message)
            if isinstance(event, Call):
                await self._failed(
                    send, 400, message.id, error_object(Fault.INVALID_PARAMS, missing)
                )
                return
            not_found = isinstance(event, Refused) and event.fault is Fault.METHOD_NOT_FOUND
            await self._refused(send, event, 404 if not_found else 400)
        elif isinstance(message, Notification) and MODERN.date in headers.get(VERSION, ()):
            await reply(send, 202)  # X10: accepted, and nothing follows from it
        else:
            await self._failed(send, 400, b"", error_object(Fault.INVALID_REQUEST, missing))

    def _handle(
        self, event: Event, session: HttpSession, exchange: Exchange, access: Access
    ) -> tuple[bytes, int, RawHeaders, bool]:
        """One event of a session: the frame to answer with (if already), status, and whether
        something runs that will answer later."""
        match event:
            case Call():
                outcome = self._begin(event, exchange)
                access.tool = event.tool
                if isinstance(outcome, Awaitable):
                    session.running[id(event)] = exchange.stream
                    self._hub.tasks.start_soon(self._run, session, event, outcome, exchange)
                    return b"", 0, [], True
                status, extra = _status(outcome)
                frame = _answer(session.connection, event, outcome)
                if event.method in _REMEMBERED:
                    self._hub.tasks.start_soon(session.save)
                # In a legacy session 404 would say that the session is over.
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

    # --- calls -------------------------------------------------------------------------------

    def _begin(self, call: Call, exchange: Exchange) -> Outcome | Awaitable[Outcome]:
        hub = self._hub
        inflight = len(exchange.connection.inflight)
        if inflight > hub.settings.in_flight or hub.in_flight >= hub.settings.in_flight_total:
            limit = hub.settings.in_flight
            return error_for(Overloaded(f"at most {limit} calls at once"), call.revision)
        return hub.dispatcher.begin(call, exchange)

    async def _finish(self, call: Call, pending: Awaitable[Outcome], exchange: Exchange) -> None:
        """See a call through, to its answer on the exchange's stream."""
        self._hub.begin()
        try:
            outcome = await pending
            exchange.stream.status = _status(outcome)
            frame = _answer(exchange.connection, call, outcome)
            if frame or call.batch is None:
                exchange.stream.finish(frame)
        finally:
            exchange.connection.drop(call)
            self._hub.finish()

    async def _run(
        self, session: HttpSession, call: Call, pending: Awaitable[Outcome], exchange: Exchange
    ) -> None:
        """A call of a session: it outlives the connection it came on."""
        scope = session.scopes[id(call)] = anyio.CancelScope()
        try:
            with scope:
                await self._finish(call, pending, exchange)
        finally:
            session.scopes.pop(id(call), None)
            session.running.pop(id(call), None)
            if call.method in _REMEMBERED:
                self._hub.tasks.start_soon(session.save)

    async def _deliver(
        self,
        stream: Stream,
        send: Send,
        access: Access,
        session: HttpSession | None = None,
    ) -> None:
        """The answer as JSON if it comes soon and alone, else everything as an event stream."""
        turn = stream.claim()
        try:
            with anyio.move_on_after(self._pace.commit):
                while not (stream.is_done or stream.is_talkative or stream.is_detached):
                    await stream.wait(self._pace.commit)
            if stream.is_done and not stream.is_talkative and not stream.is_detached:
                frames = stream.take()
                status, extra = stream.status
                body = frames[0][1] if frames else b""
                await reply(send, status if body else 202, body, extra)
                return
            access.is_stream = True
            if session is not None:
                session.keep(stream)
            await self._stream(stream, send, turn)
        finally:
            stream.release(turn)
            if session is not None:
                session.forget_streams()

    async def _stream(self, stream: Stream, send: Send, turn: int) -> None:
        await write_stream(stream, send, turn=turn, keep_alive=self._pace.keep_alive, headers=[])

    # --- GET and DELETE ----------------------------------------------------------------------

    async def _get(
        self,
        headers: dict[str, list[str]],
        receive: Receive,
        send: Send,
        principal: Principal,
        access: Access,
    ) -> None:
        if MODERN.date in headers.get(VERSION, ()):
            raise Refusal(
                405, "2026-07-28 has no GET; see subscriptions/listen", headers=[ALLOW_MODERN]
            )
        if not accepts(headers, "text/event-stream"):
            raise Refusal(406, "Accept must list text/event-stream")
        self._check_version(headers)
        session = await self._session(headers, principal, access)
        last_event = only(headers, LAST_EVENT)
        found = session.find_stream(last_event) if last_event else None
        if found is not None:
            stream, number = found
            stream.rewind(number)
        else:
            # An id we do not know (any more) resumes nothing: it is an ordinary new stream (S12).
            fresh = session.listen()
            if fresh is None:
                raise Refusal(409, "this session has its stream open already")
            stream = fresh
        access.is_stream = True
        turn = stream.claim()
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(_cancel_when_gone, receive, group.cancel_scope)
                await self._stream(stream, send, turn)
                group.cancel_scope.cancel()
        finally:
            stream.release(turn)
            session.forget_streams()

    async def _delete(
        self,
        headers: dict[str, list[str]],
        send: Send,
        principal: Principal,
        access: Access,
    ) -> None:
        if MODERN.date in headers.get(VERSION, ()):
            raise Refusal(405, "2026-07-28 has no sessions to end", headers=[ALLOW_MODERN])
        self._check_version(headers)
        await self._sessions.end(await self._session(headers, principal, access))
        await reply(send, 204)

    async def _session(
        self, headers: dict[str, list[str]], principal: Principal, access: Access
    ) -> HttpSession:
        handle = only(headers, SESSION)
        if handle is None:
            raise ProtocolRefusal(400, Fault.INVALID_REQUEST, "Mcp-Session-Id is missing")
        session = await self._sessions.find(handle, principal, self._dialects)
        if session is None:
            raise ProtocolRefusal(404, Fault.INVALID_REQUEST, "no such session: initialize again")
        access.session = session.session_id
        access.era = "legacy"
        return session

    def _check_version(self, headers: dict[str, list[str]]) -> None:
        """A version header that nobody supports is refused, also without a message (D22)."""
        version = only(headers, VERSION)
        if version is not None and version not in SUPPORTED:
            raise ProtocolRefusal(
                400,
                Fault.UNSUPPORTED_VERSION,
                version[:64],
                supported=SUPPORTED,
                requested=version[:64],
            )

    # --- refusals ----------------------------------------------------------------------------

    async def _refused(self, send: Send, event: Event | None, status: int) -> None:
        assert isinstance(event, Refused)
        if event.fault is Fault.METHOD_NOT_FOUND:
            status = 404
        await reply(send, status, event.frame)

    async def _failed(self, send: Send, status: int, raw_id: bytes, error: ErrorObject) -> None:
        await reply(send, status, jsonrpc.failure(raw_id, error, MODERN))


class ProtocolRefusal(Exception):
    """A request refused by status and, in the body, by a JSON-RPC error without an id."""

    def __init__(self, status: int, fault: Fault, details: str, **data: object) -> None:
        super().__init__(details)
        self.status = status
        self.error = error_object(fault, details, MODERN, **data)

    def body(self) -> bytes:
        return jsonrpc.failure(b"", self.error, MODERN)


def _answer(connection: Connection, call: Call, outcome: Outcome) -> bytes:
    if isinstance(outcome, bytes):
        return connection.reply(call, outcome)
    return connection.refuse(call, outcome)


def _status(outcome: Outcome) -> tuple[int, RawHeaders]:
    """The HTTP status of what a handler gave, and what goes with it."""
    if isinstance(outcome, bytes):
        return 200, []
    if outcome.code == Fault.RATE_LIMITED.modern_code:
        data = outcome.data if isinstance(outcome.data, dict) else {}
        seconds = data.get("retryAfterSeconds", 1.0)
        return 429, [(b"retry-after", b"%d" % max(1, int(seconds + 0.999)))]
    return _HANDLER_STATUS.get(outcome.code, 200), []


async def _cancel_when_gone(receive: Receive, scope: anyio.CancelScope) -> None:
    """A closed response ends what waits for it: in 2026-07-28 that is the call itself (D17).

    In a legacy session it is only the response; the call goes on elsewhere.
    """
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()

"""Calls over HTTP, from the gate to the response: as JSON or as an event stream.

Both eras share this module. `modern` and `legacy` turn a message into a call and define the effect
of a dropped connection.
"""

from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager

import anyio
from anyio.abc import TaskGroup
from msgspec import Struct

from daemon.rpc.gate import Gate, Method, Outcome, Pending
from daemon.tools.authority import Principal
from daemon.tools.surface import Surface
from daemon.transports.http.edge.access_log import AccessRecord
from daemon.transports.http.edge.messages import Pace, Receive, Send, reply
from daemon.transports.http.mcp.event_stream import Stream, write_stream
from daemon.transports.http.mcp.exchange import Exchange
from daemon.transports.http.mcp.refusals import EndReason, status_of
from daemon.transports.http.mcp.session import HttpSession
from daemon.transports.http.mcp.sessions import HttpSessions
from daemon.transports.http.mcp.visitor import Visitor
from protocol.connection import Call, Connection


class Inbound(Struct, frozen=True, eq=False):
    """One HTTP request to the endpoint, and the functions that answer it."""

    headers: dict[str, list[str]]
    receive: Receive
    send: Send
    principal: Principal
    access: AccessRecord


class McpServices(Struct, frozen=True, kw_only=True, eq=False):
    """The services that MCP endpoints use. `leaving` is set when the daemon leaves."""

    gate: Gate
    methods: Mapping[str, Method]
    sessions: HttpSessions
    tasks: TaskGroup
    leaving: anyio.Event
    pace: Pace
    frame_bytes: int
    output_bytes: int


class Calls:
    """The calls of one endpoint."""

    def __init__(self, services: McpServices, surface: Surface, *, dialects: str) -> None:
        self.sessions = services.sessions
        self.tasks = services.tasks
        self.surface = surface
        self.dialects = dialects
        self.methods = services.methods
        self.frame_bytes = services.frame_bytes
        self._gate = services.gate
        self._leaving = services.leaving
        self._output_bytes = services.output_bytes
        self._pace = services.pace
        self._offered = surface.offered()
        self._modern: dict[int, tuple[Call, Exchange]] = {}

    def new_connection(self) -> Connection:
        """A connection for one message, before or without a handshake."""
        return Connection(self._offered, null_ids=False)

    def exchange(
        self, visitor: Visitor, connection: Connection, inbound: Inbound, stream: Stream | None
    ) -> Exchange:
        """An exchange for one request; without a stream it gets one that cannot be resumed."""
        surface = visitor.surface if isinstance(visitor, HttpSession) else self.surface
        used = stream or Stream(limit=self._output_bytes)
        return Exchange(visitor, connection, surface, used, inbound.headers, self._leaving)

    def begin(self, call: Call, exchange: Exchange) -> Outcome | Pending:
        concurrent = len(exchange.connection.inflight)
        return self._gate.begin(self.methods[call.method], call, exchange, concurrent)

    async def run(self, call: Call, exchange: Exchange) -> Outcome:
        """Run a call that nothing cancels (`initialize`), and wait for it."""
        begun = self.begin(call, exchange)
        if not isinstance(begun, Pending):
            return begun
        with begun:
            return await begun.outcome
        raise AssertionError("the call was cancelled")

    async def finish(
        self,
        call: Call,
        pending: Pending,
        exchange: Exchange,
        save: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Wait for a call, save the state that it changed, and put its answer on the stream."""
        try:
            with pending:
                outcome = await pending.outcome
                if save is not None:
                    await save()
                exchange.stream.status = status_of(outcome)
                frame = frame_of(exchange.connection, call, outcome)
                if frame or call.batch is None:
                    exchange.stream.finish(frame)
        finally:
            exchange.connection.drop(call)

    @contextmanager
    def ending(self, call: Call, exchange: Exchange) -> Generator[None]:
        """A running modern call: `close` answers it with an error if the daemon leaves."""
        self._modern[id(call)] = call, exchange
        try:
            yield
        finally:
            del self._modern[id(call)]

    def close(self) -> None:
        """The daemon is leaving: answer the calls without a session now, with an error."""
        for call, exchange in self._modern.values():
            frame = exchange.connection.refuse(call, EndReason.DAEMON.error(call, exchange.surface))
            if frame:
                exchange.stream.finish(frame)

    async def deliver(
        self, stream: Stream, inbound: Inbound, session: HttpSession | None = None
    ) -> None:
        """Send the answer as JSON if it comes soon and alone, else send an event stream."""
        turn = stream.claim()
        try:
            with anyio.move_on_after(self._pace.commit):
                while not (stream.is_done or stream.is_talkative or stream.is_detached):
                    await stream.wait(self._pace.commit)
            if stream.is_done and not stream.is_talkative and not stream.is_detached:
                frames = stream.take()
                status, extra = stream.status
                await reply(inbound.send, status, frames[0][1], extra)
                return
            inbound.access.is_stream = True
            if session is not None:
                session.keep(stream)
            await self.write(stream, inbound, turn)
        finally:
            stream.release(turn)
            if session is not None:
                session.forget_streams()

    async def write(self, stream: Stream, inbound: Inbound, turn: int) -> None:
        """Send a stream event by event, until it is done, detached or taken over."""
        keep_alive = self._pace.keep_alive
        await write_stream(stream, inbound.send, turn=turn, keep_alive=keep_alive, headers=[])


def frame_of(connection: Connection, call: Call, outcome: Outcome) -> bytes:
    """The answer to a call as a frame; empty until its batch is complete."""
    if isinstance(outcome, bytes):
        return connection.reply(call, outcome)
    return connection.refuse(call, outcome.error)


async def cancel_when_gone(receive: Receive, scope: anyio.CancelScope) -> None:
    """Cancel the scope when the client disconnects.

    In 2026-07-28 the scope holds the call itself. In a legacy session it holds only the response;
    the call continues.
    """
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()

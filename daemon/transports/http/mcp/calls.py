"""A call that came by HTTP, from the dispatcher to the response: as JSON or as an event stream.

What both eras share. How a message becomes a call, and what a dropped connection means to it, is in
`modern` and `legacy`.
"""

from collections.abc import Awaitable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import anyio
from msgspec import Struct

from daemon.rpc.dispatcher import Outcome
from daemon.rpc.failures import Overloaded, error_for
from daemon.tools.authority import Principal
from daemon.tools.surface import Surface
from daemon.transports.http.edge.access_log import Access
from daemon.transports.http.edge.messages import Pace, Receive, Send, reply
from daemon.transports.http.mcp.event_stream import Stream, write_stream
from daemon.transports.http.mcp.exchange import Exchange
from daemon.transports.http.mcp.refusals import End, status_of
from daemon.transports.http.mcp.sessions import HttpSession, HttpSessions
from protocol.connection import Call, Connection

if TYPE_CHECKING:
    from daemon.rpc.hub import Hub


class Inbound(Struct, frozen=True, eq=False):
    """One HTTP request to the endpoint, and the way back."""

    headers: dict[str, list[str]]
    receive: Receive
    send: Send
    principal: Principal
    access: Access


class Calls:
    """What the calls of one endpoint need: the hub, the sessions, the surface they see."""

    def __init__(
        self, hub: "Hub", sessions: HttpSessions, surface: Surface, *, dialects: str, pace: Pace
    ) -> None:
        self.hub = hub
        self.sessions = sessions
        self.surface = surface
        self.dialects = dialects
        self._pace = pace
        self._offered = surface.offered()
        self._modern: dict[int, tuple[Call, Exchange]] = {}

    def fresh(self) -> Connection:
        """A connection for one message, before or without a handshake."""
        return Connection(self._offered, null_ids=False)

    def begin(self, call: Call, exchange: Exchange) -> Outcome | Awaitable[Outcome]:
        hub = self.hub
        inflight = len(exchange.connection.inflight)
        if inflight > hub.settings.in_flight or hub.in_flight >= hub.settings.in_flight_total:
            limit = hub.settings.in_flight
            return error_for(Overloaded(f"at most {limit} calls at once"), call.revision)
        return hub.dispatcher.begin(call, exchange)

    async def finish(self, call: Call, pending: Awaitable[Outcome], exchange: Exchange) -> None:
        """See a call through, to its answer on the exchange's stream."""
        self.hub.begin()
        try:
            outcome = await pending
            exchange.stream.status = status_of(outcome)
            frame = frame_of(exchange.connection, call, outcome)
            if frame or call.batch is None:
                exchange.stream.finish(frame)
        finally:
            exchange.connection.drop(call)
            self.hub.finish()

    @contextmanager
    def ending(self, call: Call, exchange: Exchange) -> Generator[None]:
        """While a modern call runs: it is answered with an error if the daemon leaves."""
        self._modern[id(call)] = call, exchange
        try:
            yield
        finally:
            del self._modern[id(call)]

    def close(self) -> None:
        """The daemon is leaving: what runs is answered now. (Sessions see to their own calls.)"""
        for call, exchange in self._modern.values():
            frame = exchange.connection.refuse(call, End.DAEMON.error(call, exchange.surface))
            if frame:
                exchange.stream.finish(frame)

    async def deliver(
        self, stream: Stream, inbound: Inbound, session: HttpSession | None = None
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
        """A stream, event by event, until it is done, detached or taken over."""
        keep_alive = self._pace.keep_alive
        await write_stream(stream, inbound.send, turn=turn, keep_alive=keep_alive, headers=[])


def frame_of(connection: Connection, call: Call, outcome: Outcome) -> bytes:
    """The answer to a call, as a frame; empty while its batch is not whole."""
    if isinstance(outcome, bytes):
        return connection.reply(call, outcome)
    return connection.refuse(call, outcome)


async def cancel_when_gone(receive: Receive, scope: anyio.CancelScope) -> None:
    """A closed response ends what waits for it: in 2026-07-28 that is the call itself (D17).

    In a legacy session it is only the response; the call goes on elsewhere.
    """
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()

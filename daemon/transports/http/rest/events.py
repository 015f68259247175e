"""`GET /api/v1/events`: changes of banks, progress of syncs and health, as server-sent events.

    event: change   {"bank": …, "name": "changed", "ids": null, "at": …}
    event: sync     {"source": …, "phase": …, "done": …, "total": …, "running": …, "at": …}
    event: health   {"status": …, "at": …}

Callers get the changes of banks that they may read; the progress of syncs is for the owner. The
stream begins with the health, and a comment keeps it alive. Nothing is repeated after a lost
connection: a page loads its data again.
"""

from typing import Final

import anyio

from daemon.api.events import Event, EventHub, EventSubscriber
from daemon.api.operation import PREFIX
from daemon.rpc.reports import DaemonMonitor
from daemon.tools.authority import Forbidden, Principal, authorise
from daemon.transports.http.edge.access_log import AccessRecord
from daemon.transports.http.edge.messages import Pace, Receive, Refusal, Scope, Send
from daemon.transports.http.mcp.calls import cancel_when_gone
from daemon.transports.http.mcp.event_stream import STREAM_HEADERS
from daemon.transports.http.rest.api import query_of
from daemon.transports.http.router import Route

PATH: Final = f"{PREFIX}/events"
#: The pause after events, in which later ones of the same subject replace each other.
PAUSE_SECONDS: Final = 0.1
MOST_READERS: Final = 100


class EventRoutes:
    """The endpoint."""

    def __init__(
        self, hub: EventHub, monitor: DaemonMonitor, *, leaving: anyio.Event, pace: Pace
    ) -> None:
        self._hub = hub
        self._monitor = monitor
        self._leaving = leaving
        self._pace = pace

    def routes(self) -> dict[str, Route]:
        return {PATH: Route(PATH, self._stream, ("GET",), has_head=False)}

    async def _stream(
        self, scope: Scope, receive: Receive, send: Send, principal: Principal, access: AccessRecord
    ) -> None:
        subscriber = EventSubscriber(principal, _bank(scope, principal))
        if len(self._hub) >= MOST_READERS:
            raise Refusal(429, f"at most {MOST_READERS} readers of events at once")
        access.is_stream = True
        self._hub.join(subscriber)
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(cancel_when_gone, receive, group.cancel_scope)
                group.start_soon(self._end_when_leaving, group.cancel_scope)
                await self._write(subscriber, send)
        finally:
            self._hub.leave(subscriber)
        if self._leaving.is_set():
            await send({"type": "http.response.body", "body": b""})

    async def _end_when_leaving(self, scope: anyio.CancelScope) -> None:
        await self._leaving.wait()
        scope.cancel()

    async def _write(self, subscriber: EventSubscriber, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": STREAM_HEADERS})
        status = await self._status()
        await _send(send, _health(status).frame())
        while True:
            events: list[Event] = []
            with anyio.move_on_after(self._pace.keep_alive):
                events = await subscriber.next()
            if events:
                await _send(send, b"".join(event.frame() for event in events))
                await anyio.sleep(PAUSE_SECONDS)
                continue
            known, status = status, await self._status()
            await _send(send, _health(status).frame() if status != known else b": alive\n\n")

    async def _status(self) -> str:
        return (await self._monitor.health(for_owner=False)).status


def _health(status: str) -> Event:
    return Event(kind="health", subject="", data={"status": status})


async def _send(send: Send, data: bytes) -> None:
    await send({"type": "http.response.body", "body": data, "more_body": True})


def _bank(scope: Scope, principal: Principal) -> str | None:
    """The bank that the query names; the caller must be allowed to read it."""
    given = dict(query_of(scope))
    bank = given.pop("bank", None)
    if given:
        raise Refusal(400, f"{next(iter(given))[:64]}: is not a parameter of this path")
    if bank is not None:
        try:
            authorise(principal, bank, writes=False)
        except Forbidden as refused:
            raise Refusal(403, str(refused)) from None
    return bank

"""GET and DELETE of a legacy session: its standalone stream, and its end."""

from typing import Final

import anyio

from daemon.transports.http.edge.messages import Refusal, accepts, only, reply
from daemon.transports.http.mcp.calls import Calls, Inbound, cancel_when_gone
from daemon.transports.http.mcp.legacy import check_version, find_session
from daemon.transports.http.mcp.session import is_of_a_call
from protocol.headers import VERSION
from protocol.revisions import MODERN

LAST_EVENT: Final = "last-event-id"
ALLOW_MODERN: Final = (b"allow", b"POST, OPTIONS")


async def listen(calls: Calls, inbound: Inbound) -> None:
    """Send the session's standalone stream, or the rest of another one (`Last-Event-ID`)."""
    _refuse_modern(inbound, "2026-07-28 has no GET; see subscriptions/listen")
    if not accepts(inbound.headers, "text/event-stream"):
        raise Refusal(406, "Accept must list text/event-stream")
    check_version(inbound)
    session = await find_session(calls, inbound)
    last_event = only(inbound.headers, LAST_EVENT)
    found = session.find_stream(last_event) if last_event else None
    if found is not None:
        stream, number = found
        stream.rewind(number)
    elif last_event and is_of_a_call(last_event):
        # The stream is from an earlier daemon or was deleted. Nothing more will come on it, so end
        # it at once; otherwise the client would wait for ever.
        stream = session.stream()
        stream.priming = False
        stream.finish()
    else:
        # An unknown id resumes nothing; the client gets the standalone stream.
        fresh = session.listen()
        if fresh is None:
            raise Refusal(409, "the stream of this session is open already")
        stream = fresh
    inbound.access.is_stream = True
    turn = stream.claim()
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(cancel_when_gone, inbound.receive, group.cancel_scope)
            await calls.write(stream, inbound, turn)
            group.cancel_scope.cancel()
    finally:
        stream.release(turn)
        session.forget_streams()


async def end(calls: Calls, inbound: Inbound) -> None:
    """End the session: its calls are cancelled and its handle becomes invalid."""
    _refuse_modern(inbound, "2026-07-28 has no sessions to end")
    check_version(inbound)
    await calls.sessions.end(await find_session(calls, inbound))
    await reply(inbound.send, 204)


def _refuse_modern(inbound: Inbound, message: str) -> None:
    if MODERN.date in inbound.headers.get(VERSION, ()):
        raise Refusal(405, message, headers=[ALLOW_MODERN])

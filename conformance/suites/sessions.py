"""S03b, S05 to S15: streams of a session, resumption, and session ownership."""

from __future__ import annotations

import json
import time
from typing import Any

from conformance.check import NotApplicable, case, need
from conformance.client.frames import show
from conformance.client.sse import Event, EventStream
from conformance.context import Context
from conformance.suites.http_requests import (
    Session,
    answer_in,
    call,
    endpoint,
    get_stream,
    identified,
    is_response,
    listen,
    open_session,
    patience,
    post,
    post_stream,
    status,
    streamed,
    verb,
)

PING = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
ABILITIES: dict[str, Any] = {"sampling": {}, "elicitation": {}}


# -- session lifetime -----------------------------------------------------------------------------


@case("S03b")
def _streams_end(ctx: Context) -> None:
    session = open_session(ctx, ready=True)
    with listen(ctx, session) as stream:
        answer = verb(ctx, "DELETE", session)
        if answer.status == 405:
            raise NotApplicable("the server does not support DELETE")
        status(answer, 200, 202, 204)
        stream.gather(patience(ctx))
        need(stream.ended, "the stream of an ended session stays open")


@case("S05")
def _expires(ctx: Context) -> None:
    idle = ctx.settings.idle_seconds
    if idle is None:
        raise NotApplicable("the expiry of idle sessions is unknown (--idle-seconds)")
    if idle + 2 > ctx.settings.case_seconds:
        raise NotApplicable(f"an idle time of {idle:g} s is longer than a case may take")
    session = open_session(ctx, ready=True)
    status(post(ctx, PING, None, session), 200)
    time.sleep(idle + 1)
    status(post(ctx, PING, None, session), 404)


@case("S15")
def _owned(ctx: Context) -> None:
    other = endpoint(ctx).other_token
    if other is None:
        raise NotApplicable("no second credential was given (--other-token)")
    session = open_session(ctx, ready=True)
    answer = post(ctx, PING, {"Authorization": f"Bearer {other}"}, session)
    status(answer, 401, 403, 404)
    status(post(ctx, PING, None, session), 200)


# -- the stream that a GET opens ------------------------------------------------------------------


@case("S06a")
def _stream_or_405(ctx: Context) -> None:
    session = open_session(ctx, ready=True)
    with get_stream(ctx, session) as stream:
        need(stream.status in (200, 405), f"GET was answered with {stream.status}")
        kind = stream.headers.get("content-type")
        need(stream.status == 405 or stream.is_stream, f"GET was answered with a body of {kind!r}")


@case("S06b")
def _accept(ctx: Context) -> None:
    listen(ctx, open_session(ctx, ready=True)).close()
    session = open_session(ctx, ready=True)
    with get_stream(ctx, session, accept="application/json") as stream:
        need(
            400 <= stream.status < 500,
            f"status {stream.status} for a client that accepts no stream",
        )


@case("S07")
def _no_responses(ctx: Context) -> None:
    session = open_session(ctx, ready=True)
    with listen(ctx, session) as stream:
        for id in range(3, 6):
            status(post(ctx, {**PING, "id": id}, None, session), 200)
        if ctx.has_role("progress"):
            with post_stream(ctx, call(ctx, "progress", id=6, token="seven"), session) as answer:
                answer.gather(patience(ctx))
        stream.gather(ctx.settings.quiet_seconds)
        strays = [message for message in stream.messages if is_response(message)]
    need(not strays, f"a response on the stream of a GET: {_shown(strays)}")


@case("S08")
def _one_stream(ctx: Context) -> None:
    role = ctx.role("progress")
    session = open_session(ctx, ready=True)
    with listen(ctx, session) as one, get_stream(ctx, session) as two:
        with post_stream(ctx, call(ctx, "progress", id=3, token="eight"), session) as answer:
            answer.gather(patience(ctx))
        streams = [one, answer]
        if two.is_stream and two.status == 200:
            streams.append(two)  # a server may reject a second stream
        for stream in (one, two):
            stream.gather(ctx.settings.quiet_seconds)
    said = [{_key(message) for message in _notes(stream)} for stream in streams]
    need(any(said), f"{role.tool} sent nothing on any stream")
    twice = [note for n, notes in enumerate(said) for other in said[:n] for note in notes & other]
    need(not twice, f"{len(twice)} messages were sent on more than one stream: {twice[:1]}")


def _notes(stream: EventStream) -> list[Any]:
    return [m for m in stream.messages if isinstance(m, dict) and "method" in m]


def _key(message: Any) -> str:
    return json.dumps(message, sort_keys=True)


def _shown(messages: list[Any]) -> str:
    return show(json.dumps(messages[0]).encode(), 120) if messages else ""


# -- server requests during a call ----------------------------------------------------------------


def _question(ctx: Context, stream: EventStream) -> dict[str, Any]:
    """The request that the server sends on the stream of the call."""
    while (message := stream.next_message(patience(ctx))) is not None:
        if isinstance(message, dict) and "method" in message and "id" in message:
            return message
        if is_response(message):
            break
    raise NotApplicable("the tool sent no request on the stream of its call")


def _asking(ctx: Context) -> dict[str, Any]:
    role = "sampling" if ctx.has_role("sampling") else "elicitation"
    return call(ctx, role, id=7)


def _reply(question: dict[str, Any]) -> dict[str, Any]:
    words = {"role": "assistant", "content": {"type": "text", "text": "something"}, "model": "none"}
    elicited = {"action": "decline"}
    result = words if question["method"].startswith("sampling") else elicited
    return {"jsonrpc": "2.0", "id": question["id"], "result": result}


@case("S09a")
def _asked_there(ctx: Context) -> None:
    message = _asking(ctx)
    session = open_session(ctx, ABILITIES, ready=True)
    with get_stream(ctx, session) as elsewhere, post_stream(ctx, message, session) as stream:
        said = stream.next_message(ctx.timeout)
        elsewhere.gather(ctx.settings.quiet_seconds)
        astray = [m for m in _notes(elsewhere) if "id" in m]
        need(not astray, f"a request on the stream of a GET: {_shown(astray)}")
        if said is None or is_response(said):
            raise NotApplicable("the tool sent no request")
        question = said if "id" in said else _question(ctx, stream)
        post(ctx, _reply(question), None, session)
        answer = answer_in(stream, 7, patience(ctx))
    need(answer is not None, "the server's request was answered, but the call was not")


@case("S09b")
def _answered(ctx: Context) -> None:
    message = _asking(ctx)
    session = open_session(ctx, ABILITIES, ready=True)
    with post_stream(ctx, message, session) as stream:
        answer = post(ctx, _reply(_question(ctx, stream)), None, session)
        status(answer, 202)
        need(not answer.body, f"a body: {show(answer.body, 100)}")


# -- resumption -----------------------------------------------------------------------------------


def _resumable(ctx: Context, session: Session, id: int) -> list[Event]:
    """The events of a call, with ids for resumption."""
    stream = streamed(ctx, "progress", session, id=id, token=f"stream {id}")
    events = identified(stream.events)
    if not events:
        raise NotApplicable("events have no ids, so streams cannot be resumed")
    return events


@case("S11a")
def _unique(ctx: Context) -> None:
    session = open_session(ctx, ready=True)
    ids = [event.id for number in (3, 4, 5) for event in _resumable(ctx, session, number)]
    twice = sorted({str(id) for id in ids if ids.count(id) > 1})
    need(not twice, f"duplicate event ids in a session: {', '.join(twice[:4])}")


@case("S11b")
def _replayed(ctx: Context) -> None:
    session = open_session(ctx, ready=True)
    first = _resumable(ctx, session, 3)
    _resumable(ctx, session, 4)
    need(len(first) > 1, "the stream has only one event")
    with get_stream(ctx, session, first[0].id) as stream:
        if stream.status != 200:
            raise NotApplicable(f"the server does not replay: {stream.status}")
        stream.gather(ctx.settings.quiet_seconds * 2)
        again = stream.messages
    if not again:
        raise NotApplicable("the server no longer has the events of the finished call")
    wanted = [event.message for event in first[1:] if event.data]
    for message in again:
        need(
            message in wanted,
            f"a replayed message of another stream or an earlier event: {_shown([message])}",
        )
    need(
        again == wanted,
        f"{len(again)} of {len(wanted)} messages were replayed, or in another order",
    )


def _nothing_foreign(ctx: Context, session: Session, last: str) -> None:
    with get_stream(ctx, session, last) as stream:
        if stream.status != 200:
            return  # rejected with any error status
        need(stream.is_stream, "200, and no event stream")
        stream.gather(ctx.settings.quiet_seconds)
        strays = [m for m in stream.messages if is_response(m) or "progress" in m.get("method", "")]
    need(not strays, f"messages of another stream: {_shown(strays)}")


@case("S12a")
def _made_up(ctx: Context) -> None:
    session = open_session(ctx, ready=True)
    listen(ctx, session).close()
    if ctx.has_role("progress"):
        with post_stream(ctx, call(ctx, "progress", id=3, token="made up"), session) as stream:
            stream.gather(patience(ctx))
    _nothing_foreign(ctx, session, "conform-never-given.1")


@case("S12b")
def _foreign(ctx: Context) -> None:
    theirs, ours = open_session(ctx, ready=True), open_session(ctx, ready=True)
    events = _resumable(ctx, theirs, 3)
    _nothing_foreign(ctx, ours, str(events[0].id))


@case("S13a")
def _no_empty_events(ctx: Context) -> None:
    stream = streamed(ctx, "progress", open_session(ctx, ready=True))
    empty = [event for event in stream.events if event.data == ""]
    need(not empty, "an event with empty data, which clients of this revision cannot read")


@case("S13b")
def _primed(ctx: Context) -> None:
    stream = streamed(ctx, "progress", open_session(ctx, ready=True))
    if not identified(stream.events):
        raise NotApplicable("events have no ids, so there is nothing to prime")
    first = stream.events[0]
    need(first.id and not first.data, "the stream does not begin with an id and empty data")


@case("S13c")
def _retry(ctx: Context) -> None:
    message = call(ctx, "reconnect", id=9)
    session = open_session(ctx, ready=True)
    with post_stream(ctx, message, session) as stream:
        stream.gather(patience(ctx))
    if any(map(is_response, stream.messages)) or not stream.is_stream or not stream.ended:
        raise NotApplicable("the tool did not close its stream before its response")
    times = [event.retry for event in stream.events if event.retry is not None]
    need(times, "the stream was closed early without a retry time")
    need(times[-1].isdigit(), f"retry is {times[-1]!r}, not milliseconds")

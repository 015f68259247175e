"""H27 to H33: event streams that answer calls."""

from __future__ import annotations

import json
import time
from typing import Any

from conformance import revisions
from conformance.check import NotApplicable, case, need, scan
from conformance.client.frames import show
from conformance.client.observer import ReceivedFrame
from conformance.client.peer import Peer
from conformance.client.results import text_of
from conformance.client.sse import EventStream
from conformance.context import Context
from conformance.suites.http_requests import (
    Session,
    is_response,
    open_session,
    patience,
    post_stream,
    request,
    streamed,
)


def _session(ctx: Context) -> Session | None:
    return None if ctx.modern else open_session(ctx, ready=True)


# -- contents -------------------------------------------------------------------------------------


@case("H27a")
def _of_the_request(ctx: Context) -> None:
    stream = streamed(ctx, "progress", token="ours")
    messages = stream.messages
    responses = [message for message in messages if is_response(message)]
    need(len(responses) == 1, f"{len(responses)} responses on the stream of one request")
    need(responses[0].get("id") == 1, f"the response has the id {responses[0].get('id')!r}")
    need(is_response(messages[-1]), "a message follows the response")
    for message in messages[:-1]:
        method = message.get("method")
        need(method, f"neither a notification nor the response: {show(_bytes(message), 120)}")
        if method == "notifications/progress":
            token = message["params"].get("progressToken")
            need(token == "ours", f"progress of another call: {token!r}")
        need(not str(method).endswith("list_changed"), f"{method} belongs to no call")


@case("H27b", "S10")
def _ends(ctx: Context) -> None:
    stream = streamed(ctx, "progress", _session(ctx))
    need(any(map(is_response, stream.messages)), "no response on the stream")
    need(stream.ended, "the stream stayed open after the response")


@scan("H28")
def _no_requests(view: ReceivedFrame) -> str | bool | None:
    if view.revision != revisions.E or view.peer.initialized:
        return None
    return "a request from the server" if view.frame.kind == "request" else True


def _bytes(message: Any) -> bytes:
    return json.dumps(message).encode()


# -- disconnects ----------------------------------------------------------------------------------


def _counts(ctx: Context, peer: Peer) -> dict[str, int]:
    role = ctx.role("tally")
    counts = json.loads(text_of(peer.tool(role.tool, role.arguments())))
    return {name: int(counts[name]) for name in ("started", "finished", "cancelled")}


def _left(ctx: Context, seconds: float) -> tuple[Peer, dict[str, int], dict[str, int]]:
    """Disconnect during a slow call; return the tally before the call and its start time."""
    ctx.role("tally")
    params = ctx.slow(seconds, 10)
    peer = ctx.fresh()
    session = _session(ctx)
    before = _counts(ctx, peer)
    stream = post_stream(ctx, request(ctx, "tools/call", params, token="left"), session)
    until = time.monotonic() + ctx.timeout
    while (begun := _counts(ctx, peer))["started"] <= before["started"]:
        need(time.monotonic() < until, "the call was not started")
        time.sleep(0.01)
    stream.next(seconds / 4)  # progress has opened the stream by now, if it does at all
    stream.close()
    return peer, before, begun


def _grows(ctx: Context, peer: Peer, name: str, before: dict[str, int], seconds: float) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if _counts(ctx, peer)[name] > before[name]:
            return True
        time.sleep(0.02)
    return False


@case("H29")
def _cancels(ctx: Context) -> None:
    peer, before, begun = _left(ctx, 2.0)
    stopped = _grows(ctx, peer, "cancelled", before, 1.5)
    need(stopped, f"the work was not stopped: {begun} then {_counts(ctx, peer)}")


@case("H33")
def _goes_on(ctx: Context) -> None:
    peer, before, begun = _left(ctx, 0.8)
    done = _grows(ctx, peer, "finished", before, 0.8 + patience(ctx))
    need(done, f"the work was stopped: {begun} then {_counts(ctx, peer)}")


# -- event format ---------------------------------------------------------------------------------


def _quiet_stream(ctx: Context) -> EventStream:
    """A stream that stays open without messages."""
    for capability, flag in (
        ("tools", "toolsListChanged"),
        ("prompts", "promptsListChanged"),
        ("resources", "resourcesListChanged"),
    ):
        declared = ctx.facts.capabilities.get(capability)
        if isinstance(declared, dict) and declared.get("listChanged") is True:
            params = {"notifications": {flag: True}}
            stream = post_stream(ctx, request(ctx, "subscriptions/listen", params, id="quiet"))
            if not stream.is_stream:
                stream.close()
                raise NotApplicable(f"a subscription was answered with {stream.status}, no stream")
            return stream
    raise NotApplicable("the server has nothing to subscribe to")


@case("H30a")
def _unbuffered(ctx: Context) -> None:
    with _quiet_stream(ctx) as stream:
        said = stream.headers.get("x-accel-buffering", "")
    need(said.lower() == "no", f"X-Accel-Buffering is {said!r}")


@case("H30b")
def _uncached(ctx: Context) -> None:
    with _quiet_stream(ctx) as stream:
        said = stream.headers.get("cache-control", "")
    need("no-cache" in said or "no-store" in said, f"Cache-Control is {said!r}")


@case("H31")
def _keep_alive(ctx: Context) -> None:
    with _quiet_stream(ctx) as stream:
        stream.gather(0.1)  # events at the start do not count as keep-alives
        seconds = ctx.settings.keep_alive_seconds
        need(stream.commented(seconds), f"nothing was sent for {seconds:g} seconds")


@case("H32")
def _well_formed(ctx: Context) -> None:
    stream = streamed(ctx, "progress", _session(ctx))
    need(not stream.parser.wrong, "; ".join(stream.parser.wrong[:3]))
    need(stream.messages, "the stream carries no message")

"""B: JSON-RPC batches: required in 2025-03-26, rejected in the other revisions."""

from __future__ import annotations

from typing import Any

from conformance import revisions
from conformance.check import Failed, case, cases_of, fail, need
from conformance.client.fairness import is_answer
from conformance.client.frames import Frame, dump, key, show
from conformance.client.peer import Peer
from conformance.context import Context

NOTICE = {"jsonrpc": "2.0", "method": "notifications/conform"}


def send_batch(peer: Peer, elements: list[Any]) -> Frame | None:
    """Send a batch and return the array that answers it, or None. Also checks the connection."""
    raw = dump(elements)
    peer.expect(elements, raw)
    frames = [f for f in peer.probe(raw) if is_answer(f)]
    if peer.over_http and len(frames) > 1:  # a stream may carry the responses one by one
        values = [f.value for f in frames]
        return Frame(dump(values), values, None)
    need(len(frames) <= 1, f"a batch was answered with {len(frames)} lines")
    return frames[0] if frames else None


def answered(peer: Peer, elements: list[Any], count: int) -> list[Any]:
    frame = send_batch(peer, elements)
    if frame is None:
        fail("no answer to a batch")
    if peer.over_http and count == 1 and frame.kind in ("result", "error"):
        return [frame.value]
    need(
        frame.kind == "batch", f"a batch was answered with {show(frame.raw)} and not with an array"
    )
    entries: list[Any] = frame.value
    need(len(entries) == count, f"{len(entries)} answers in the array, expected {count}")
    return entries


def entry(entries: list[Any], id: Any) -> dict[str, Any]:
    for element in entries:
        if isinstance(element, dict) and key(element.get("id")) == key(id):
            return element
    raise Failed(f"no answer to id {id!r} in the array")


@case("B01")
def _two_requests(ctx: Context) -> None:
    peer = ctx.peer
    first, second = peer.build("ping"), peer.build("tools/list")
    entries = answered(peer, [first, second], 2)
    for message in (first, second):
        entry(entries, message["id"])


@case("B02")
def _mixed(ctx: Context) -> None:
    message = ctx.peer.build("ping")
    entry(answered(ctx.peer, [NOTICE, message, NOTICE], 1), message["id"])


@case("B03")
def _only_notifications(ctx: Context) -> None:
    frame = send_batch(ctx.peer, [NOTICE, NOTICE])
    if frame is not None and frame.kind == "error" and ctx.endpoint.transport == "http":
        return  # a server that cannot accept a notification answers with an error status
    need(
        frame is None, f"a batch of notifications was answered: {show(frame.raw) if frame else ''}"
    )


@case("B04")
def _empty(ctx: Context) -> None:
    ctx.peer.expect_error(b"[]", (-32600,))


@case("B05")
def _scalars(ctx: Context) -> None:
    for element in answered(ctx.peer, [1, 2], 2):
        code = element.get("error", {}).get("code") if isinstance(element, dict) else None
        need(code == -32600, f"an entry for a scalar is {element!r}, not error -32600")


@case("B06")
def _one_bad(ctx: Context) -> None:
    good, unknown = ctx.peer.build("ping"), ctx.peer.build("no/such/method")
    entries = answered(ctx.peer, [{"foo": "bar"}, good, unknown], 3)
    need("result" in entry(entries, good["id"]), "an invalid element affected a valid one")
    error = entry(entries, unknown["id"]).get("error", {})
    need(error.get("code") == -32601, f"the unknown method in a batch gave {error!r}")


def _initialize(peer: Peer) -> dict[str, Any]:
    return peer.build(
        "initialize",
        {"protocolVersion": revisions.B, "capabilities": {}, "clientInfo": revisions.CLIENT},
    )


@case("B07a")
def _initialize_inside(ctx: Context) -> None:
    message = _initialize(ctx.peer)
    frame = send_batch(ctx.peer, [message])
    if frame is None:
        fail("no answer to a batch with initialize in it")
    told = frame.value[0] if frame.kind == "batch" and frame.value else frame.value
    need(isinstance(told, dict) and "error" in told, f"initialize in a batch: {show(frame.raw)}")


@case("B07b")
def _initialize_batch_first(ctx: Context) -> None:
    peer = ctx.raw()
    raw = dump([_initialize(peer)])
    frames = [f for f in peer.probe(raw) if f.kind not in ("notification", "request")]
    need(frames, "no answer to a batch with initialize as the first frame")
    for frame in frames:
        for told in frame.value if frame.kind == "batch" else [frame.value]:
            need("error" in told, f"initialize in a batch succeeded: {show(frame.raw)}")


@case("B09")
def _duplicate_ids(ctx: Context) -> None:
    message = ctx.peer.build("ping")
    need(
        send_batch(ctx.peer, [message, message]) is not None,
        "no answer to a batch with duplicate ids",
    )


@case("B10")
def _big(ctx: Context) -> None:
    messages = [ctx.peer.build("ping") for _ in range(200)]
    entries = answered(ctx.peer, messages, 200)
    for message in messages:
        entry(entries, message["id"])


def refused_array(ctx: Context, _: Any) -> None:
    messages = [ctx.peer.build(ctx.peer.basic) for _ in range(2)]
    frames = [f for f in ctx.peer.probe(dump(messages)) if f.kind != "notification"]
    need(frames, "no answer to an array")
    need(len(frames) == 1, f"an array was answered with {len(frames)} lines")
    need(frames[0].kind == "error", f"an array was processed: {show(frames[0].raw)}")
    need(frames[0].code == -32600, f"an array gave {frames[0].code!r}, which is not -32600")


cases_of((("B11", None), ("B12", None)), refused_array)


@case("B11b")
def _array_in_the_oldest(ctx: Context) -> None:
    messages = [ctx.peer.build("ping") for _ in range(2)]
    frames = [f for f in ctx.peer.probe(dump(messages)) if f.kind != "notification"]
    need(frames, "no answer to an array")
    for frame in frames:
        ok = frame.kind in ("batch", "result") or frame.code == -32600
        need(ok, f"an array was neither processed nor refused with -32600: {show(frame.raw)}")


@case("B13")
def _before_initialize(ctx: Context) -> None:
    peer = ctx.raw()
    frames = [f for f in peer.probe(dump([peer.build("tools/list")])) if f.kind != "notification"]
    need(frames, "no answer to an array before initialize")
    for frame in frames:
        for told in frame.value if frame.kind == "batch" else [frame.value]:
            need("error" in told, f"an array before initialize was served: {show(frame.raw)}")


@case("B14")
def _cancelled_element(ctx: Context) -> None:
    peer = ctx.fresh()
    quick = peer.build("ping")
    slow = peer.build("tools/call", ctx.slow(8))
    peer.expect([slow, quick], b"")
    peer.send_raw(dump([slow, quick]) + b"\n")
    peer.marker()
    peer.cancel(slow["id"])
    frame = peer.wait(lambda f: f.kind == "batch", 3)
    if frame is None:
        fail("no answer to the rest of a batch after one element was cancelled")
    need(
        len(frame.value) == 1,
        f"{len(frame.value)} entries; only the element that was not cancelled should have one",
    )
    entry(frame.value, quick["id"])


@case("B16")
def _nested(ctx: Context) -> None:
    message = ctx.peer.build("ping")
    entries = answered(ctx.peer, [[message], message], 2)
    need("result" in entry(entries, message["id"]), "the element beside a nested array was lost")

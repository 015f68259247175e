"""Protocol state of one connection, without I/O: chunks to events, results to bytes.

`receive` is a generator. Handle each event before taking the next, because an event can change the
state that the next one depends on: a handshake completes, or a request id becomes free. A malformed
line is an event too: `Refused` contains the finished error response. No input from a peer makes
this module raise.

A batch (MCP 2025-03-26 only) yields its calls one by one. `reply` returns no bytes until the last
of them is answered, and then the whole array.
"""

from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec import Raw, Struct, field

from protocol import jsonrpc
from protocol.errors import ErrorObject, Fault, ProtocolError, error_object
from protocol.framing import DEFAULT_FRAME_LIMIT, LineFramer, Oversized
from protocol.inflight import InFlight
from protocol.jsonrpc import Invalid, Message, Notification, Request, Response
from protocol.lifecycle import Lifecycle, Meta, Offered
from protocol.revisions import LATEST_LEGACY, Revision
from protocol.salvage import salvage_id

MAX_BATCH: Final = 1024


class Batch:
    """The answers of one batch, collected until the last is there."""

    __slots__ = ("answers", "pending")

    def __init__(self) -> None:
        self.pending = 1  # one for the array itself, until its last element has been decoded
        self.answers: list[bytes] = []


class Call(Struct, eq=False, gc=False):
    """An admitted request: raw params, and the revision that its answer is shaped for.

    `revision` is None only for methods that need no handshake and are called before one. `tool`
    is set by `tools/call` to the name of the tool, for logs and metrics.
    """

    id: bytes
    key: bytes
    method: str
    params: bytes
    revision: Revision | None
    meta: Meta
    batch: Batch | None = None
    tool: str = ""


class Cancelled(Struct, frozen=True):
    """The peer cancelled a call that is in flight."""

    call: Call


class Refused(Struct, frozen=True):
    """A message that is not dispatched; `frame` is the finished response to send.

    `fault` is the reason. It is None when `frame` is the completed array of a batch.
    """

    frame: bytes
    fault: Fault | None = None


Event = Call | Cancelled | Notification | Response | Refused


class _CancelledParams(Struct):
    request_id: Raw = field(name="requestId", default=Raw(b""))


_cancelled_params: Final = msgspec.json.Decoder(_CancelledParams)


class Connection:
    """The protocol state of one peer, on a byte stream or over whole messages (HTTP).

    `null_ids` controls errors whose request id cannot be read. On a byte stream the revision
    decides whether the id is null or absent. Over HTTP (`null_ids=False`) it is always absent.
    """

    def __init__(
        self,
        offered: Offered,
        *,
        frame_limit: int = DEFAULT_FRAME_LIMIT,
        null_ids: bool = True,
    ) -> None:
        self.lifecycle = Lifecycle(offered)
        self.inflight: InFlight[Call] = InFlight()
        self._framer = LineFramer(frame_limit)
        self._null_ids = null_ids

    # --- bytes to events ---------------------------------------------------------------------

    def receive(self, chunk: bytes) -> Iterator[Event]:
        """Yield the events of a chunk in order; handle each before taking the next."""
        for frame in self._framer.feed(chunk):
            yield from self.frame(frame)

    def end(self) -> Iterator[Event]:
        """Yield the events of a last line that has no line end, after the input has ended."""
        for frame in self._framer.end():
            yield from self.frame(frame)

    def frame(self, frame: bytes | Oversized) -> Iterator[Event]:
        """Yield the events of one whole frame."""
        if isinstance(frame, Oversized):
            yield self._oversized(frame)
        elif jsonrpc.is_array(frame):
            yield from self._array(frame)
        else:
            event = self.message(jsonrpc.decode(frame))
            if event is not None:
                yield event

    def _oversized(self, line: Oversized) -> Refused:
        details = f"frame is {line.size} bytes, limit is {line.limit}"
        raw_id = salvage_id(line)
        if raw_id and jsonrpc.identity(raw_id) in self.inflight:
            raw_id = b""  # that id belongs to a call in flight; see `_request`
        error = error_object(Fault.INVALID_REQUEST, details)
        return self._refused(raw_id, error, Fault.INVALID_REQUEST)

    def _array(self, frame: bytes) -> Iterator[Event]:
        revision = self.lifecycle.revision
        messages = jsonrpc.decode_batch(frame)
        if isinstance(messages, Invalid):
            yield self._refused(messages.id, messages.error, messages.fault)
            return
        if revision is None or not revision.batching:
            yield self._invalid("batches exist in revision 2025-03-26 only")
            return
        if len(messages) > MAX_BATCH:
            yield self._invalid(f"a batch holds at most {MAX_BATCH} messages")
            return
        batch = Batch()
        for message in messages:
            event = self.message(message, batch)
            if event is not None:
                yield event
        frame_out = self._settle(batch, b"")
        if frame_out:
            yield Refused(frame_out)

    def message(self, message: Message, batch: Batch | None = None) -> Event | None:
        """Turn a decoded message into an event; None when there is nothing to do."""
        match message:
            case Request():
                return self._request(message, batch)
            case Notification():
                return self._notification(message)
            case Response():
                return message
            case Invalid():
                return self._refused_in(batch, message.id, message.error, message.fault)

    def _request(self, request: Request, batch: Batch | None) -> Event | None:
        if request.key in self.inflight:
            # An error under that id would be taken for the answer to the first call.
            error = error_object(
                Fault.INVALID_REQUEST,
                "id is already in flight",
                duplicateId=Raw(request.id),
            )
            return self._refused_in(batch, b"", error, Fault.INVALID_REQUEST)
        if batch is not None and request.method == "initialize":
            error = error_object(Fault.INVALID_REQUEST, "initialize cannot be part of a batch")
            return self._refused_in(batch, request.id, error, Fault.INVALID_REQUEST)
        try:
            admitted = self.lifecycle.admit(request)
        except ProtocolError as refusal:
            revision = self.lifecycle.revision
            error = error_object(refusal.fault, refusal.details, revision, **refusal.data)
            return self._refused_in(batch, request.id, error, refusal.fault)
        if batch is not None and admitted.revision is not None and admitted.revision.modern:
            error = error_object(Fault.INVALID_REQUEST, "2026-07-28 has no batches")
            return self._refused_in(batch, request.id, error, Fault.INVALID_REQUEST)
        call = Call(
            request.id,
            request.key,
            request.method,
            request.params,
            admitted.revision,
            admitted.meta,
            batch,
        )
        if batch is not None:
            batch.pending += 1
        self.inflight.begin(call.key, call)
        return call

    def _notification(self, notice: Notification) -> Event | None:
        if notice.method == "notifications/cancelled":
            return self._cancelled(notice.params)
        if notice.method == "notifications/initialized":
            self.lifecycle.initialized = self.lifecycle.handshake is not None
        return notice

    def _cancelled(self, params: bytes) -> Cancelled | None:
        """Find the cancelled call; an unknown, finished or malformed id is ignored."""
        try:
            raw_id = bytes(_cancelled_params.decode(params).request_id)
            key = jsonrpc.identity(raw_id) if raw_id else b""
        except msgspec.MsgspecError:
            return None
        call = self.inflight.get(key)
        return Cancelled(call) if call is not None and call.method != "initialize" else None

    # --- answers to bytes --------------------------------------------------------------------

    def reply(self, call: Call, result: bytes) -> bytes:
        """Return the bytes to send; empty if the call was cancelled or its batch is incomplete.

        `result` is encoded JSON.
        """
        if not self.inflight.finish(call.key, call):
            return b""
        frame = jsonrpc.success(call.id, result)
        return frame if call.batch is None else self._settle(call.batch, frame)

    def refuse(self, call: Call, error: ErrorObject) -> bytes:
        """Like `reply`, for an error."""
        if not self.inflight.finish(call.key, call):
            return b""
        frame = jsonrpc.failure(call.id, error, call.revision)
        return frame if call.batch is None else self._settle(call.batch, frame)

    def drop(self, call: Call) -> bytes:
        """Finish a cancelled call without an answer; returns the batch if this completes it."""
        if not self.inflight.finish(call.key, call) or call.batch is None:
            return b""
        return self._settle(call.batch, b"")

    def _invalid(self, details: str) -> Refused:
        error = error_object(Fault.INVALID_REQUEST, details)
        return self._refused(b"", error, Fault.INVALID_REQUEST)

    def _refused(self, raw_id: bytes, error: ErrorObject, fault: Fault) -> Refused:
        revision = self.lifecycle.revision if self._null_ids else LATEST_LEGACY
        return Refused(jsonrpc.failure(raw_id, error, revision), fault)

    def _refused_in(
        self, batch: Batch | None, raw_id: bytes, error: ErrorObject, fault: Fault
    ) -> Refused | None:
        """Refuse one message; inside a batch the error becomes one of the batch's answers."""
        refused = self._refused(raw_id, error, fault)
        if batch is None:
            return refused
        batch.answers.append(refused.frame[:-1])
        return None

    def _settle(self, batch: Batch, frame: bytes) -> bytes:
        batch.pending -= 1
        if frame:
            batch.answers.append(frame[:-1])
        if batch.pending or not batch.answers:
            return b""
        return b"[" + b",".join(batch.answers) + b"]\n"

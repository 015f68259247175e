"""Errors of the MCP endpoint: JSON-RPC in the body, and the HTTP status that goes with it.

A malformed message, or one that contradicts its headers, gets 400. An unknown method gets 404. Any
other error of a call gets 200, because the body carries the answer.
"""

from enum import Enum
from typing import Final

from daemon.bridge.retry_advice import advice
from daemon.rpc.failures import Failure
from daemon.rpc.gate import Outcome
from daemon.tools.surface import Surface
from daemon.transports.http.edge.messages import RawHeaders, Send, reply
from protocol import jsonrpc
from protocol.connection import Call, Event, Refused
from protocol.errors import ErrorObject, Fault, error_object
from protocol.revisions import MODERN

_HANDLER_STATUS: Final = {
    Fault.METHOD_NOT_FOUND.modern_code: 404,
    Fault.HEADER_MISMATCH.modern_code: 400,
    Fault.MISSING_CAPABILITY.modern_code: 400,
    Fault.UNSUPPORTED_VERSION.modern_code: 400,
}


class ProtocolRefusal(Exception):
    """An HTTP error whose body is a JSON-RPC error without an id."""

    def __init__(self, status: int, fault: Fault, details: str, **data: object) -> None:
        super().__init__(details)
        self.status = status
        self.error = error_object(fault, details, MODERN, **data)

    def body(self) -> bytes:
        return jsonrpc.failure(b"", self.error, MODERN)


class EndReason(Enum):
    """The reasons to end a running call early."""

    SESSION = (Fault.CANCELLED, "the session was ended")
    RIGHTS = (Fault.CANCELLED, "the rights of this token have changed")
    DAEMON = (Fault.DAEMON_LOST, "it is stopping")

    def error(self, call: Call, surface: Surface) -> ErrorObject:
        """The answer to a call that is ended early; every request gets an answer."""
        fault, reason = self.value
        is_safe = surface.is_retry_safe(call.method, call.tool)
        details = f"{reason}; {advice(is_safe)}"
        return error_object(fault, details, call.revision, retrySafe=is_safe)


def status_of(outcome: Outcome) -> tuple[int, RawHeaders]:
    """The HTTP status of an outcome, and the headers that go with it."""
    if isinstance(outcome, bytes):
        return 200, []
    if outcome.error.code == Fault.RATE_LIMITED.modern_code:
        return 429, [retry_after(outcome)]
    return _HANDLER_STATUS.get(outcome.error.code, 200), []


def retry_after(failure: Failure) -> tuple[bytes, bytes]:
    """The Retry-After header of a rate-limited call: whole seconds, at least one."""
    return (b"retry-after", b"%d" % max(1, int((failure.retry_seconds or 1.0) + 0.999)))


async def refuse_event(send: Send, event: Event | None, status: int) -> None:
    """Answer with the error that was found when the message was read."""
    assert isinstance(event, Refused)
    if event.fault is Fault.METHOD_NOT_FOUND:
        status = 404
    await reply(send, status, event.frame)


async def refuse_id(send: Send, status: int, raw_id: bytes, error: ErrorObject) -> None:
    """Answer a request with an error before it becomes a call."""
    await reply(send, status, jsonrpc.failure(raw_id, error, MODERN))

"""How the MCP endpoint says no: JSON-RPC in the body, and the status that goes with it.

The status follows what is wrong (D25): a message that is none, or that contradicts its headers, is
400; a method nobody knows is 404; any other error of a call is 200, the answer being in the body.
"""

from enum import Enum
from typing import Final

from daemon.bridge.retry_advice import advice
from daemon.rpc.dispatcher import Outcome
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
    """A request refused by status and, in the body, by a JSON-RPC error without an id."""

    def __init__(self, status: int, fault: Fault, details: str, **data: object) -> None:
        super().__init__(details)
        self.status = status
        self.error = error_object(fault, details, MODERN, **data)

    def body(self) -> bytes:
        return jsonrpc.failure(b"", self.error, MODERN)


class End(Enum):
    """Why what runs for a caller is ended before it is done."""

    SESSION = (Fault.CANCELLED, "the session was ended")
    RIGHTS = (Fault.CANCELLED, "the rights of this token have changed")
    DAEMON = (Fault.DAEMON_LOST, "it is stopping")

    def error(self, call: Call, surface: Surface) -> ErrorObject:
        """The answer to a call that is ended: a request never goes without one."""
        fault, reason = self.value
        is_safe = surface.is_retry_safe(call.method, call.tool)
        details = f"{reason}; {advice(is_safe)}"
        return error_object(fault, details, call.revision, retrySafe=is_safe)


def status_of(outcome: Outcome) -> tuple[int, RawHeaders]:
    """The HTTP status of what a handler gave, and what goes with it."""
    if isinstance(outcome, bytes):
        return 200, []
    if outcome.code == Fault.RATE_LIMITED.modern_code:
        data = outcome.data if isinstance(outcome.data, dict) else {}
        seconds = data.get("retryAfterSeconds", 1.0)
        return 429, [(b"retry-after", b"%d" % max(1, int(seconds + 0.999)))]
    return _HANDLER_STATUS.get(outcome.code, 200), []


async def refuse_event(send: Send, event: Event | None, status: int) -> None:
    """Answer with the error that reading the message gave."""
    assert isinstance(event, Refused)
    if event.fault is Fault.METHOD_NOT_FOUND:
        status = 404
    await reply(send, status, event.frame)


async def refuse_id(send: Send, status: int, raw_id: bytes, error: ErrorObject) -> None:
    """Answer a request with an error of our own, before it became a call."""
    await reply(send, status, jsonrpc.failure(raw_id, error, MODERN))

"""Helpers that several groups of methods share."""

from typing import Any, Final, TypeVar

import msgspec

from protocol import mcp
from protocol.connection import Call
from protocol.errors import Fault, ProtocolError
from protocol.lifecycle import decode_params
from protocol.revisions import LATEST_LEGACY, TASKS, Revision
from protocol.shape import CacheHint

#: Lists and discovery change only with a new daemon; the content of resources may change any time.
STEADY: Final = CacheHint(ttl_ms=60_000)
FLEETING: Final = CacheHint(ttl_ms=0)

_list: Final = msgspec.json.Decoder(mcp.ListParams)

T = TypeVar("T")


def revision_of(call: Call) -> Revision:
    """The revision an answer is shaped for."""
    return call.revision or LATEST_LEGACY


def require_first_page(call: Call) -> None:
    """Reject any cursor: our lists have one page, so no cursor was ever given out."""
    if call.params == b"{}":
        return
    cursor = decode_params(_list, call.params).cursor
    if cursor:
        raise ProtocolError(Fault.INVALID_PARAMS, "cursor: not one that this list gave out")


def declares_tasks(call: Call) -> bool:
    """Whether a modern request declares the tasks extension."""
    declared = call.meta.capabilities
    return revision_of(call).modern and declared is not None and declared.has(TASKS)


def require_tasks(call: Call) -> None:
    """Reject a request that does not declare the tasks extension."""
    if not declares_tasks(call):
        required: dict[str, Any] = {"extensions": {TASKS: {}}}
        raise ProtocolError(Fault.MISSING_CAPABILITY, TASKS, requiredCapabilities=required)


def offered(group: T | None) -> T:
    """A part of the surface; it exists, since only methods of existing parts are admitted."""
    assert group is not None
    return group

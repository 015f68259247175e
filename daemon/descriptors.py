"""Taking descriptors 0 and 1 private: on stdio, stdout is the wire.

Private copies carry the protocol, and what is left in their place is the null device and stderr. A
print anywhere, in us, in a library or in a child process, cannot get between two frames.
"""

import os
from typing import NamedTuple

from daemon.exits import UNAVAILABLE, Exit


class Descriptors(NamedTuple):
    """Private copies of what were descriptors 0 and 1."""

    read: int
    write: int


def take_descriptors() -> Descriptors:
    """Take 0 and 1 out of everybody's reach; call before anything can print."""
    try:
        reading, writing = os.dup(0), os.dup(1)
    except OSError:
        raise Exit(UNAVAILABLE, "stdin or stdout is closed; recalld stdio needs both") from None
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    try:
        os.fstat(2)
    except OSError:
        os.dup2(null, 2)  # started without a stderr: logs have nowhere to go
    os.dup2(2, 1)
    os.close(null)
    return Descriptors(reading, writing)

"""Protects descriptors 0 and 1, which carry the protocol on the stdio transport.

The transport uses private copies. Descriptor 0 becomes the null device, and descriptor 1 leads to
stderr. A print in recalld, a library or a child process therefore cannot corrupt the protocol.
"""

import os
from typing import NamedTuple

from daemon.operations.stderr_writer import stderr_writer


class Descriptors(NamedTuple):
    """Private copies of the original descriptors 0 and 1."""

    read: int
    write: int


def take_descriptors() -> Descriptors:
    """Replace descriptors 0 and 1; call before anything can print."""
    reading, writing = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    try:
        os.fstat(2)
    except OSError:
        os.dup2(null, 2)  # started without a stderr: discard the logs
    writer = stderr_writer()
    relay = 2 if writer is None else writer.relay()
    os.dup2(relay, 1)
    if relay != 2:
        os.close(relay)
    os.close(null)
    return Descriptors(reading, writing)

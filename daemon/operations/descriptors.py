"""Taking descriptors 0 and 1 private: on stdio, stdout is the wire.

Private copies carry the protocol, and what is left in their place is the null device and a way
to stderr. A print anywhere, in us, a library or a child process, cannot get between two frames.
"""

import os
from typing import NamedTuple

from daemon.operations.stderr_writer import patient_stderr


class Descriptors(NamedTuple):
    """Private copies of what were descriptors 0 and 1."""

    read: int
    write: int


def take_descriptors() -> Descriptors:
    """Take 0 and 1 out of everybody's reach; call before anything can print."""
    reading, writing = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    try:
        os.fstat(2)
    except OSError:
        os.dup2(null, 2)  # started without a stderr: logs have nowhere to go
    patient = patient_stderr()
    relay = 2 if patient is None else patient.relay()
    os.dup2(relay, 1)
    if relay != 2:
        os.close(relay)
    os.close(null)
    return Descriptors(reading, writing)

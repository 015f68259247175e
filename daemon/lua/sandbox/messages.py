"""Messages between the daemon and a script process.

A message is a msgpack value of one of the types below, after its length in four bytes. The daemon
sends `Run`; the process answers it with one `Finished` or `Failed`. In between the process may send
`Ask`, which the daemon answers with one `Reply`, and `Note`, which has no answer.
"""

import struct
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

#: The length of a message, before the message.
HEAD: Final = struct.Struct(">I")
#: The largest message in either direction. A document of 16 MiB fits.
MOST_BYTES: Final = 32 * 1024 * 1024

Level = Literal["debug", "info", "warning", "error"]


class Run(Struct, frozen=True, kw_only=True, tag="run"):
    """Load a script and call one of its functions, or only describe it."""

    #: Name of the file, for error messages.
    name: str
    source: bytes
    #: The global table that the script sets.
    table: Literal["tool", "agent", "connector"]
    #: The function of that table to call; empty to describe the table.
    function: str = ""
    arguments: list[Any] = []
    config: dict[str, Any] = {}
    environment: dict[str, str] = {}
    seconds: float
    memory_bytes: int
    result_bytes: int


class Reply(Struct, frozen=True, kw_only=True, tag="reply"):
    """The answer to an `Ask`. With an `error`, the script sees a Lua error."""

    value: Any = None
    error: str = ""


class Ready(Struct, frozen=True, kw_only=True, tag="ready"):
    """The process has restricted itself and waits for work."""

    #: Whether the kernel filters its system calls.
    is_filtered: bool


class Ask(Struct, frozen=True, kw_only=True, tag="ask"):
    """A script called a function of its host."""

    name: str
    arguments: list[Any]


class Note(Struct, frozen=True, kw_only=True, tag="note"):
    """A script wrote a line to the log."""

    level: Level
    text: str


class Finished(Struct, frozen=True, kw_only=True, tag="finished"):
    """The script ended. `result` is JSON."""

    result: bytes
    seconds: float
    #: The memory of the Lua state when the script ended.
    memory_bytes: int
    #: The CPU time of the process since it started.
    cpu_seconds: float


class Failed(Struct, frozen=True, kw_only=True, tag="failed"):
    """The script raised an error, exceeded its memory, or returned an unusable value."""

    message: str
    cpu_seconds: float


ToChild = Run | Reply
FromChild = Ready | Ask | Note | Finished | Failed

_encoder: Final = msgspec.msgpack.Encoder()
to_child: Final = msgspec.msgpack.Decoder(ToChild)
from_child: Final = msgspec.msgpack.Decoder(FromChild)


class MessageTooLarge(Exception):
    """A message exceeds `MOST_BYTES`."""


def encode(message: ToChild | FromChild) -> bytes:
    """The message with its length."""
    body = _encoder.encode(message)
    if len(body) > MOST_BYTES:
        raise MessageTooLarge(f"the value has {len(body)} bytes, the limit is {MOST_BYTES}")
    return HEAD.pack(len(body)) + body

"""Newline-delimited framing with a size limit: one message per line.

Only LF ends a frame. CR, U+2028 and U+0085 inside a frame are content. A CR before the LF is
removed, and blank lines are skipped. The unix socket uses the same framing as stdio.

A line longer than the limit is counted but not stored, so memory stays bounded. Its first and last
`END_BYTES` are kept, because the request id can often be read from them (`protocol.salvage`).
"""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

DEFAULT_FRAME_LIMIT: Final = 4 * 1024 * 1024

#: Bytes kept of each end of an oversized line.
END_BYTES: Final = 4096

_BLANK: Final = b" \t\r"


class Oversized(Struct, frozen=True):
    """A line that was longer than the limit; only its two ends were kept."""

    size: int
    limit: int
    head: bytes = b""
    tail: bytes = b""


class LineFramer:
    """Splits a byte stream into frames, independent of how it is divided into chunks."""

    def __init__(self, limit: int = DEFAULT_FRAME_LIMIT) -> None:
        self.limit = limit
        self._pieces: list[bytes] = []
        self._held = 0
        self._dropped = 0
        self._head = self._tail = b""

    def feed(self, chunk: bytes) -> Iterator[bytes | Oversized]:
        """Add a chunk and yield the frames that it completes, in order."""
        lines = chunk.split(b"\n")
        rest = lines.pop()
        for line in lines:
            if self._held or self._dropped:
                yield from self._complete(line)
            elif frame := self._frame(line):
                yield frame
        if rest:
            self._hold(rest)

    def end(self) -> Iterator[bytes | Oversized]:
        """Yield the last line if it has no LF; call when the input has ended."""
        if self._held or self._dropped:
            yield from self._complete(b"")

    def _complete(self, tail: bytes) -> Iterator[bytes | Oversized]:
        self._hold(tail)
        if self._dropped:
            yield self._oversized()
        elif frame := self._frame(b"".join(self._pieces)):
            yield frame
        self._pieces.clear()
        self._held = self._dropped = 0
        self._head = self._tail = b""

    def _oversized(self) -> Oversized:
        tail = self._tail[:-1] if self._tail.endswith(b"\r") else self._tail
        size = self._dropped - len(self._tail) + len(tail)
        return Oversized(size, self.limit, self._head[: min(size, END_BYTES)], tail[-END_BYTES:])

    def _frame(self, line: bytes) -> bytes | Oversized:
        """Return the line without its CR; empty when it is blank."""
        if line.endswith(b"\r"):
            line = line[:-1]
        if len(line) > self.limit:
            return Oversized(len(line), self.limit, line[:END_BYTES], line[-END_BYTES:])
        return line if line[:1] == b"{" or line.strip(_BLANK) else b""

    def _hold(self, piece: bytes) -> None:
        if self._dropped:
            self._dropped += len(piece)
            self._keep_ends(piece)
            return
        self._held += len(piece)
        # One byte over the limit may be the CR of a frame that just fits.
        if self._held > self.limit + 1:
            self._dropped = self._held
            self._keep_ends(b"".join([*self._pieces, piece]))
            self._pieces.clear()
            self._held = 0
        elif piece:
            self._pieces.append(piece)

    def _keep_ends(self, piece: bytes) -> None:
        if len(self._head) < END_BYTES:
            self._head += piece[: END_BYTES - len(self._head)]
        # One byte more than needed: the last may be the CR, which is not part of the line.
        self._tail = (self._tail + piece[-END_BYTES - 1 :])[-END_BYTES - 1 :]

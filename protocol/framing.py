"""Lines out of bytes: one message a line, with a limit on what one line may cost.

A frame ends at LF, and only there: CR, U+2028 or U+0085 inside a frame are content. A CR before
the LF and lines of blanks are dropped without a word (D36: the socket uses stdio framing verbatim).
A line past the limit is counted, not kept, but for its two ends (where its id may be told from, see
`protocol.salvage`): memory stays bounded however long it grows.
"""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

DEFAULT_FRAME_LIMIT: Final = 4 * 1024 * 1024

#: How much of each end of an overlong line is kept.
END_BYTES: Final = 4096

_BLANK: Final = b" \t\r"


class Oversized(Struct, frozen=True):
    """A line that was longer than the limit; its bytes are gone, except at the ends."""

    size: int
    limit: int
    head: bytes = b""
    tail: bytes = b""


class LineFramer:
    """Turns chunks, however the bytes were chopped, into frames."""

    def __init__(self, limit: int = DEFAULT_FRAME_LIMIT) -> None:
        self.limit = limit
        self._pieces: list[bytes] = []
        self._held = 0
        self._dropped = 0
        self._head = self._tail = b""

    def feed(self, chunk: bytes) -> Iterator[bytes | Oversized]:
        """Take in a chunk; give the frames it completes, in order of arrival."""
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
        """The input is over: a last line without its LF is a frame too (F14)."""
        if self._held or self._dropped:
            yield from self._complete(b"")

    def _complete(self, tail: bytes) -> Iterator[bytes | Oversized]:
        self._hold(tail)
        if self._dropped:
            yield self._overlong()
        elif frame := self._frame(b"".join(self._pieces)):
            yield frame
        self._pieces.clear()
        self._held = self._dropped = 0
        self._head = self._tail = b""

    def _overlong(self) -> Oversized:
        tail = self._tail[:-1] if self._tail.endswith(b"\r") else self._tail
        size = self._dropped - len(self._tail) + len(tail)
        return Oversized(size, self.limit, self._head[: min(size, END_BYTES)], tail[-END_BYTES:])

    def _frame(self, line: bytes) -> bytes | Oversized:
        """The line without its CR; empty when it is blank."""
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
        # One byte more than the limit may be the CR of a frame that just fits.
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
        # One byte more: the last may be the CR, which is no part of the line.
        self._tail = (self._tail + piece[-END_BYTES - 1 :])[-END_BYTES - 1 :]

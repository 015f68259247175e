"""Lines out of bytes: one message a line, with a limit on what one line may cost.

A frame ends at LF, and only there: CR, U+2028 or U+0085 inside a frame are content. A CR before
the LF and lines of blanks are dropped without a word (D36: the socket uses stdio framing verbatim).
A line past the limit is counted, not kept: memory stays bounded however long it grows.
"""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

DEFAULT_FRAME_LIMIT: Final = 4 * 1024 * 1024

_BLANK: Final = b" \t\r"


class Oversized(Struct, frozen=True):
    """A line that was longer than the limit; its bytes are gone."""

    size: int
    limit: int


class LineFramer:
    """Turns chunks, however the bytes were chopped, into frames."""

    def __init__(self, limit: int = DEFAULT_FRAME_LIMIT) -> None:
        self.limit = limit
        self._pieces: list[bytes] = []
        self._held = 0
        self._dropped = 0

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
            yield Oversized(self._dropped, self.limit)
        elif frame := self._frame(b"".join(self._pieces)):
            yield frame
        self._pieces.clear()
        self._held = self._dropped = 0

    def _frame(self, line: bytes) -> bytes | Oversized:
        """The line without its CR; empty when it is blank."""
        if line.endswith(b"\r"):
            line = line[:-1]
        if len(line) > self.limit:
            return Oversized(len(line), self.limit)
        return line if line[:1] == b"{" or line.strip(_BLANK) else b""

    def _hold(self, piece: bytes) -> None:
        if self._dropped:
            self._dropped += len(piece)
            return
        self._held += len(piece)
        # One byte more than the limit may be the CR of a frame that just fits.
        if self._held > self.limit + 1:
            self._dropped = self._held
            self._pieces.clear()
            self._held = 0
        elif piece:
            self._pieces.append(piece)

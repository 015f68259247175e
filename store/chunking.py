"""Cutting documents into chunks at headings, blank lines, lines, sentences or words.

The content type decides which lines are headings: Markdown headings in Markdown and plain text,
underlined titles in reStructuredText, definitions in source code, none in data formats.

A chunk is long enough to be meaningful and short enough for the embedding model to read it whole.
Within a section, a chunk begins with the end of the chunk before it, so that a statement across
the boundary is found too. A heading starts a new chunk, unless the section before it is very short.
So an edit changes the chunks of its section only, and the others keep their ids and vectors.
"""

import re
from collections import deque
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple

from store.blocks import CODE_TYPES, Block, code_blocks, titled_blocks

CHUNK_LIMIT: Final = 1_000  # characters, about 250 tokens
CHUNK_LEAST: Final = 200  # characters; a shorter section is joined with the next one
OVERLAP: Final = 150  # characters

# Formats in which "#" begins a comment, or nothing.
_WITHOUT_HEADINGS: Final = frozenset(
    ("application/json", "application/yaml", "application/toml", "text/csv", "text/x-config")
)
_HEADING: Final = re.compile(r"(#{1,6})[ \t]+(\S.*)")
_FENCE: Final = re.compile(r"[ \t]*(```|~~~)")
# The places where a text that is too long for one chunk is cut, best first. Each pattern matches at
# most two characters, so searching for its last match is linear.
_BOUNDARIES: Final = (re.compile(r"\n"), re.compile(r"[.!?。！？][\s]"), re.compile(r"[。！？\s]"))


class Chunk(NamedTuple):
    """A part of a body. Offsets are characters; `text` also contains the overlap before `start`."""

    heading: str  # the headings above it, outermost first, joined by " > "
    text: str
    start: int
    end: int


def chunks(body: str, content_type: str = "text/plain") -> list[Chunk]:
    """The chunks of a body; at least one, unless the body is blank."""
    made: list[Chunk] = []
    path = ""  # of the current section
    chunk_path = ""  # of the section in which the current chunk begins
    start: int | None = None
    end = 0
    overlap_from: int | None = None

    def close() -> None:
        nonlocal start, overlap_from
        if start is not None and body[start:end].strip():
            made.append(_chunk(body, chunk_path, start, end, overlap_from))
            overlap_from = start
        start = None

    for block in _blocks_of(body, content_type):
        if block.heading is not None:
            if start is None or end - start >= CHUNK_LEAST:
                close()
                overlap_from = None
            path = block.heading
        for piece_start, piece_end in _pieces(body, block.start, block.end):
            if start is not None and piece_end - start > CHUNK_LIMIT:
                close()
            if start is None:
                start, chunk_path = piece_start, path
            end = piece_end
    close()
    return made


def chunk_ids(source: str, source_id: str, pieces: Sequence[Chunk]) -> list[str]:
    """An id for each chunk, derived from its document and its text, not from its position."""
    counts: dict[tuple[str, str], int] = {}
    ids: list[str] = []
    for piece in pieces:
        content = (piece.heading, piece.text)
        counts[content] = counts.get(content, -1) + 1
        hashed = blake2b(digest_size=16)
        for part in (source, source_id, piece.heading, piece.text, str(counts[content])):
            encoded = part.encode()
            hashed.update(len(encoded).to_bytes(8, "big") + encoded)
        ids.append(f"chk_{hashed.hexdigest()}")
    return ids


def _chunk(body: str, path: str, start: int, end: int, overlap_from: int | None) -> Chunk:
    text = body[start:end].strip()
    if overlap_from is not None:
        tail = body[max(overlap_from, start - OVERLAP) : start].strip()
        cut = _first_boundary(tail)
        if tail[cut:]:
            text = f"{tail[cut:]}\n{text}"
    return Chunk(path, text, start, end)


def line_ranges(body: str, pieces: Sequence[Chunk]) -> list[tuple[int, int]]:
    """The first and last line of each chunk, from 1, without blank lines at its ends."""
    found: list[tuple[int, int]] = []
    line, position = 1, 0
    for piece in pieces:
        text = body[piece.start : piece.end]
        start = piece.start + len(text) - len(text.lstrip())
        line += body.count("\n", position, start)
        position = start
        found.append((line, line + text.strip().count("\n")))
    return found


def _blocks_of(body: str, content_type: str) -> Iterator[Block]:
    if content_type in _WITHOUT_HEADINGS:
        return _paragraphs(body)
    if content_type == "text/x-rst":
        return titled_blocks(body)
    if content_type in CODE_TYPES:
        return code_blocks(body)
    return _blocks(body)


def _paragraphs(body: str) -> Iterator[Block]:
    """The paragraphs of a body, each with the blank lines after it."""
    start = position = 0
    is_blank = False
    for line in body.splitlines(keepends=True):
        if is_blank and line.strip() and position > start:
            yield Block(start, position, None)
            start = position
        is_blank = not line.strip()
        position += len(line)
    if position > start:
        yield Block(start, position, None)


def _blocks(body: str) -> Iterator[Block]:
    """The headings, code blocks and paragraphs of a body, each with the blank lines after it."""
    path: list[tuple[int, str]] = []
    start = 0
    position = 0
    fence: str | None = None
    blank_before = False
    for line in body.splitlines(keepends=True):
        opened = _FENCE.match(line)
        if fence is not None:
            if opened and opened.group(1) == fence:
                fence = None
        else:
            found = _HEADING.match(line)
            if (found or opened or blank_before) and line.strip() and position > start:
                yield Block(start, position, None)
                start = position
            if opened:
                fence = opened.group(1)
            elif found:
                level = len(found.group(1))
                path = [entry for entry in path if entry[0] < level]
                path.append((level, found.group(2).strip().rstrip("#").strip()[:200]))
                yield Block(start, position + len(line), " > ".join(name for _, name in path))
                start = position + len(line)
            blank_before = not line.strip()
        position += len(line)
    if position > start:
        yield Block(start, position, None)


def _pieces(body: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The block in pieces within the limit, cut at the best boundaries."""
    while end - start > CHUNK_LIMIT:
        cut = _last_boundary(body, start + CHUNK_LIMIT // 2, start + CHUNK_LIMIT)
        yield start, cut
        start = cut
    if end > start:
        yield start, end


def _last_boundary(body: str, least: int, most: int) -> int:
    for boundary in _BOUNDARIES:
        found = deque(boundary.finditer(body, least, most), maxlen=1)
        if found:
            return found[0].end()
    return most


def _first_boundary(text: str) -> int:
    for boundary in _BOUNDARIES:
        found = boundary.search(text, 0, len(text) // 2)
        if found:
            return found.end()
    return 0

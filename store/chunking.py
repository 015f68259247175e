"""Cutting a document where it cuts itself: at headings, blank lines, lines, sentences, words.

A chunk is long enough to mean something and short enough for the embedding model to see all of it.
It begins with the end of the chunk before it when both are of one section, so that a statement
across the border is found too. Chunks start afresh at every heading: an edit changes the chunks of
its section and leaves the others, with their ids and vectors, as they were.
"""

import re
from collections import deque
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple

CHUNK_LIMIT: Final = 1_000  # characters, about 250 tokens
CHUNK_LEAST: Final = 200  # a section shorter than this stays with the next one
OVERLAP: Final = 150

_HEADING: Final = re.compile(r"(#{1,6})[ \t]+(\S.*)")
_FENCE: Final = re.compile(r"[ \t]*(```|~~~)")
# Where a text too long for one chunk is cut, best place first. Each matches at most one sign more
# than it stands on, so looking for the last one is linear.
_BORDERS: Final = (re.compile(r"\n"), re.compile(r"[.!?。！？][\s]"), re.compile(r"[。！？\s]"))


class Chunk(NamedTuple):
    """A piece of a body. `text` may begin before `start` by the overlap; offsets are characters."""

    heading: str  # the headings it stands under, outermost first, joined by " > "
    text: str
    start: int
    end: int


class _Block(NamedTuple):
    start: int
    end: int
    heading: str | None  # the path of headings from here on, when this block is a heading


def chunks(body: str) -> list[Chunk]:
    """The body in pieces; at least one when there is anything but blanks in it."""
    made: list[Chunk] = []
    path = ""  # of the section we are in
    begun_in = ""  # the section the open chunk began in
    start: int | None = None
    end = 0
    overlap_from: int | None = None

    def close() -> None:
        nonlocal start, overlap_from
        if start is not None and body[start:end].strip():
            made.append(_chunk(body, begun_in, start, end, overlap_from))
            overlap_from = start
        start = None

    for block in _blocks(body):
        if block.heading is not None:
            if start is None or end - start >= CHUNK_LEAST:
                close()
                overlap_from = None
            path = block.heading
        for piece_start, piece_end in _pieces(body, block.start, block.end):
            if start is not None and piece_end - start > CHUNK_LIMIT:
                close()
            if start is None:
                start, begun_in = piece_start, path
            end = piece_end
    close()
    return made


def chunk_ids(source: str, source_id: str, pieces: Sequence[Chunk]) -> list[str]:
    """An id for each chunk that depends on its document and its words, not on its position."""
    seen: dict[tuple[str, str], int] = {}
    ids: list[str] = []
    for piece in pieces:
        said = (piece.heading, piece.text)
        seen[said] = seen.get(said, -1) + 1
        hashed = blake2b(digest_size=16)
        for part in (source, source_id, piece.heading, piece.text, str(seen[said])):
            encoded = part.encode()
            hashed.update(len(encoded).to_bytes(8, "big") + encoded)
        ids.append(f"chk_{hashed.hexdigest()}")
    return ids


def _chunk(body: str, path: str, start: int, end: int, overlap_from: int | None) -> Chunk:
    text = body[start:end].strip()
    if overlap_from is not None:
        tail = body[max(overlap_from, start - OVERLAP) : start].strip()
        cut = _first_border(tail)
        if tail[cut:]:
            text = f"{tail[cut:]}\n{text}"
    return Chunk(path, text, start, end)


def _blocks(body: str) -> Iterator[_Block]:
    """Headings, fenced code, paragraphs, each with the blank lines after it; all of the body."""
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
                yield _Block(start, position, None)
                start = position
            if opened:
                fence = opened.group(1)
            elif found:
                level = len(found.group(1))
                path = [entry for entry in path if entry[0] < level]
                path.append((level, found.group(2).strip().rstrip("#").strip()[:200]))
                yield _Block(start, position + len(line), " > ".join(name for _, name in path))
                start = position + len(line)
            blank_before = not line.strip()
        position += len(line)
    if position > start:
        yield _Block(start, position, None)


def _pieces(body: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The block whole, or cut at the best places that keep every piece within the limit."""
    while end - start > CHUNK_LIMIT:
        cut = _last_border(body, start + CHUNK_LIMIT // 2, start + CHUNK_LIMIT)
        yield start, cut
        start = cut
    if end > start:
        yield start, end


def _last_border(body: str, least: int, most: int) -> int:
    for border in _BORDERS:
        found = deque(border.finditer(body, least, most), maxlen=1)
        if found:
            return found[0].end()
    return most


def _first_border(text: str) -> int:
    for border in _BORDERS:
        found = border.search(text, 0, len(text) // 2)
        if found:
            return found.end()
    return 0

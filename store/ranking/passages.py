"""Passages: the part of a document that answers a query, chosen by meaning and by words.

A chunk has several statements, and its vector is an average of them. So the sentences of the best
chunks of the first documents are compared with the query one by one. A passage is a run of whole
sentences; its value is the cosine of its best sentence, plus a little for the query's words in it
and for the score of its chunk. A document whose passage is closer to the query than its score says
is raised by a part of the difference, which may change the order of the first documents.

The weights were chosen on the look-ups of `tests/daemon/dialects/lookups.toml`; the result is the
same over a wide range of them.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from store.model import Hit
from store.ranking.snippets import Marker
from store.ranking.tokenizer import query_terms, tokens

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WIDTH: Final = 320  # characters of a passage
CHUNKS: Final = 2  # of each document that are compared
LONGEST: Final = 4_000  # characters; a longer item keeps its snippet by words
NEAR: Final = 0.6  # a chunk with a lower share of the best score is not compared
SHORT: Final = 30  # characters; a heading or a shorter sentence is joined with the next one
WORDS_WEIGHT: Final = 0.2
SCORE_WEIGHT: Final = 0.6
RAISE: Final = 0.3  # the part of the difference by which a better passage raises a score

_BOUNDARY: Final = re.compile(r"(?<=[.!?:;])\s|(?<=[。！？])|\n")


class _Chunk(NamedTuple):
    place: int  # in the list of hits
    hit: Hit
    sentences: list[tuple[int, int]]


class Passages:
    """The chunks whose sentences are compared with one query."""

    def __init__(self, question: str, hits: Sequence[Hit], documents: int) -> None:
        """`documents` is the number of documents, from the first, that are looked at."""
        self._hits = hits
        terms = query_terms(question)
        self._marker = Marker(terms)
        self._words = frozenset(term.text for term in terms if term.weight == 1.0)
        self._chunks: dict[str, list[_Chunk]] = {}
        for place, hit in enumerate(hits):
            if hit.score < NEAR * hits[0].score:
                break
            document = hit.item.document or hit.item.id
            if document not in self._chunks and len(self._chunks) == documents:
                continue
            chunks = self._chunks.setdefault(document, [])
            if hit.item.document and len(hit.item.text) <= LONGEST and len(chunks) < CHUNKS:
                chunks.append(_Chunk(place, hit, sentences(hit.item.text)))

    def texts(self) -> list[str]:
        """The sentences, which are to be embedded in this order."""
        return [
            chunk.hit.item.text[start:end]
            for chunk in self._all()
            for start, end in chunk.sentences
        ]

    def chosen(
        self, query: "NDArray[np.float32]", vectors: "NDArray[np.float32]"
    ) -> tuple[Hit, ...]:
        """The hits with passages, best first."""
        cosines = iter((vectors @ query).tolist())
        of_chunk = {chunk.place: [next(cosines) for _ in chunk.sentences] for chunk in self._all()}
        hits = list(self._hits)
        for chunks in self._chunks.values():
            found = [
                (*self._best(chunk, of_chunk[chunk.place]), chunk)
                for chunk in chunks
                if chunk.sentences
            ]
            if found:
                _, cosine, (start, end), chunk = max(found, key=lambda each: each[0])
                score = chunks[0].hit.score
                score += RAISE * max(0.0, cosine - score)
                shown = self._marker.snippet(chunk.hit.item.text[start:end], width=end - start)
                hits[chunk.place] = replace(
                    chunk.hit, score=min(1.0, score), snippet=shown.text, matches=shown.matches
                )
        return tuple(sorted(hits, key=lambda hit: -hit.score))

    def _all(self) -> Iterator[_Chunk]:
        return (chunk for chunks in self._chunks.values() for chunk in chunks)

    def _best(
        self, chunk: _Chunk, cosines: Sequence[float]
    ) -> tuple[float, float, tuple[int, int]]:
        """The value, cosine and place of the best passage of a chunk."""
        text, spans = chunk.hit.item.text, chunk.sentences
        best = (-2.0, 0.0, spans[0])
        for first, last in runs(spans):
            start, end = spans[first][0], spans[last][1]
            cosine = max(cosines[first : last + 1])
            value = cosine + WORDS_WEIGHT * self._share(text[start:end])
            value += SCORE_WEIGHT * chunk.hit.score
            if value > best[0]:
                best = (value, cosine, (start, end))
        return best

    def _share(self, text: str) -> float:
        """The share of the query's words that occur in a text."""
        return len(self._words.intersection(tokens(text))) / max(1, len(self._words))


def sentences(text: str) -> list[tuple[int, int]]:
    """The (start, end) of each sentence or line; a longer one than a passage is divided."""
    found: list[tuple[int, int]] = []
    start = 0
    for end in (*(match.end() for match in _BOUNDARY.finditer(text)), len(text)):
        if end < len(text) and end - start < SHORT:
            continue
        found.extend(_pieces(text, start, end))
        start = end
    return found


def runs(spans: Sequence[tuple[int, int]]) -> Iterable[tuple[int, int]]:
    """The first and last sentence of each passage that cannot be longer."""
    last = -1
    end = 0
    for first in range(len(spans)):
        end = max(end, first)
        while end + 1 < len(spans) and spans[end + 1][1] - spans[first][0] <= WIDTH:
            end += 1
        if end > last:
            yield first, end
            last = end


def _pieces(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """A sentence without the spaces around it, in pieces that fit into a passage."""
    while end - start > WIDTH:
        cut = text.rfind(" ", start, start + WIDTH)
        cut = cut if cut > start else start + WIDTH
        yield from _trimmed(text, start, cut)
        start = cut
    yield from _trimmed(text, start, end)


def _trimmed(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    part = text[start:end]
    if part.strip():
        yield start + len(part) - len(part.lstrip()), start + len(part.rstrip())

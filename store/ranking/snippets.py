"""Snippets: the part of a text that shows why it matched a query."""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

from msgspec import Struct

from store.ranking.tokenizer import DENSE_CHARACTER, MAX_COMPOUND, PIECE, Term, tokens

_SPACE: Final = re.compile(r"\s")


class Snippet(Struct, frozen=True, kw_only=True):
    """A part of a text, and the (start, end) of each match in it."""

    text: str
    matches: tuple[tuple[int, int], ...]


class Marker:
    """Finds the matches of one query in texts, and the part of each text to show."""

    def __init__(self, terms: Iterable[Term]) -> None:
        self._weights = {term.text: term.weight for term in terms}
        # A stem begins like its word (the stem of "buys" is "bui"), so an ASCII word that has none
        # of these beginnings cannot match.
        begins = {term[:3] if len(term) > 3 else term[:2] for term in self._weights}
        self._beginnings = re.compile("|".join(map(re.escape, sorted(begins))), re.IGNORECASE)

    def snippet(self, text: str, *, width: int = 240) -> Snippet:
        """The part of at most `width` characters with the greatest weight of matches."""
        hits = self._occurrences(text) if self._weights else []
        if len(text) <= width:
            return Snippet(text=text, matches=tuple((start, end) for start, end, _ in hits))
        first = last = 0
        best = total = 0.0
        chosen = (0, 0)
        for last, (_, end, weight) in enumerate(hits):
            total += weight
            while first < last and end - hits[first][0] > width:
                total -= hits[first][2]
                first += 1
            if total > best:
                best, chosen = total, (hits[first][0], end)
        start = max(0, min((chosen[0] + chosen[1] - width) // 2, len(text) - width))
        stop = start + width
        while start > 0 and start < chosen[0] and not text[start - 1].isspace():
            start += 1
        while stop < len(text) and stop > chosen[1] and not text[stop].isspace():
            stop -= 1
        inside = ((a - start, b - start) for a, b, _ in hits if a >= start and b <= stop)
        return Snippet(text=text[start:stop], matches=tuple(inside))

    def _occurrences(self, text: str) -> list[tuple[int, int, float]]:
        """The matches in order, as (start, end, weight of the best term)."""
        weights = self._weights
        found: list[tuple[int, int, float]] = []
        free = 0
        for start, stop in self._ascii_words(text) if text.isascii() else self._words(text):
            end = stop  # a character of a script without spaces is shown with the next one
            if end - start == 1 and DENSE_CHARACTER.match(text, start):
                end = min(start + 2, len(text))
            weight = 0.0
            for token in _tokens_of_piece(text[start:end]):
                weight = max(weight, weights.get(token, 0.0))
            if weight > 0.0 and start >= free:
                found.append((start, end, weight))
                free = end
        return found

    def _words(self, text: str) -> Iterator[tuple[int, int]]:
        """The (start, end) of the words that may match."""
        for piece in PIECE.finditer(text):
            word = piece.group()
            if not word.isascii() or self._beginnings.search(word):
                yield piece.span()

    def _ascii_words(self, text: str) -> Iterator[tuple[int, int]]:
        """The same for an ASCII text. Jumps from one possible beginning to the next."""
        at = 0
        while (match := self._beginnings.search(text, at)) is not None:
            before = text[at : match.start()]
            is_inside = before != "" and not before[-1].isspace()
            start = match.start() - (len(before.rsplit(None, 1)[-1]) if is_inside else 0)
            space = _SPACE.search(text, match.start())
            at = len(text) if space is None else space.start()
            yield start, at


@lru_cache(maxsize=16384)
def _tokens_of_piece(piece: str) -> tuple[str, ...]:
    return tuple(tokens(piece)) if len(piece) <= MAX_COMPOUND else ()

"""Words: what a text is found by, and what a query asks for.

One tokeniser of our own serves both sides, so user text is never MATCH syntax and every string is
a valid query. FTS5 only keeps the posting lists: it is given `index_text(text)`, tokens that
are already cut, folded and stemmed and that its `ascii` tokeniser cannot cut again (`FTS_TOKENIZE`
must be the table's `tokenize` option). Scores are ours too (BM25 over the candidates' stored
tokens): FTS5's `bm25()` walks every posting of every term and was the slowest part of a query.

What becomes a token:
- a word in any script, compatibility-folded, case-folded, without Latin/Greek/Cyrillic accents;
- English words by their stem (Porter's 1980 algorithm; +4 points R@10 on conversations);
- a compound (`snake_case`, `docs/auth.md`, `v1.2.3`, `C++`, `user@host`) whole and in its parts,
  `camelCase` likewise;
- scripts written without spaces, and Hangul: every character and every pair of neighbours;
- a symbol such as an emoji: itself.

Time is linear in the text: no pattern here can backtrack over more than one word.
"""

import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from msgspec import Struct

from store.ranking.stemming import stem

# ASCII signs that may stand inside one token. The table's tokeniser must know them.
CONNECTORS: Final = "_./-:@+#&\\"
FTS_TOKENIZE: Final = f"ascii tokenchars '{CONNECTORS}'"

MAX_QUERY_TERMS: Final = 64
MAX_TOKEN: Final = 64  # longer words are found by their first 64 characters
MAX_COMPOUND: Final = 128  # longer ones are blobs: cut at connectors, not at capitals
STOP_WEIGHT: Final = 0.1

K1: Final = 0.9
B: Final = 0.4

# Han, kana, Hangul, Thai, Lao, Myanmar, Khmer: no spaces between words, or glued particles.
_DENSE: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
_DENSE_SIGN: Final = re.compile(f"[{_DENSE}]")
_DENSE_RUN: Final = re.compile(f"[{_DENSE}]+")
_DENSE_SPLIT: Final = re.compile(f"([{_DENSE}]+)")
_ACCENTS: Final = re.compile("[\u0300-\u036f]+")
_INNER: Final = re.compile(r"[_./\-:@+#&\\]+")
_POSSESSIVE: Final = re.compile(r"'s\b")
_CAMEL: Final = re.compile(r"[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z]+[0-9]*|[0-9]+|[^A-Za-z0-9]+")
_HAS_CAMEL: Final = re.compile(r"[a-z][A-Z]|[A-Z][A-Z][a-z]")
_SPACE: Final = re.compile(r"\s")
_PIECE: Final = re.compile(f"[{_DENSE}]|[^\\s{_DENSE}]+")

# One word a space: a list literal of these would be forty lines of quotation marks.
_STOP_WORDS: Final = """
    a about after all also am an and any are as at be because been before being between both but
    by can could d did do does doing don down during each few for from further had has have having
    he her here hers him his how i if in into is it its just ll m me more most my no nor not now of
    off on once only or other our out over own re s same she should so some such t than that the
    their them then there these they this those through to too under until up ve very was we were
    what when where which while who whom why will with would you your
"""
# Texts and queries hold stems, so these are stems too.
_STOPS: Final = frozenset(stem(word) for word in _STOP_WORDS.split())


class Term(NamedTuple):
    """One thing a query asks for, and how much it counts (stop words little, never nothing)."""

    text: str
    weight: float


class Statistics(Struct, frozen=True, kw_only=True):
    """What BM25 must know of a bank: how many items, how long on average, how common each term."""

    items: int
    average_length: float
    frequencies: Mapping[str, int]


class Snippet(Struct, frozen=True, kw_only=True):
    """A window of a text with the places (start, end; within `text`) where the query matched."""

    text: str
    matches: tuple[tuple[int, int], ...]


def index_text(text: str) -> str:
    """The tokens of a text, joined by spaces: what the FTS5 table stores."""
    return " ".join(_tokens(text))


def query_terms(query: str) -> tuple[Term, ...]:
    """What a query asks for: distinct terms, at most `MAX_QUERY_TERMS`, telling ones first.

    A query of nothing but stop words asks for those, at full weight.
    """
    found = dict.fromkeys(_tokens(query, for_query=True))
    telling = [Term(token, 1.0) for token in found if token not in _STOPS]
    weight = STOP_WEIGHT if telling else 1.0
    common = [Term(token, weight) for token in found if token in _STOPS]
    return tuple((telling + common)[:MAX_QUERY_TERMS])


def is_glue(word: str) -> bool:
    """Whether a word holds a sentence together rather than tells what it is about."""
    return stem(word.casefold()) in _STOPS


def quoted(term: str) -> str:
    """One term as MATCH syntax. Tokens hold no quotation mark, but this does not rely on it."""
    return '"' + term.replace('"', '""') + '"'


def match_expression(query: str) -> str | None:
    """The query as MATCH syntax: any of its terms, each quoted; None when it has none."""
    terms = query_terms(query)
    return " OR ".join(quoted(term.text) for term in terms) if terms else None


def inverse_frequency(frequency: int, items: int) -> float:
    """How much a term tells: the usual BM25 logarithm, positive for every frequency."""
    return math.log1p((max(items, frequency) - frequency + 0.5) / (frequency + 0.5))


def bm25(terms: Sequence[Term], documents: Iterable[str], statistics: Statistics) -> list[float]:
    """The BM25 score of each document, given as its `index_text`.

    A token right after itself counts once, which lets one substring count do the work.
    """
    weighed = [
        (
            f" {term.text} ",
            term.weight
            * inverse_frequency(statistics.frequencies.get(term.text, 0), statistics.items)
            * (K1 + 1.0),
        )
        for term in terms
    ]
    average = max(statistics.average_length, 1.0)
    scores: list[float] = []
    for document in documents:
        padded = f" {document} "
        base = K1 * (1.0 - B + B * (padded.count(" ") - 1) / average)
        score = 0.0
        for needle, gain in weighed:
            if needle in padded:
                times = padded.count(needle)
                score += gain * times / (times + base)
        scores.append(score)
    return scores


def best_possible(terms: Sequence[Term], statistics: Statistics) -> float:
    """What a document of average length with every term once would score: the yardstick."""
    return sum(
        term.weight * inverse_frequency(statistics.frequencies.get(term.text, 0), statistics.items)
        for term in terms
    )


class Marker:
    """Finds where texts match the terms of one query, and the window worth showing."""

    def __init__(self, terms: Iterable[Term]) -> None:
        self._weights = {term.text: term.weight for term in terms}
        # A stem keeps how its word begins: an ASCII word without any such beginning cannot match.
        begins = {term[:3] if len(term) > 3 else term[:2] for term in self._weights}  # buys: "bui"
        self._beginnings = re.compile("|".join(map(re.escape, sorted(begins))), re.IGNORECASE)

    def snippet(self, text: str, *, width: int = 240) -> Snippet:
        """The window of at most `width` signs with the most telling matches; text if it fits."""
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
        """Where the text matches a term, in order: (start, end, weight of the best term there)."""
        weights = self._weights
        found: list[tuple[int, int, float]] = []
        free = 0
        for start, stop in self._ascii_words(text) if text.isascii() else self._words(text):
            end = stop  # one sign of a script without spaces is shown with the next
            if end - start == 1 and _DENSE_SIGN.match(text, start):
                end = min(start + 2, len(text))
            weight = 0.0
            for token in _tokens_of_piece(text[start:end]):
                weight = max(weight, weights.get(token, 0.0))
            if weight > 0.0 and start >= free:
                found.append((start, end, weight))
                free = end
        return found

    def _words(self, text: str) -> Iterator[tuple[int, int]]:
        """Where the words are that may match."""
        for piece in _PIECE.finditer(text):
            word = piece.group()
            if not word.isascii() or self._beginnings.search(word):
                yield piece.span()

    def _ascii_words(self, text: str) -> Iterator[tuple[int, int]]:
        """The same, from one beginning that is there to the next: most words are none."""
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
    return tuple(_tokens(piece)) if len(piece) <= MAX_COMPOUND else ()


class _Cleaner(dict[int, str | int | None]):
    """A translation table that is made as characters come: words stay, the rest parts them."""

    def __missing__(self, code: int) -> str | int | None:
        sign = chr(code)
        category = unicodedata.category(sign)
        kept: str | int | None
        if category[0] in "LNM" or sign in CONNECTORS:
            kept = None if 0xFE00 <= code <= 0xFE0F else code
        elif category == "So":
            kept = f" {sign} "
        elif category == "Cf":
            kept = None  # joiners and marks of direction: inside words, never between them
        else:
            kept = " "
        self[code] = kept
        return kept


_CLEAN: Final = _Cleaner()


def _clean(text: str) -> str:
    if not text.isascii():
        text = _ACCENTS.sub("", unicodedata.normalize("NFKD", text))
        text = unicodedata.normalize("NFKC", text).replace("’", "'")
    if "'" in text:
        text = _POSSESSIVE.sub("", text).replace("'", " ")
    return text.translate(_CLEAN)


def _tokens(text: str, *, for_query: bool = False) -> list[str]:
    """Every token of a text, in order. A query asks for pairs where a text offers singles too."""
    tokens: list[str] = []
    for word in _clean(text).split():
        if word.isascii() or not _DENSE_RUN.search(word):
            tokens += _analysed(word)
            continue
        for run in _DENSE_SPLIT.split(word):
            if _DENSE_RUN.match(run):
                tokens += _pairs(run, for_query=for_query)
            elif run:
                tokens += _analysed(run)
    return tokens


def _pairs(run: str, *, for_query: bool) -> list[str]:
    pairs = [run[i : i + 2] for i in range(len(run) - 1)]
    return pairs if for_query and pairs else [*run, *pairs]


@lru_cache(maxsize=16384)
def _analysed(word: str) -> tuple[str, ...]:
    """The tokens of one cleaned word: itself or its stem; whole and parts when it is compound."""
    word = word.strip("_./-:@&\\").lstrip("+#")
    base = word.rstrip("+#")
    if not base:
        return ()
    if len(word) - len(base) > 2:
        word = base
    pieces = [piece for piece in _INNER.split(base) if piece]
    if len(word) <= MAX_COMPOUND:
        pieces = [part for piece in pieces for part in _humps(piece)]
    parts = [stem(part[:MAX_TOKEN].casefold()) for part in pieces]
    if len(parts) == 1 and word == base:
        return (parts[0],)
    if len(word) > MAX_TOKEN:
        return tuple(parts)
    whole = word.casefold()
    return (whole if not whole.isalpha() else stem(whole), *parts)


def _humps(piece: str) -> list[str]:
    return _CAMEL.findall(piece) if _HAS_CAMEL.search(piece) else [piece]

"""Tokenizer for texts and queries.

The same tokenizer serves both, so user text is never MATCH syntax and every string is a valid
query. FTS5 only stores the posting lists. It receives `index_text(text)`: tokens that are already
split, folded and stemmed, and that its `ascii` tokenizer does not split again (`FTS_TOKENIZE` must
be the table's `tokenize` option).

Tokens are:
- words in any script, with compatibility and case folding, without Latin, Greek and Cyrillic
  accents; English words are stemmed (Porter 1980; +4 points R@10 on conversations);
- compounds (`snake_case`, `docs/auth.md`, `v1.2.3`, `C++`, `user@host`, `camelCase`), whole and in
  parts;
- in scripts written without spaces and in Hangul, every character and every pair of neighbours;
- symbols such as emoji.

The time is linear in the length of the text: no pattern here backtracks over more than one word.
"""

import re
import unicodedata
from functools import lru_cache
from typing import Final, NamedTuple

from store.ranking.stemming import stem

# ASCII characters that may occur inside one token. The FTS5 table's tokenizer must know them.
CONNECTORS: Final = "_./-:@+#&\\"
FTS_TOKENIZE: Final = f"ascii tokenchars '{CONNECTORS}'"

MAX_QUERY_TERMS: Final = 64
MAX_TOKEN: Final = 64  # characters; longer words are indexed by their first 64
MAX_COMPOUND: Final = 128  # longer words are split at connectors only, not at capitals
STOP_WEIGHT: Final = 0.1

# Han, kana, Hangul, Thai, Lao, Myanmar, Khmer: words are not separated by spaces, or have
# particles attached.
_DENSE: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
DENSE_CHARACTER: Final = re.compile(f"[{_DENSE}]")
_DENSE_RUN: Final = re.compile(f"[{_DENSE}]+")
_DENSE_SPLIT: Final = re.compile(f"([{_DENSE}]+)")
_ACCENTS: Final = re.compile("[\u0300-\u036f]+")
_INNER: Final = re.compile(r"[_./\-:@+#&\\]+")
_POSSESSIVE: Final = re.compile(r"'s\b")
_CAMEL: Final = re.compile(r"[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z]+[0-9]*|[0-9]+|[^A-Za-z0-9]+")
_HAS_CAMEL: Final = re.compile(r"[a-z][A-Z]|[A-Z][A-Z][a-z]")
PIECE: Final = re.compile(f"[{_DENSE}]|[^\\s{_DENSE}]+")

_STOP_WORDS: Final = """
    a about after all also am an and any are as at be because been before being between both but
    by can could d did do does doing don down during each few for from further had has have having
    he her here hers him his how i if in into is it its just ll m me more most my no nor not now of
    off on once only or other our out over own re s same she should so some such t than that the
    their them then there these they this those through to too under until up ve very was we were
    what when where which while who whom why will with would you your
"""
# Tokens are stems, so these are stems too.
_STOPS: Final = frozenset(stem(word) for word in _STOP_WORDS.split())


class Term(NamedTuple):
    """A token of a query and its weight. Stop words have a small weight above zero."""

    text: str
    weight: float


def index_text(text: str) -> str:
    """The tokens of a text, joined by spaces, as the FTS5 table stores them."""
    return " ".join(tokens(text))


def query_terms(query: str) -> tuple[Term, ...]:
    """The distinct terms of a query, at most `MAX_QUERY_TERMS`, stop words last.

    In a query that consists of stop words only, they have full weight.
    """
    found = dict.fromkeys(tokens(query, for_query=True))
    content = [Term(token, 1.0) for token in found if token not in _STOPS]
    weight = STOP_WEIGHT if content else 1.0
    common = [Term(token, weight) for token in found if token in _STOPS]
    return tuple((content + common)[:MAX_QUERY_TERMS])


def is_stop_word(word: str) -> bool:
    """Whether a word is too common to identify a subject."""
    return stem(word.casefold()) in _STOPS


def quoted(term: str) -> str:
    """A term in MATCH syntax. Quotation marks are escaped, although no token contains one."""
    return '"' + term.replace('"', '""') + '"'


def match_expression(query: str) -> str | None:
    """The query in MATCH syntax: any of its terms, each quoted. None if it has no terms."""
    terms = query_terms(query)
    return " OR ".join(quoted(term.text) for term in terms) if terms else None


def tokens(text: str, *, for_query: bool = False) -> list[str]:
    """The tokens of a text, in order.

    Texts of dense scripts yield single characters and pairs; queries yield pairs only.
    """
    found: list[str] = []
    for word in _clean(text).split():
        if word.isascii() or not _DENSE_RUN.search(word):
            found += _analysed(word)
            continue
        for run in _DENSE_SPLIT.split(word):
            if _DENSE_RUN.match(run):
                found += _pairs(run, for_query=for_query)
            elif run:
                found += _analysed(run)
    return found


class _Cleaner(dict[int, str | int | None]):
    """A translation table, filled on demand: only characters of words are kept."""

    def __missing__(self, code: int) -> str | int | None:
        character = chr(code)
        category = unicodedata.category(character)
        kept: str | int | None
        if category[0] in "LNM" or character in CONNECTORS:
            kept = None if 0xFE00 <= code <= 0xFE0F else code
        elif category == "So":
            kept = f" {character} "
        elif category == "Cf":
            kept = None  # joiners and direction marks occur inside words
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


def _pairs(run: str, *, for_query: bool) -> list[str]:
    pairs = [run[i : i + 2] for i in range(len(run) - 1)]
    return pairs if for_query and pairs else [*run, *pairs]


@lru_cache(maxsize=16384)
def _analysed(word: str) -> tuple[str, ...]:
    """The tokens of one cleaned word: its stem, or for a compound the whole word and its parts."""
    word = word.strip("_./-:@&\\").lstrip("+#")
    base = word.rstrip("+#")
    if not base:
        return ()
    if len(word) - len(base) > 2:
        word = base
    pieces = [piece for piece in _INNER.split(base) if piece]
    if len(word) <= MAX_COMPOUND:
        pieces = [part for piece in pieces for part in _camel_case_parts(piece)]
    parts = [stem(part[:MAX_TOKEN].casefold()) for part in pieces]
    if len(parts) == 1 and word == base:
        return (parts[0],)
    if len(word) > MAX_TOKEN:
        return tuple(parts)
    whole = word.casefold()
    return (whole if not whole.isalpha() else stem(whole), *parts)


def _camel_case_parts(piece: str) -> list[str]:
    return _CAMEL.findall(piece) if _HAS_CAMEL.search(piece) else [piece]

"""The words of a question that are worth matching exactly, for callers that named none.

Two to five, as seed 002 has it. What is quoted, paths, identifiers, capitals, numbers and tags come
first; then names and the longer words, which are the rarer ones. Words that only hold the question
together, or only say that it is one, are left out as long as there are others.

They tell the caller what to be precise about next time. What is searched is the whole question,
whose glue the store weighs little: with these terms alone the evidence of 495 LoCoMo questions was
among the first ten in 78.9 % instead of 81.2 %.
"""

import re
from typing import Final

from store.ranking.tokenizer import is_stop_word

LIMIT: Final = 5
#: For what is not a question: a card, an event.
MOST: Final = 10

_SHAPES: Final = (
    re.compile(r"\"([^\"\n]{2,80})\"|'([^'\n]{2,80})'(?!\w)|`([^`\n]{2,80})`|“([^”\n]{2,80})”"),
    re.compile(r"(?<![\w/])[\w.~-]*(?:/[\w.-]+)+|\b[\w-]+\.[A-Za-z][A-Za-z0-9]{0,5}\b"),  # paths
    re.compile(r"\b[A-Z][A-Z0-9]{1,}(?:[_-][A-Z0-9]+)*\b"),  # JWT, HTTP2, MAX_SIZE
    re.compile(r"\b(?:[a-z]+[A-Z]\w*|[A-Z][a-z0-9]+[A-Z]\w*)\b"),  # camelCase, PascalCase
    re.compile(r"\b\w+(?:_\w+)+\b|\b[A-Za-z]\w*(?:-\w+)+\b"),  # snake_case, kebab-case
    re.compile(
        r"(?<!\w)[#@][\w-]+|\bv?\d+(?:[.:-]\d+)*\b|\b[A-Za-z]+\d\w*\b"
    ),  # tags, v1.2, OAuth2
)
_WORD: Final = re.compile(r"[^\W\d_]{3,}")


#: How one asks, whatever about.
_ASKING: Final = frozenset(
    re.findall(
        r"\w+",
        "say says said tell tells told know known explain describe remember remind show find give",
    )
)


def keywords_of(question: str, limit: int = LIMIT) -> str:
    """A few terms of a question, the most exact first; the question when it has none."""
    found: dict[str, str] = {}
    for shape in _SHAPES:
        for match in shape.finditer(question):
            term = next((group for group in match.groups() if group), match[0])
            found.setdefault(term.casefold(), term)
    words = sorted(_WORD.findall(question), key=lambda word: (word[0].islower(), -len(word)))
    telling = [word for word in words if not _is_idle(word)]
    for word in telling or ([] if found else words):
        if not any(word.casefold() in known for known in found):
            found[word.casefold()] = word
    return " ".join(list(found.values())[:limit]) or question


def _is_idle(word: str) -> bool:
    return is_stop_word(word) or word.casefold() in _ASKING

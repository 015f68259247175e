"""Keywords of a question, for callers that named none.

A question has two to five keywords. Quoted text, paths, identifiers, acronyms, numbers and tags
come first; then names and longer words, which tend to be rarer. Function words and words that only
mark a question are left out unless nothing else remains.

The keywords show the caller how to be more precise next time. The search itself uses the whole
question, because the store gives function words little weight: with these keywords alone the
evidence of 495 LoCoMo questions was among the first ten results in 78.9 % instead of 81.2 %.

Only the first `READ_CHARACTERS` of a text are read, and every repetition in a pattern is bounded,
so the cost does not depend on the length of the text.
"""

import re
from typing import Final

from store.ranking.tokenizer import is_stop_word

LIMIT: Final = 5
#: The limit for texts that are not questions, such as a card or an event.
TEXT_LIMIT: Final = 10
READ_CHARACTERS: Final = 4_000

_SHAPES: Final = (
    re.compile(r"\"([^\"\n]{2,80})\"|'([^'\n]{2,80})'(?!\w)|`([^`\n]{2,80})`|“([^”\n]{2,80})”"),
    # Paths and file names.
    re.compile(
        r"(?<![\w/])[\w.~-]{0,80}+(?:/[\w.-]{1,80}+){1,20}"
        r"|\b[\w-]{1,80}+\.[A-Za-z][A-Za-z0-9]{0,5}\b"
    ),
    re.compile(r"\b[A-Z][A-Z0-9]{1,80}(?:[_-][A-Z0-9]{1,80}){0,20}\b"),  # JWT, HTTP2, MAX_SIZE
    re.compile(r"\b(?:[a-z]{1,80}[A-Z]\w{0,80}|[A-Z][a-z0-9]{1,80}[A-Z]\w{0,80})\b"),  # camelCase
    # snake_case and kebab-case.
    re.compile(r"\b\w{1,80}(?:_\w{1,80})\b|\b[A-Za-z]\w{0,80}(?:-\w{1,80}){1,20}\b"),
    # Tags, version numbers, names with digits: #auth, v1.2, OAuth2.
    re.compile(
        r"(?<!\w)[#@][\w-]{1,80}|\bv?\d{1,80}(?:[.:-]\d{1,80}){0,20}\b|\b[A-Za-z]{1,80}\d\w{0,80}\b"
    ),
)
_WORD: Final = re.compile(r"[^\W\d_]{3,}")

#: Verbs of asking; they occur in questions about anything.
_QUESTION_WORDS: Final = frozenset(
    re.findall(
        r"\w+",
        "say says said tell tells told know known explain describe remember remind show find give",
    )
)


def keywords_of(question: str, limit: int = LIMIT) -> str:
    """Up to `limit` terms of a question, the most exact first; the question if it has none."""
    read = question[:READ_CHARACTERS]
    found: dict[str, str] = {}
    for shape in _SHAPES:
        for match in shape.finditer(read):
            term = next((group for group in match.groups() if group), match[0])
            found.setdefault(term.casefold(), term)
            if len(found) == limit:
                return " ".join(found.values())
    words = sorted(_WORD.findall(read), key=lambda word: (word[0].islower(), -len(word)))
    rare = [word for word in words if not _is_common(word)]
    for word in rare or ([] if found else words):
        if len(found) == limit:
            break
        if not any(word.casefold() in known for known in found):
            found[word.casefold()] = word
    return " ".join(found.values()) or question


def _is_common(word: str) -> bool:
    return is_stop_word(word) or word.casefold() in _QUESTION_WORDS

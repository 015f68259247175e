"""The words of a question that are worth matching exactly, for callers that named none.

Structure tells, not a list of words: what is quoted, paths, identifiers, capitals, numbers and
tags come first; then names and the longer words.
"""

import re
from typing import Final

LIMIT: Final = 10

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


def keywords_of(question: str) -> str:
    """At most ten terms of a question, the most exact first; the question when it has none."""
    found: dict[str, str] = {}
    for shape in _SHAPES:
        for match in shape.finditer(question):
            term = next((group for group in match.groups() if group), match[0])
            found.setdefault(term.casefold(), term)
    # Then names, then the longer words: glue is short, and the store gives it little weight.
    words = sorted(_WORD.findall(question), key=lambda word: (word[0].islower(), -len(word)))
    for word in words:
        if not any(word.casefold() in known for known in found):
            found[word.casefold()] = word
    return " ".join(list(found.values())[:LIMIT]) or question

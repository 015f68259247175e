"""The words of a question that are worth matching exactly, for callers that named none.

Structure tells, not a list of words: what is quoted, paths, identifiers, capitals, numbers and
tags come first; then the longer words, since short ones are mostly glue.
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
_WORD: Final = re.compile(r"[^\W\d_]{4,}")


def keywords_of(question: str) -> str:
    """At most ten terms of a question, the most exact first; the question when it has none."""
    found: dict[str, str] = {}
    for shape in _SHAPES:
        for match in shape.finditer(question):
            term = next((group for group in match.groups() if group), match[0])
            found.setdefault(term.casefold(), term)
    for match in _WORD.finditer(question):
        if not any(match[0].casefold() in known for known in found):
            found[match[0].casefold()] = match[0]
    return " ".join(list(found.values())[:LIMIT]) or question

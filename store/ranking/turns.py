"""Turns of a conversation: the speaker's label, the text without it, and what the text mentions.

A turn may begin with a date and a label: `[8 May 2023] Ana: I moved to Lisbon`. The embedding model
sees the text without them, because names and dates dominate a vector: two turns of one speaker are
then closer to each other than two turns about one subject. For the same reason the names of
speakers are left out of a question before it is embedded.

A label without a date counts only inside a session, and only if it looks like a name. "TODO: …"
and "Deployment: …" are no speakers.
"""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from store.ranking.tokenizer import is_stop_word

HAS_TIME: Final = 1
HAS_NUMBER: Final = 2

# Every repetition is bounded, so the time does not depend on the length of the text.
_LABEL: Final = re.compile(
    r"(?P<date>\[[^\]\n]{1,60}\]\s{0,4})?(?P<name>[^\W\d_][\w .'-]{0,40}?):\s"
)
_NAME: Final = re.compile(r"[A-Z\u00c0-\u00de][\w'-]*(?: [A-Z\u00c0-\u00de][\w.'-]*){0,2}")
_ROLES: Final = frozenset(("user", "human", "assistant", "ai", "agent", "system", "tool", "bot"))
_HEADINGS: Final = frozenset(
    (
        *("action", "blocked", "blocker", "bug", "cause", "caution", "context", "danger"),
        *("deadline", "decided", "decision", "deploy", "deployment", "done", "error", "example"),
        *("experiment", "fact", "feature", "fix", "fixme", "goal", "hint", "http", "https"),
        *("idea", "important", "incident", "info", "issue", "lesson", "log", "mitigation"),
        *("next", "note", "notes", "outcome", "plan", "preference", "problem", "question"),
        *("reason", "remember", "reminder", "result", "risk", "root", "rule", "solution"),
        *("status", "step", "summary", "task", "tip", "title", "todo", "update", "warning"),
        *("wip", "workaround", "aufgabe", "entscheidung", "hinweis", "wichtig"),
    )
)
_TIME: Final = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|last|next|ago|since|week(?:end)?s?|months?|years?"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|may|june|july"
    r"|august|september|october|november|december|recently|lately|soon|morning|evening|night"
    r"|summer|winter|spring|fall|days?|20\d\d)\b",
    re.I,
)
_NUMBER: Final = re.compile(
    r"\b(?:\d+|one|two|three|four|five|six|seven|eight|nine|ten|dozen|first|second|third|couple"
    r"|several|many)\b",
    re.I,
)
_WHEN: Final = re.compile(r"\s{0,40}(?:when|how long|what (?:date|day|month|year|time))\b", re.I)
_HOW_MANY: Final = re.compile(r"\bhow (?:many|much|often|long|old)\b", re.I)
_WORD: Final = re.compile(r"[\w'’-]+")


class Turn(NamedTuple):
    """A text without its label, and the name in the label; "" if it has none."""

    speaker: str
    body: str


def turn_of(text: str, *, in_session: bool) -> Turn:
    """Separate the label of a turn from its text."""
    found = _LABEL.match(text)
    if found is None:
        return Turn("", text)
    name = found["name"].strip()
    is_label = found["date"] is not None or (in_session and _is_name(name))
    if not is_label or name.casefold() in _HEADINGS or not text[found.end() :].strip():
        return Turn("", text)
    return Turn(name.casefold(), text[found.end() :])


def _is_name(name: str) -> bool:
    folded = name.casefold()
    if folded in _ROLES:
        return True
    return _NAME.fullmatch(name) is not None and not _HEADINGS & set(folded.split())


def is_role(speaker: str | None) -> bool:
    """Whether a speaker is named by a role, such as "user", and not by a name."""
    return speaker in _ROLES


def traits_of(body: str) -> int:
    """What a turn mentions: a combination of `HAS_TIME` and `HAS_NUMBER`."""
    return HAS_TIME * bool(_TIME.search(body)) + HAS_NUMBER * bool(_NUMBER.search(body))


def asked_traits(question: str) -> int:
    """The traits that an answer to the question should have."""
    return HAS_TIME * bool(_WHEN.match(question)) + HAS_NUMBER * bool(_HOW_MANY.search(question))


def names_of(speakers: Iterable[str]) -> frozenset[str]:
    """The words of the speakers' names that can be recognised in a question."""
    return frozenset(
        word
        for speaker in speakers
        if speaker not in _ROLES
        for word in speaker.split()
        if len(word) > 1 and not is_stop_word(word)
    )


def words_of_question(question: str) -> frozenset[str]:
    """The words of a question as names are compared with them."""
    return frozenset(map(_plain, _WORD.findall(question)))


def without_names(question: str, names: frozenset[str]) -> str:
    """The question without these names; unchanged if nothing but stop words would be left."""
    if not names:
        return question
    kept = [
        word
        for word in question.split()
        if not any(_plain(part) in names for part in _WORD.findall(word))
    ]
    has_content = any(
        not is_stop_word(part) for word in kept for part in _WORD.findall(word) if part
    )
    return " ".join(kept) if has_content else question


def _plain(word: str) -> str:
    return word.casefold().replace("’", "'").removesuffix("'s").strip("'-")

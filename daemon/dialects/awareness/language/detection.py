"""Reading an event's actor, type and status off its text, where the caller did not say.

Whole words only: "abandoned" is not "done", "bugle" is no bug. What is denied ("not fixed yet",
"no need to") does not count. Nothing is ever closed because of these guesses: they label the
event they were read from.
"""

import re
from typing import Final

ACTORS: Final = ("user", "assistant", "tool", "system")

_SPEAKER: Final = re.compile(
    r"\s*(?:[*_#>-]+\s*)?(user|human|assistant|ai|claude|agent|model|bot|tool|function|system"
    r"|developer)[*_]*\s*:[*_]*",
    re.IGNORECASE,
)
_ACTOR_OF: Final = {
    "human": "user",
    "ai": "assistant",
    "claude": "assistant",
    "agent": "assistant",
    "model": "assistant",
    "bot": "assistant",
    "function": "tool",
    "developer": "system",
}

# A label that opens the text says it outright; else the first of the words that is found.
_LABELS: Final[tuple[tuple[str, re.Pattern[str]], ...]] = (
    ("decision", re.compile(r"\s*decisions?\s*:", re.I)),
    ("planning", re.compile(r"\s*(?:todo|to-do|next(?: steps?)?|plan|remaining)\s*:", re.I)),
    ("issue", re.compile(r"\s*(?:bug|issue|error|problem|incident)(?: \w+)?\s*:", re.I)),
)
_WORDS: Final[tuple[tuple[str, re.Pattern[str]], ...]] = (
    ("decision", re.compile(r"\bdecided (?:to|on|against)\b", re.I)),
    (
        "file_diff",
        re.compile(
            r"\b(?:diff|patch(?:ed)?|refactor(?:ed|ing)?|updated)\b|\bfiles?(?: changed)?\s*:"
            r"|^(?:\+\+\+|---|@@) ",
            re.I | re.M,
        ),
    ),
    (
        "tool_call",
        re.compile(
            r"\b(?:tool|command|terminal|exec(?:uted)?|ran|pytest|npm|cargo|shell|bash)\b", re.I
        ),
    ),
    (
        "planning",
        re.compile(
            r"\b(?:todo|remaining|blockers?|follow-?ups?|roadmap)\b|\bnext\s*:"
            r"|\b(?:we|i) plan to\b",
            re.I,
        ),
    ),
    (
        "issue",
        re.compile(
            r"\b(?:errors?|exceptions?|traceback|failed|fails|failing|failures?|bugs?"
            r"|crash(?:ed|es)?)\b",
            re.I,
        ),
    ),
)

_OPEN: Final = re.compile(
    r"\bBLOCKED\b|\bTODO\b|\bFIXME\b|(?i:\bto-?do\s*:|^\s*blocked\b|\bblocked\s+(?:by|on|until)\b"
    r"|\bneeds? to\b)"
)
_NOT_OPEN: Final = re.compile(
    r"\b(?:no|not|never|no longer|don't|doesn't|didn't|do not|does not|did not)\s+"
    r"(?:(?:any|open|more|remaining)\s+)?(?:needs? to|blocked|todos?)\b",
    re.I,
)
_ONGOING: Final = re.compile(
    r"\bin[ -]progress\b|\bwip\b|\bworking on\b|\bwork continues\b|\bongoing\b|\bunderway\b"
    r"|\bhalf(?:way)?[ -]done\b|\bcontinuing\b|\bstarted (?:to|on|\w+ing)\b"
    r"|\bstill (?:working|running|debugging|implementing|investigating)\b"
    r"|\bnot (?:yet )?(?:done|finished|complete)\b",
    re.I,
)
_DONE_WORDS: Final = (
    r"(?:done|fixed|fixes|completed?|finished|resolved|solved|implemented|shipped|merged|deployed"
    r"|released|closed|landed|migrated|switched|added|removed|renamed|replaced|upgraded|unblocked)"
)
_DONE: Final = re.compile(
    rf"\b{_DONE_WORDS}\b|\b(?:tests?|checks?|ci|build) (?:now )?pass(?:es|ed)?\b", re.I
)
_NOT_DONE: Final = re.compile(
    r"\b(?:not|never|nothing|isn't|wasn't|aren't|weren't|hasn't|haven't|won't|can't be|cannot be"
    r"|to be|must be|should be|could be|will be|if|once|until)\s+(?:\w+\s+){0,2}?"
    rf"{_DONE_WORDS}\b",
    re.I,
)


def actor_of(text: str) -> str:
    """Who is speaking: what the text opens with says it, else the assistant that recorded it."""
    named = speaker_of(text)
    return "assistant" if named is None else named[0]


def speaker_of(line: str) -> tuple[str, str] | None:
    """The actor and the rest of a line such as "User: hello"; None when nobody is named."""
    found = _SPEAKER.match(line)
    if found is None:
        return None
    name = found[1].lower()
    return _ACTOR_OF.get(name, name), line[found.end() :].strip()


def event_type_of(text: str) -> str:
    """decision, file_diff, tool_call, planning, issue or message."""
    for name, label in _LABELS:
        if label.match(text):
            return name
    for name, words in _WORDS:
        if words.search(text):
            return name
    return "message"


def status_of(text: str) -> str:
    """open, in_progress, resolved or noted: the document's rules, asked in that order."""
    if _OPEN.search(_NOT_OPEN.sub(" ", text)):
        return "open"
    if _ONGOING.search(text):
        return "in_progress"
    if _DONE.search(_NOT_DONE.sub(" ", text)):
        return "resolved"
    return "noted"

"""Actor, event type and status of an event, read off its text where the caller did not give them.

Patterns match whole words: "abandoned" does not contain "done". Negated phrases ("not fixed yet",
"no need to") do not count. The results only label the event they were read from; no task is closed
because of them.

Of a text longer than twice `EDGE_CHARACTERS` only the beginning and the end are read, so that a
very long event costs no more than a few milliseconds.
"""

import re
from typing import Final

ACTORS: Final = ("user", "assistant", "tool", "system")
#: Length of the beginning, and of the end, of a long text that are read for labels.
EDGE_CHARACTERS: Final = 8_192
#: White space before a label; more than this is not a label's indentation.
_INDENT: Final = r"\s{0,200}+"

_SPEAKER: Final = re.compile(
    _INDENT + r"(?:[*_#>-]{1,40}+\s{0,40}+)?(user|human|assistant|ai|claude|agent|model|bot"
    r"|tool|function|system|developer)[*_]{0,40}+\s{0,40}+:[*_]{0,40}+",
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

# A label at the beginning of the text decides; otherwise the first entry whose words occur in it.
_LABELS: Final[tuple[tuple[str, re.Pattern[str]], ...]] = (
    ("decision", re.compile(_INDENT + r"decisions?\s{0,40}+:", re.I)),
    (
        "planning",
        re.compile(_INDENT + r"(?:todo|to-do|next(?: steps?)?|plan|remaining)\s{0,40}+:", re.I),
    ),
    (
        "issue",
        re.compile(
            _INDENT + r"(?:bug|issue|error|problem|incident)(?: \w{1,80}+)?\s{0,40}+:", re.I
        ),
    ),
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
    r"\bBLOCKED\b|\bTODO\b|\bFIXME\b|(?i:\bto-?do\s*:|^\s{0,40}[-*]?\s{0,4}todo\b"
    r"|^\s*blocked\b|\bblocked\s+(?:by|on|until)\b|\bneeds? to\b|\bmust still\b|\bstill must\b"
    r"|\bstill (?:have|has) to\b|\bwe should\b|\bremains? to be\b"
    # German
    r"|\bblockiert\b|\bzu erledigen\b|\bnoch (?:offen|zu tun|nicht erledigt)\b"
    r"|\b(?:muss|m\u00fcssen|musst|sollten?) (?:\w{1,40} ){0,3}noch\b"
    r"|\bwir (?:m\u00fcssen|sollten)\b)"
    # Japanese: not yet handled, must be done, unsolved, to be done
    r"|\u672a\u5bfe\u5fdc|\u672a\u5b8c\u4e86|\u672a\u89e3\u6c7a|\u8981\u5bfe\u5fdc"
    r"|\u5fc5\u8981\u304c\u3042\u308b|\u3057\u306a\u3051\u308c\u3070\u306a\u3089\u306a\u3044"
    r"|\u3084\u308b\u3053\u3068|\u30d6\u30ed\u30c3\u30af\u3055\u308c\u3066"
)
_NOT_OPEN: Final = re.compile(
    r"\b(?:no|not|never|no longer|don't|doesn't|didn't|do not|does not|did not)\s+"
    r"(?:(?:any|open|more|remaining)\s+)?(?:needs? to|blocked|todos?)\b"
    # A thing with that name: "the TODO app", "our todo list".
    r"|\btodos?[ -](?:app|apps|list|lists|application|page|view|component|comments?|items?)\b"
    r"|\bnicht (?:mehr )?blockiert\b",
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
# German and Japanese words for done.
_DONE_ELSEWHERE: Final = (
    r"\b(?:erledigt|behoben|abgeschlossen|fertiggestellt|gel\u00f6st)\b"
    r"|\u5b8c\u4e86|\u89e3\u6c7a\u6e08|\u4fee\u6b63\u6e08|\u5bfe\u5fdc\u6e08"
)
_DONE: Final = re.compile(
    rf"\b{_DONE_WORDS}\b|{_DONE_ELSEWHERE}|\b(?:tests?|checks?|ci|build) (?:now )?pass(?:es|ed)?\b",
    re.I,
)
_NOT_DONE: Final = re.compile(
    r"\b(?:not|never|nothing|isn't|wasn't|aren't|weren't|hasn't|haven't|won't|can't be|cannot be"
    r"|to be|must be|should be|could be|will be|if|once|until)\s+(?:\w+\s+){0,2}?"
    rf"{_DONE_WORDS}\b",
    re.I,
)


_PREFERENCE: Final = re.compile(
    r"\bprefers?\b|\bpreferences?\s{0,4}:|\b(?:my|user's|whose) favou?rite\b"
    r"|\b(?:please|from now on),? (?:\w{1,40} ){0,3}(?:always|never|don't|do not)\b"
    r"|\b(?:the user|user|they|he|she|i) (?:always |never |really |also )?(?:wants?|likes?|loves?"
    r"|hates?|dislikes?|insists?)\b"
    r"|^\s{0,40}(?:always|never) \w"
    # German
    r"|\bbevorzug(?:e|t|en)\b|\bich (?:mag|m\u00f6chte)\b"
    # Japanese: prefer, like
    r"|\u597d\u3080|\u304c\u597d\u304d",
    re.I | re.M,
)
_NO_PREFERENCE: Final = re.compile(
    r"\b(?:no|any|without) preferences?\b|\bdo(?:es)? not prefer\b", re.I
)


def actor_of(text: str) -> str:
    """The speaker named at the beginning of the text, else the assistant that recorded it."""
    named = speaker_of(text)
    return "assistant" if named is None else named[0]


def speaker_of(line: str) -> tuple[str, str] | None:
    """The actor and the rest of a line such as "User: hello"; None if no speaker is named."""
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
    read = _edges(text)
    for name, words in _WORDS:
        if words.search(read):
            return name
    return "message"


def status_of(text: str) -> str:
    """open, in_progress, resolved or noted, tested in the order of the Awareness document."""
    read = _edges(text)
    if _OPEN.search(_NOT_OPEN.sub(" ", read)):
        return "open"
    if _ONGOING.search(read):
        return "in_progress"
    if _DONE.search(_NOT_DONE.sub(" ", read)):
        return "resolved"
    return "noted"


def is_preference(text: str) -> bool:
    """Whether a text states a preference of a person."""
    read = _edges(text)
    return _PREFERENCE.search(_NO_PREFERENCE.sub(" ", read)) is not None


def _edges(text: str) -> str:
    """The text, or the beginning and the end of a long one."""
    if len(text) <= 2 * EDGE_CHARACTERS:
        return text
    return f"{text[:EDGE_CHARACTERS]}\n{text[-EDGE_CHARACTERS:]}"

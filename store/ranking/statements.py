"""The relation of two statements: the same one, an updated one, or two different ones.

The words decide, and the cosine of the two texts confirms. Words alone miss a paraphrase. The
cosine alone cannot tell "30 minutes" from "8 hours", or "the importer" from "the exporter".

An **update** has the same subject (the first two words, apart from articles and the like) and one
of these differences:

- values only: numbers, durations, days, negations ("expires after 30 minutes" / "8 hours");
- the new text says that something changed ("now", "instead", "no longer");
- one name or word was exchanged behind the subject ("goes through SendGrid" / "Postmark"), or the
  end of a longer sentence ("are written in the imperative mood" / "… in the past tense").

A **repetition** has the same words in the same order, or it is a paraphrase: a high cosine, the
same values and names, no opposites, and an order of words so different that it is not the same
sentence with another subject ("the importer retries" / "the exporter retries").

If in doubt, the statements are different: both are then kept.
"""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Final, Literal

from msgspec import Struct

from store.ranking.similarity import FILLERS
from store.ranking.stemming import stem

Relation = Literal["same", "update"]

READ_CHARACTERS: Final = 2_000
SUBJECT_WORDS: Final = 2

_CLOSE_VALUES: Final = 0.65
_CLOSE_CHANGED: Final = 0.5
_CLOSE_EXCHANGED: Final = 0.75
_CLOSE_NAMES: Final = 0.5
_CLOSE_PARAPHRASE: Final = 0.82
_COMMON: Final = 0.5  # of the shorter statement
_SAME_ORDER: Final = 0.6
_LONG_BEGINNING: Final = 4
_SHORT_END: Final = 2


_WORD: Final = re.compile(r"\w(?:[\w.+#/@-]*\w)?")


def _stems(words: str) -> frozenset[str]:
    return frozenset(stem(form) for word in words.split() for form in (word, f"{word}s"))


def _words(text: str) -> tuple[str, ...]:
    """The stems of a text in order, one for each word, without articles and the like."""
    found = tuple(stem(word) for word in _WORD.findall(text[:READ_CHARACTERS].casefold()))
    return tuple(word for word in found if word not in FILLERS) or found


_VALUES: Final = _stems(
    "one two three four five six seven eight nine ten eleven twelve twenty thirty sixty hundred"
    " thousand million once twice half none zero first second third"
    " monday tuesday wednesday thursday friday saturday sunday weekday weekend"
    " january february march april may june july august september october november december"
    " minute hour day week month quarter year millisecond ms kb mb gb tb percent am pm"
    " times daily weekly monthly yearly hourly nightly"
)
_NEGATIONS: Final = _stems("not never no without cannot")
_CHANGES: Final = _stems("now instead longer anymore since changed switched moved only")
_SAYS_CHANGED: Final = re.compile(
    r"\b(?:now|instead|no longer|not any ?more|anymore|from now on|switched|moved (?:from|to)"
    r"|changed (?:from|to))\b",
    re.I,
)
#: Verbs that are true of several objects at once: "reads CSV" does not end "reads JSON".
_OF_SEVERAL: Final = _stems(
    "support include contain hold have like love know speak read accept import export write own"
    " maintain depend need require return expose offer handle mention see hate want"
)
#: Words after which the next one belongs to the subject: "the limit of reads".
_QUALIFIERS: Final = frozenset(("of", "for", "from", "by", "per", "in", "on", "under"))
_OPPOSITES: Final = tuple(
    (_stems(one), _stems(other))
    for one, other in (
        ("enable enabled", "disable disabled"),
        ("allow allowed", "forbid forbidden deny denied prohibit prohibited"),
        ("always", "never"),
        ("before", "after"),
        ("increase increased", "decrease decreased reduce reduced"),
        ("add added", "remove removed"),
        ("on", "off"),
        ("required mandatory", "optional"),
        ("public", "private"),
        ("start started", "stop stopped"),
        ("accept accepted", "reject rejected"),
        ("open opened", "close closed"),
        ("more above over", "less below under"),
    )
)
_TOKEN: Final = re.compile(r"[\w-]+")
_PLAIN_WORD: Final = re.compile(r"[\w'-]+")


class Statement(Struct, frozen=True, kw_only=True):
    """The title of a card and the text that it states."""

    title: str
    text: str


def relation(old: Statement, new: Statement, cosine: float | None) -> Relation | None:
    """How a new statement relates to an old one; `cosine` is None if it is not known."""
    before, after = _words(old.text), _words(new.text)
    if not before or not after:
        return None
    if before == after:
        return "same"
    if cosine is None or _are_parallel(old.title, new.title):
        return None
    if _is_update(old.text, new.text, before, after, cosine):
        return "update"
    return "same" if _is_paraphrase(old.text, new.text, before, after, cosine) else None


def are_near(old: Statement, new: Statement) -> bool:
    """Whether the cosine of two statements could decide about their relation."""
    before, after = _words(old.text), _words(new.text)
    return before != after and len(set(before) & set(after)) >= SUBJECT_WORDS


def _are_parallel(old_title: str, new_title: str) -> bool:
    """Whether the titles name two subjects of one kind: "EU region" / "US region".

    The word that differs is the first one or follows "of". A different last word names the same
    thing in another way: "session lifetime" / "session timeout".
    """
    before, after = _words(old_title), _words(new_title)
    if len(before) != len(after) or len(before) < 2:
        return False
    differing = [at for at, word in enumerate(before) if word != after[at]]
    if len(differing) != 1:
        return False
    (at,) = differing
    return at == 0 or _follows_qualifier(old_title, before[at])


def _is_update(
    old_text: str,
    new_text: str,
    before: tuple[str, ...],
    after: tuple[str, ...],
    cosine: float,
) -> bool:
    rest = tuple(word for word in after if word not in _CHANGES)
    plain = tuple(word for word in before if word not in _CHANGES)
    if _subject(plain) != _subject(rest) or len(plain) <= SUBJECT_WORDS:
        return False
    gone = [word for word in plain if word not in rest]
    come = [word for word in rest if word not in plain]
    common = set(plain) & set(rest)
    if len(common) < max(SUBJECT_WORDS, _COMMON * min(len(set(plain)), len(set(rest)))):
        return False
    if cosine >= _CLOSE_VALUES and (gone or come) and all(map(_is_value, (*gone, *come))):
        return True
    if cosine >= _CLOSE_CHANGED and _SAYS_CHANGED.search(new_text[:READ_CHARACTERS]):
        return True
    return _is_exchange(old_text, new_text, plain, rest, cosine)


def _subject(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word for word in words if word not in _NEGATIONS)[:SUBJECT_WORDS]


def _is_exchange(
    old_text: str,
    new_text: str,
    before: tuple[str, ...],
    after: tuple[str, ...],
    cosine: float,
) -> bool:
    """Whether one word behind the subject, or a short end, was exchanged for another one."""
    if _OF_SEVERAL & {*before, *after}:
        return False
    same = next(
        (at for at, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), len(before)
    )
    end = max(len(before), len(after)) - same
    if same >= _LONG_BEGINNING and 1 < end <= _SHORT_END and cosine >= _CLOSE_VALUES:
        return True
    if len(before) != len(after):
        return False
    differing = [pair for pair in zip(before, after, strict=True) if pair[0] != pair[1]]
    if len(differing) != 1:
        return False
    one, other = differing[0]
    if _follows_qualifier(old_text, one) and before[-1] != one:
        return False
    are_names = one in _names(old_text) and other in _names(new_text)
    if are_names:
        return len(before) > SUBJECT_WORDS + 1 and cosine >= _CLOSE_NAMES
    return cosine >= _CLOSE_EXCHANGED


def _is_paraphrase(
    old_text: str,
    new_text: str,
    before: tuple[str, ...],
    after: tuple[str, ...],
    cosine: float,
) -> bool:
    if cosine < _CLOSE_PARAPHRASE or _SAYS_CHANGED.search(new_text[:READ_CHARACTERS]):
        return False
    ours, theirs = frozenset(after), frozenset(before)
    if any(
        (one & ours and other & theirs) or (other & ours and one & theirs)
        for one, other in _OPPOSITES
    ):
        return False
    if set(filter(_is_value, ours)) != set(filter(_is_value, theirs)):
        return False
    if not _names(new_text) <= _names(old_text) | theirs:
        return False  # a name that the old statement does not have
    return SequenceMatcher(None, before, after, autojunk=False).ratio() < _SAME_ORDER


def _is_value(word: str) -> bool:
    is_number = any(character.isdigit() for character in word)
    return is_number or word in _VALUES or word in _NEGATIONS


def _names(text: str) -> frozenset[str]:
    """The stems of names and identifiers: capitals inside a sentence, digits, mixed case."""
    read = text[:READ_CHARACTERS]
    return frozenset(
        stem(found[0].casefold())
        for found in _TOKEN.finditer(read)
        if _is_name(found[0], read[max(0, found.start() - 3) : found.start()])
    )


def _is_name(word: str, before: str) -> bool:
    """Whether a word looks like a name; `before` are the characters in front of it."""
    if any(character.isdigit() for character in word) or word[1:] != word[1:].lower():
        return True
    begins_sentence = "\n" in before or before.rstrip()[-1:] in ("", ".", "!", "?", ":")
    return word[:1].isupper() and not begins_sentence


def _follows_qualifier(text: str, word: str) -> bool:
    """Whether the word with this stem stands after "of", "for" and the like."""
    words: Sequence[str] = _PLAIN_WORD.findall(text[:READ_CHARACTERS].lower())
    for at, each in enumerate(words):
        if stem(each) == word:
            before = [other for other in words[max(0, at - 2) : at] if other not in ("the", "a")]
            return bool(before) and before[-1] in _QUALIFIERS
    return False

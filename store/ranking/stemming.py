"""Porter's stemming algorithm for English (1980), so that "camping" finds "camped".

Only lower-case ASCII words of more than three letters are stemmed; other words stay as they are.
The steps and their names follow the published description: a word is [C](VC)^m[V], and a rule
applies if the remaining stem has a measure m above a bound, contains a vowel, and so on.
"""

import re
from typing import Final

_Rules = tuple[tuple[str, str], ...]

_PLAIN: Final = re.compile(r"[a-z]{4,40}")

_STEP_2: Final[_Rules] = (
    ("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize"),
    ("bli", "ble"), ("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous"),
    ("ization", "ize"), ("ation", "ate"), ("ator", "ate"), ("alism", "al"), ("iveness", "ive"),
    ("fulness", "ful"), ("ousness", "ous"), ("aliti", "al"), ("iviti", "ive"), ("biliti", "ble"),
    ("logi", "log"),
)  # fmt: skip
_STEP_3: Final[_Rules] = (
    ("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"),
    ("ful", ""), ("ness", ""),
)  # fmt: skip
_STEP_4: Final = (
    "ement", "ment", "able", "ible", "ance", "ence", "ant", "ent", "ion", "ism", "ate", "iti",
    "ous", "ive", "ize", "al", "er", "ic", "ou",
)  # fmt: skip
_ENDINGS: Final[dict[_Rules, tuple[str, ...]]] = {
    rules: tuple(ending for ending, _ in rules) for rules in (_STEP_2, _STEP_3)
}


def stem(word: str) -> str:
    """The stem of an English word; other and short words are returned unchanged."""
    if not _PLAIN.fullmatch(word):
        return word
    word = _plural(word)
    word = _past(word)
    if word.endswith("y") and _has_vowel(word[:-1]):
        word = word[:-1] + "i"
    word = _replaced(word, _STEP_2)
    word = _replaced(word, _STEP_3)
    word = _stripped(word)
    return _tidied(word)


def _shape(word: str) -> str:
    """The word with v for each vowel and c for each consonant; y is a vowel after a consonant."""
    shape: list[str] = []
    for letter in word:
        is_vowel = letter in "aeiou" or (letter == "y" and bool(shape) and shape[-1] == "c")
        shape.append("v" if is_vowel else "c")
    return "".join(shape)


def _measure(word: str) -> int:
    """The number of groups of vowels that a consonant follows."""
    return _shape(word).count("vc")


def _has_vowel(word: str) -> bool:
    return "v" in _shape(word)


def _ends_short(word: str) -> bool:
    """Whether the word ends in consonant, vowel, consonant, and the last one is not w, x or y."""
    return _shape(word).endswith("cvc") and word[-1] not in "wxy"


def _plural(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _past(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for ending in ("ed", "ing"):
        if word.endswith(ending):
            rest = word[: -len(ending)]
            return _restored(rest) if _has_vowel(rest) else word
    return word


def _restored(rest: str) -> str:
    """Restore a word after the removal of -ed or -ing: hop(p), conflat(e), fil(e)."""
    if rest.endswith(("at", "bl", "iz")):
        return rest + "e"
    if len(rest) > 1 and rest[-1] == rest[-2] and rest[-1] not in "aeioulsz":
        return rest[:-1]
    return rest + "e" if _measure(rest) == 1 and _ends_short(rest) else rest


def _replaced(word: str, rules: tuple[tuple[str, str], ...]) -> str:
    if not word.endswith(_ENDINGS[rules]):  # true for most words, and faster than twenty tests
        return word
    for ending, instead in rules:
        if word.endswith(ending):
            rest = word[: -len(ending)]
            return rest + instead if _measure(rest) > 0 else word
    raise AssertionError("one of the endings was there")


def _stripped(word: str) -> str:
    if not word.endswith(_STEP_4):
        return word
    for ending in _STEP_4:
        if word.endswith(ending):
            rest = word[: -len(ending)]
            keeps = ending == "ion" and not rest.endswith(("s", "t"))
            return word if keeps or _measure(rest) <= 1 else rest
    raise AssertionError("one of the endings was there")


def _tidied(word: str) -> str:
    if word.endswith("e"):
        rest = word[:-1]
        measure = _measure(rest)
        if measure > 1 or (measure == 1 and not _ends_short(rest)):
            word = rest
    return word[:-1] if word.endswith("ll") and _measure(word) > 1 else word

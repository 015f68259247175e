"""Text to the numbers MiniLM reads: BERT's uncased word pieces.

The scheme is published with BERT: fold case and accents, part words at spaces, punctuation and Han
characters, then take the longest known piece from the left, over and over. The vocabulary beside
this file is BERT's own (`vocab.txt`, Apache-2.0, see NOTICE); a piece's number is its line. A few
lines of Python with a cache of words seen are as fast here as the usual native library, which
would bring an HTTP client and a download cache with it.
"""

import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Final

MAX_PIECES: Final = 256  # what the model was trained on; the rest of a longer text is not read
_MAX_WORD: Final = 100
_WORDS_PER_PIECE: Final = 12  # characters: a bound on how much text MAX_PIECES can need

_CLS: Final = "[CLS]"
_SEP: Final = "[SEP]"
_UNKNOWN: Final = "[UNK]"


class WordPieces:
    """Makes piece numbers out of texts. Safe to use from several threads."""

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._numbers = {piece: number for number, piece in enumerate(vocabulary)}
        self._start = self._numbers[_CLS]
        self._end = self._numbers[_SEP]
        self._unknown = self._numbers[_UNKNOWN]
        self._cut = lru_cache(maxsize=16384)(self._pieces)

    def encode(self, text: str) -> list[int]:
        """The numbers of a text's pieces, at most `MAX_PIECES` with the two that frame it."""
        numbers = [self._start]
        room = MAX_PIECES - 1
        # No word of more than _MAX_WORD characters is cut, so a prefix is all that can matter.
        for word in _words(text[: MAX_PIECES * _WORDS_PER_PIECE * 2]):
            numbers += self._cut(word)
            if len(numbers) >= room:
                break
        del numbers[room:]
        numbers.append(self._end)
        return numbers

    def _pieces(self, word: str) -> tuple[int, ...]:
        if len(word) > _MAX_WORD:
            return (self._unknown,)
        found: list[int] = []
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            for end in range(len(word), start, -1):
                number = self._numbers.get(prefix + word[start:end])
                if number is not None:
                    found.append(number)
                    start = end
                    break
            else:
                return (self._unknown,)
        return tuple(found)


def load_vocabulary() -> list[str]:
    """BERT's uncased vocabulary, in order."""
    return files("store.embedding.minilm").joinpath("vocab.txt").read_text("utf-8").split("\n")[:-1]


def _words(text: str) -> list[str]:
    """BERT's "basic" words: folded, and parted at spaces, punctuation and Han characters."""
    text = text.lower()
    if not text.isascii():
        text = "".join(s for s in unicodedata.normalize("NFD", text) if not _is_accent(s))
    return "".join(map(_parted, text)).split()


def _is_accent(sign: str) -> bool:
    return unicodedata.category(sign) == "Mn"


@lru_cache(maxsize=8192)
def _parted(sign: str) -> str:
    """A character as it goes into the line that is split at spaces: kept, set apart or dropped."""
    code = ord(sign)
    category = unicodedata.category(sign)
    if sign in " \t\n\r" or category == "Zs":
        return " "
    if code in (0, 0xFFFD) or category[0] == "C":
        return ""
    ascii_sign = code < 128 and not sign.isalnum()
    return f" {sign} " if ascii_sign or category[0] == "P" or _is_han(code) else sign


def _is_han(code: int) -> bool:
    return (
        0x4E00 <= code <= 0x9FFF
        or 0x3400 <= code <= 0x4DBF
        or 0x20000 <= code <= 0x2CEAF
        or 0xF900 <= code <= 0xFAFF
        or 0x2F800 <= code <= 0x2FA1F
    )

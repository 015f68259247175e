"""BERT's uncased WordPiece tokenizer.

The algorithm is published with BERT: fold case and accents, split at spaces, punctuation and Han
characters, then repeatedly take the longest known piece from the left. `vocab.txt` is BERT's own
vocabulary (Apache-2.0, see NOTICE); the id of a piece is its line number. With a cache of words
this is as fast as the usual native library, which would add an HTTP client and a download cache.
"""

import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Final

MAX_PIECES: Final = 256  # the length the model was trained on; the rest of a text is ignored
_MAX_WORD: Final = 100
_CHARACTERS_PER_PIECE: Final = 24  # a bound on the text that MAX_PIECES pieces can need

_CLS: Final = "[CLS]"
_SEP: Final = "[SEP]"
_UNKNOWN: Final = "[UNK]"


class WordPieces:
    """Turns texts into ids of word pieces. Thread-safe."""

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._numbers = {piece: number for number, piece in enumerate(vocabulary)}
        self._start = self._numbers[_CLS]
        self._end = self._numbers[_SEP]
        self._unknown = self._numbers[_UNKNOWN]
        self._cut = lru_cache(maxsize=16384)(self._pieces)

    def encode(self, text: str) -> list[int]:
        """The ids of a text's pieces between `[CLS]` and `[SEP]`, at most `MAX_PIECES` in all."""
        numbers = [self._start]
        room = MAX_PIECES - 1
        for word in _words(text[: MAX_PIECES * _CHARACTERS_PER_PIECE]):
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
    """BERT's basic tokens: folded, and split at spaces, punctuation and Han characters."""
    text = text.lower()
    if not text.isascii():
        text = "".join(c for c in unicodedata.normalize("NFD", text) if not _is_accent(c))
    return "".join(map(_separated, text)).split()


def _is_accent(character: str) -> bool:
    return unicodedata.category(character) == "Mn"


@lru_cache(maxsize=8192)
def _separated(character: str) -> str:
    """The character for a line that is then split at spaces: kept, between spaces, or dropped."""
    code = ord(character)
    category = unicodedata.category(character)
    if character in " \t\n\r" or category == "Zs":
        return " "
    if code in (0, 0xFFFD) or category[0] == "C":
        return ""
    is_ascii_symbol = code < 128 and not character.isalnum()
    stands_alone = is_ascii_symbol or category[0] == "P" or _is_han(code)
    return f" {character} " if stands_alone else character


def _is_han(code: int) -> bool:
    return (
        0x4E00 <= code <= 0x9FFF
        or 0x3400 <= code <= 0x4DBF
        or 0x20000 <= code <= 0x2CEAF
        or 0xF900 <= code <= 0xFAFF
        or 0x2F800 <= code <= 0x2FA1F
    )

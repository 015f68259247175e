"""Hashed features: vectors from spelling, without a model.

Each word and each group of three letters adds to one of 256 components, chosen by its hash. The
vectors express spelling and not meaning, so `is_semantic` is False and health reports
`embedder-without-meaning`, unless the operator chose this embedder. It always works.
"""

import hashlib
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from store.embedding.embedder import Identity
from store.ranking.tokenizer import query_terms

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_DIMS: Final = 256
_TRIGRAM_WEIGHT: Final = 0.3
_LETTERS: Final = 4_096  # characters of a text whose trigrams are counted
_WORD: Final = re.compile(r"\w+")


class HashedFeatures:
    """See `store.embedding.embedder.Embedder`, which this implements."""

    def __init__(self, *, is_chosen: bool = False) -> None:
        self.is_semantic = False
        self.is_chosen = is_chosen  # by the operator, rather than for lack of a model
        self.identity = Identity(name="hashed-features", revision="1", dims=_DIMS)

    def embed(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        import numpy as np

        vectors = np.zeros((len(texts), self.identity.dims), dtype=np.float32)
        for row, text in enumerate(texts):
            for component, amount in _features(text):
                vectors[row, component] += amount
            if not vectors[row].any():
                vectors[row, 0] = 1.0  # a text without words needs a direction too
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors


def _features(text: str) -> list[tuple[int, float]]:
    found = [_component(f"w{term.text}", term.weight) for term in query_terms(text)]
    for word in _WORD.findall(text.casefold()[:_LETTERS]):
        padded = f"<{word}>"
        found += [
            _component(f"g{padded[at : at + 3]}", _TRIGRAM_WEIGHT) for at in range(len(padded) - 2)
        ]
    return found


@lru_cache(maxsize=8192)
def _component(feature: str, weight: float) -> tuple[int, float]:
    digest = hashlib.blake2b(feature.encode("utf-8", "surrogatepass"), digest_size=4).digest()
    sign = 1.0 if digest[3] & 1 else -1.0
    return int.from_bytes(digest[:2], "little") % _DIMS, sign * weight

"""A fake embedder with a handful of concepts.

Words of one concept share a direction; the direction of any other word is its hash. The vector of a
text is the sum over its words. So "kitten" matches "cat" semantically, without a common word.
"""

import hashlib
import re
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from store.embedding.embedder import Identity
from store.errors import EmbedderFailed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CONCEPTS = (
    ("cat", "cats", "kitten", "feline"),
    ("dog", "dogs", "puppy", "hound"),
    ("car", "cars", "automobile", "vehicle"),
    ("lake", "pond", "water", "swim"),
    ("editor", "neovim", "vim", "emacs"),
)
DIMS = 64


class FakeEmbedder:
    """Records the embedded texts; a test can make it fail or block."""

    def __init__(self, *, revision: str = "1", is_semantic: bool = True) -> None:
        self.identity = Identity(name="fake", revision=revision, dims=DIMS)
        self.is_semantic = is_semantic
        self.texts: list[str] = []
        self.is_failing = False
        self.gate = threading.Event()
        self.gate.set()
        self.waiting = threading.Event()  # a thread is blocked at the gate

    def embed(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        import numpy as np

        if not self.gate.is_set():
            self.waiting.set()
        if not self.gate.wait(10):
            raise EmbedderFailed("the gate was never opened")
        if self.is_failing:
            raise EmbedderFailed("failing as the test requested")
        self.texts += texts
        vectors = np.full((len(texts), DIMS), 0.01, dtype=np.float32)
        for row, text in enumerate(texts):
            for word in re.findall(r"\w+", text.casefold()):
                vectors[row, _direction(word)] += 1.0
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors


def _direction(word: str) -> int:
    for at, words in enumerate(CONCEPTS):
        if word in words:
            return at
    digest = hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=2).digest()
    return len(CONCEPTS) + int.from_bytes(digest, "little") % (DIMS - len(CONCEPTS))

"""Meaning as numbers: what an embedder is, which one is used, and the floor below them all.

An embedder turns texts into unit vectors. Its identity (name, revision, dimensions) is stored
beside every vector, because vectors of two models must never be compared. Three exist:

- `store.embedding.minilm`: all-MiniLM-L6-v2 from the installed packages; the default;
- `store.embedding.endpoint`: an OpenAI-style HTTP endpoint, when the operator configures one;
- `HashedFeatures`, here: words and letter groups hashed into a vector. It knows spelling and
  not meaning, says so (`is_semantic` is False, health names it), and always works.

Nothing here imports NumPy or a model until the first text is embedded.
"""

import hashlib
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct

from store.errors import EmbedderFailed
from store.ranking.tokenizer import query_terms

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_HASHED_DIMS: Final = 256
_WORD: Final = re.compile(r"\w+")


class Identity(Struct, frozen=True, kw_only=True):
    """Which model made a vector. Equal identities mean comparable vectors, nothing else does."""

    name: str
    revision: str
    dims: int

    def __str__(self) -> str:
        return f"{self.name}@{self.revision}/{self.dims}"


class Embedder(Protocol):
    """Turns texts into vectors. `embed` blocks: call it from a worker thread, from any number."""

    @property
    def identity(self) -> Identity: ...

    @property
    def is_semantic(self) -> bool:
        """Whether the vectors carry meaning; if not, search is told to lean on words."""
        ...

    def embed(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """One row of unit length for each text, in order. Raises `EmbedderFailed`."""
        ...


def embedded(embedder: Embedder, texts: Sequence[str]) -> "NDArray[np.float32]":
    """The vectors of these texts. Whatever a model's library raises is `EmbedderFailed` here."""
    try:
        return embedder.embed(texts)
    except EmbedderFailed:
        raise
    except Exception as error:
        raise EmbedderFailed(f"the embedding model raised {type(error).__name__}") from error


class EndpointSettings(Struct, frozen=True, kw_only=True):
    """An OpenAI-style embeddings endpoint. Off unless the operator configures one."""

    url: str  # of the embeddings resource itself, e.g. http://127.0.0.1:8080/v1/embeddings
    model: str
    dims: int
    key: str | None = None
    timeout_seconds: float = 10.0
    batch: int = 32


class EmbeddingSettings(Struct, frozen=True, kw_only=True):
    """Which embedder to use. The default takes the installed model, or else hashed features."""

    endpoint: EndpointSettings | None = None
    model_path: Path | None = None
    hashed: bool = False


def choose_embedder(settings: EmbeddingSettings | None = None) -> Embedder:
    """The embedder the settings ask for, not loaded yet."""
    settings = settings or EmbeddingSettings()
    if settings.endpoint is not None:
        from store.embedding.endpoint import EndpointEmbedder

        return EndpointEmbedder(settings.endpoint)
    if settings.hashed:
        return HashedFeatures(is_chosen=True)
    from store.embedding.minilm.model import load_file, load_packaged

    if settings.model_path is not None:
        return load_file(settings.model_path)
    return load_packaged() or HashedFeatures()


class HashedFeatures:
    """Each word and each group of three letters adds to one of 256 places, by its hash."""

    def __init__(self, *, is_chosen: bool = False) -> None:
        self.is_semantic = False
        self.is_chosen = is_chosen  # by the operator, and not for want of a model
        self.identity = Identity(name="hashed-features", revision="1", dims=_HASHED_DIMS)

    def embed(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        import numpy as np

        vectors = np.zeros((len(texts), self.identity.dims), dtype=np.float32)
        for row, text in enumerate(texts):
            for place, amount in _features(text):
                vectors[row, place] += amount
            if not vectors[row].any():
                vectors[row, 0] = 1.0  # a text without a word still needs a direction
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors


def _features(text: str) -> list[tuple[int, float]]:
    found = [_place(f"w{term.text}", term.weight) for term in query_terms(text)]
    for word in _WORD.findall(text.casefold()[:4096]):
        padded = f"<{word}>"
        found += [_place(f"g{padded[at : at + 3]}", 0.3) for at in range(len(padded) - 2)]
    return found


@lru_cache(maxsize=8192)
def _place(feature: str, weight: float) -> tuple[int, float]:
    digest = hashlib.blake2b(feature.encode("utf-8", "surrogatepass"), digest_size=4).digest()
    sign = 1.0 if digest[3] & 1 else -1.0
    return int.from_bytes(digest[:2], "little") % _HASHED_DIMS, sign * weight

"""The embedder interface and the choice of an embedder.

An embedder turns texts into unit vectors. Its identity (name, revision, dimensions) is stored with
every vector, because vectors of two models must never be compared. There are three embedders:

- `minilm`: all-MiniLM-L6-v2 from the installed packages; the default;
- `endpoint`: an OpenAI-style HTTP endpoint, if the operator configures one;
- `hashed`: hashed features, if no model is installed.

NumPy and the models are imported when the first text is embedded.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from store.errors import EmbedderFailed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Identity(Struct, frozen=True, kw_only=True):
    """The model that computed a vector. Only vectors with equal identities are comparable."""

    name: str
    revision: str
    dims: int

    def __str__(self) -> str:
        return f"{self.name}@{self.revision}/{self.dims}"


class Embedder(Protocol):
    """Computes vectors. `embed` blocks and is thread-safe: call it from worker threads."""

    @property
    def identity(self) -> Identity: ...

    @property
    def is_semantic(self) -> bool:
        """Whether the vectors express meaning. If not, search gives words more weight."""
        ...

    def embed(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """One row of unit length for each text, in order. Raises `EmbedderFailed`."""
        ...


def embedded(embedder: Embedder, texts: Sequence[str]) -> "NDArray[np.float32]":
    """The vectors of these texts. Errors of a model's library are raised as `EmbedderFailed`."""
    try:
        return embedder.embed(texts)
    except EmbedderFailed:
        raise
    except Exception as error:
        raise EmbedderFailed(f"the embedding model raised {type(error).__name__}") from error


class EndpointSettings(Struct, frozen=True, kw_only=True):
    """An OpenAI-style embeddings endpoint. None is used unless the operator configures one."""

    url: str  # of the embeddings resource itself, e.g. http://127.0.0.1:8080/v1/embeddings
    model: str
    dims: int
    key: str | None = None
    timeout_seconds: float = 10.0
    batch: int = 32


class EmbeddingSettings(Struct, frozen=True, kw_only=True):
    """The choice of an embedder. By default the installed model, or else hashed features."""

    endpoint: EndpointSettings | None = None
    model_path: Path | None = None
    hashed: bool = False


def choose_embedder(settings: EmbeddingSettings | None = None) -> Embedder:
    """The embedder for these settings. Its model is loaded when the first text is embedded."""
    settings = settings or EmbeddingSettings()
    if settings.endpoint is not None:
        from store.embedding.endpoint import EndpointEmbedder

        return EndpointEmbedder(settings.endpoint)
    from store.embedding.hashed import HashedFeatures

    if settings.hashed:
        return HashedFeatures(is_chosen=True)
    from store.embedding.minilm.model import load_file, load_packaged

    if settings.model_path is not None:
        return load_file(settings.model_path)
    return load_packaged() or HashedFeatures()

"""The embedder interface.

An embedder turns texts into unit vectors. Its identity (name, revision, dimensions) is stored with
every vector, because vectors of two models must never be compared. `store.embedding.selection`
chooses the embedder.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

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


class TokenVectors(NamedTuple):
    """The vectors of some texts, and for each text one row of unit length per content token."""

    vectors: "NDArray[np.float32]"
    tokens: "list[NDArray[np.float32]] | None"  # None: the embedder has none


@runtime_checkable
class TokenEmbedder(Embedder, Protocol):
    """An embedder that also returns the tokens of a text, from the same run of the model."""

    @property
    def token_dims(self) -> int: ...

    def embed_tokens(self, texts: Sequence[str]) -> TokenVectors:
        """The same vectors as `embed`, and the tokens. Raises `EmbedderFailed`."""
        ...


def embedded_tokens(embedder: Embedder, texts: Sequence[str]) -> TokenVectors:
    """The vectors of these texts and their tokens, if the embedder has any."""
    if not isinstance(embedder, TokenEmbedder):
        return TokenVectors(embedded(embedder, texts), None)
    try:
        return embedder.embed_tokens(texts)
    except EmbedderFailed:
        raise
    except Exception as error:
        raise EmbedderFailed(f"the embedding model raised {type(error).__name__}") from error


def embedded(embedder: Embedder, texts: Sequence[str]) -> "NDArray[np.float32]":
    """The vectors of these texts. Errors of a model's library are raised as `EmbedderFailed`."""
    try:
        return embedder.embed(texts)
    except EmbedderFailed:
        raise
    except Exception as error:
        raise EmbedderFailed(f"the embedding model raised {type(error).__name__}") from error

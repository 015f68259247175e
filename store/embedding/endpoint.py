"""Vectors from an OpenAI-style HTTP endpoint, if the operator configures one.

Each batch is one POST of `{"model", "input": [texts]}` with `urllib`, on the calling worker thread;
the reply is `{"data": [{"index", "embedding"}]}`. Any other outcome (a timeout, an error status, a
wrong number of vectors or dimensions, numbers that are not finite) raises `EmbedderFailed`, and no
vector of the batch is used.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec
import orjson
from msgspec import Struct

from store.embedding.embedder import Identity
from store.errors import EmbedderFailed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_REPLY_LIMIT: Final = 64 * 1024 * 1024


class _Vector(Struct):
    index: int
    embedding: list[float]


class _Reply(Struct):
    data: list[_Vector]


class EndpointSettings(Struct, frozen=True, kw_only=True):
    """An OpenAI-style embeddings endpoint. None is used unless the operator configures one."""

    url: str  # of the embeddings resource itself, e.g. http://127.0.0.1:8080/v1/embeddings
    model: str
    dims: int
    key: str | None = None
    timeout_seconds: float = 10.0
    batch: int = 32


class EndpointEmbedder:
    """Embeds texts with the configured endpoint.

    Its identity is the model's name there. If the operator replaces the model and keeps the name,
    the change cannot be detected.
    """

    def __init__(self, settings: EndpointSettings) -> None:
        if not settings.url.startswith(("http://", "https://")):
            raise EmbedderFailed("the embedding endpoint must be an http or https URL")
        if settings.dims < 1 or settings.batch < 1 or not settings.timeout_seconds > 0:
            raise EmbedderFailed("the embedding endpoint needs dims, batch and timeout above zero")
        self.is_semantic = True
        self.identity = Identity(name=settings.model, revision="endpoint", dims=settings.dims)
        self._settings = settings

    def embed(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        import numpy as np

        rows: list[list[float]] = []
        for start in range(0, len(texts), self._settings.batch):
            rows += self._request(texts[start : start + self._settings.batch])
        with np.errstate(over="ignore", invalid="ignore"):  # checked below
            vectors = np.array(rows, dtype=np.float32).reshape(len(texts), self.identity.dims)
            norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not (np.isfinite(norms).all() and norms.all()):
            raise EmbedderFailed("the embedding endpoint gave a vector without a direction")
        vectors /= norms
        return vectors

    def _request(self, texts: Sequence[str]) -> list[list[float]]:
        import urllib.error  # slow to import, and most installations use no endpoint
        import urllib.request

        body = orjson.dumps({"model": self._settings.model, "input": list(texts)})
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._settings.key:
            headers["Authorization"] = f"Bearer {self._settings.key}"
        request = urllib.request.Request(self._settings.url, body, headers, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=self._settings.timeout_seconds) as reply:
                content = reply.read(_REPLY_LIMIT + 1)
        except urllib.error.HTTPError as error:
            with error:
                raise EmbedderFailed(f"the embedding endpoint answered {error.code}") from error
        except OSError as error:
            raise EmbedderFailed(
                f"the embedding endpoint could not be asked: {type(error).__name__}"
            ) from error
        if len(content) > _REPLY_LIMIT:
            raise EmbedderFailed("the embedding endpoint's answer is too large")
        return self._rows(content, len(texts))

    def _rows(self, content: bytes, expected: int) -> list[list[float]]:
        try:
            parsed = msgspec.json.decode(content, type=_Reply)
        except msgspec.DecodeError as error:
            raise EmbedderFailed("the embedding endpoint's answer has another shape") from error
        vectors = sorted(parsed.data, key=lambda vector: vector.index)
        if [vector.index for vector in vectors] != list(range(expected)):
            raise EmbedderFailed(f"the embedding endpoint did not answer for {expected} texts")
        for vector in vectors:
            if len(vector.embedding) != self.identity.dims:
                raise EmbedderFailed(
                    f"the embedding endpoint gave {len(vector.embedding)} dimensions,"
                    f" {self.identity.dims} are configured"
                )
        return [vector.embedding for vector in vectors]

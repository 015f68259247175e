"""Vectors from an OpenAI-style HTTP endpoint, for operators who run one.

Off unless configured. Plain `urllib` in the calling worker thread: one POST of
`{"model", "input": [texts]}` a batch, answered by `{"data": [{"index", "embedding"}]}`. Anything
else (a slow or refusing server, the wrong count, the wrong dimensions, numbers that are not
finite) is `EmbedderFailed`, and nothing of the batch is used.
"""

import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec
import orjson
from msgspec import Struct

from store.embedding.embedder import EndpointSettings, Identity
from store.errors import EmbedderFailed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_LARGEST_ANSWER: Final = 64 * 1024 * 1024


class _Vector(Struct):
    index: int
    embedding: list[float]


class _Answer(Struct):
    data: list[_Vector]


class EndpointEmbedder:
    """Asks the configured endpoint. Its identity is the model's name there: changing the model
    behind an unchanged name cannot be seen from here."""

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
            rows += self._ask(texts[start : start + self._settings.batch])
        with np.errstate(over="ignore", invalid="ignore"):  # looked at right below
            vectors = np.array(rows, dtype=np.float32).reshape(len(texts), self.identity.dims)
            norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not (np.isfinite(norms).all() and norms.all()):
            raise EmbedderFailed("the embedding endpoint gave a vector without a direction")
        vectors /= norms
        return vectors

    def _ask(self, texts: Sequence[str]) -> list[list[float]]:
        body = orjson.dumps({"model": self._settings.model, "input": list(texts)})
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._settings.key:
            headers["Authorization"] = f"Bearer {self._settings.key}"
        request = urllib.request.Request(self._settings.url, body, headers, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=self._settings.timeout_seconds) as reply:
                content = reply.read(_LARGEST_ANSWER + 1)
        except urllib.error.HTTPError as error:
            with error:
                raise EmbedderFailed(f"the embedding endpoint answered {error.code}") from error
        except OSError as error:
            raise EmbedderFailed(
                f"the embedding endpoint could not be asked: {type(error).__name__}"
            ) from error
        if len(content) > _LARGEST_ANSWER:
            raise EmbedderFailed("the embedding endpoint's answer is too large")
        return self._rows(content, len(texts))

    def _rows(self, content: bytes, expected: int) -> list[list[float]]:
        try:
            answer = msgspec.json.decode(content, type=_Answer)
        except msgspec.DecodeError as error:
            raise EmbedderFailed("the embedding endpoint's answer has another shape") from error
        vectors = sorted(answer.data, key=lambda vector: vector.index)
        if [vector.index for vector in vectors] != list(range(expected)):
            raise EmbedderFailed(f"the embedding endpoint did not answer for {expected} texts")
        for vector in vectors:
            if len(vector.embedding) != self.identity.dims:
                raise EmbedderFailed(
                    f"the embedding endpoint gave {len(vector.embedding)} dimensions,"
                    f" {self.identity.dims} are configured"
                )
        return [vector.embedding for vector in vectors]

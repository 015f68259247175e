"""Embedders of the engine bench: synthetic vectors, and vectors cached from an earlier run."""

import hashlib
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import store.embedding.native_libraries  # noqa: F401  (must be imported before NumPy)
from scripts.benches.support.figures import print_line
from scripts.kit.peer_packages import CACHE
from store.embedding.embedder import Embedder, Identity

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class SyntheticEmbedder:
    """Vectors without a model: the hash of a text selects a cluster and a point in it."""

    def __init__(self, dims: int = 384, clusters: int = 2_000) -> None:
        import numpy as np

        self.identity = Identity(name="synthetic", revision="1", dims=dims)
        self.is_semantic = True
        self._centres = np.random.default_rng(1).normal(size=(clusters, dims)).astype(np.float32)

    def embed(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        import numpy as np

        vectors = np.empty((len(texts), self.identity.dims), dtype=np.float32)
        for row, text in enumerate(texts):
            seed = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
            rng = np.random.default_rng(seed)
            noise = rng.standard_normal(self.identity.dims, dtype=np.float32)
            vectors[row] = self._centres[seed % len(self._centres)] + 0.8 * noise
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors


class CachedEmbedder:
    """A model whose vectors for the stored texts come from a cache."""

    def __init__(self, model: Embedder, known: dict[str, int], vectors: Any) -> None:
        self.identity = model.identity
        self.is_semantic = model.is_semantic
        self._model = model
        self._known = known
        self._vectors = vectors

    def embed(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        import numpy as np

        places = [self._known.get(text) for text in texts]
        if any(place is None for place in places):
            return self._model.embed(texts)
        found: NDArray[np.float32] = self._vectors[places].astype(np.float32)
        return found


def cached_vectors(embedder: Embedder, stored: Sequence[str]) -> tuple[Any, float | None]:
    """The vectors of the texts, computed now or read from an earlier run; texts per second."""
    import numpy as np

    digest = hashlib.sha256("\n".join([str(embedder.identity), *stored]).encode()).hexdigest()
    path = CACHE / "bench-vectors" / f"{digest[:16]}.npy"
    if path.exists():
        return np.load(path), None
    print_line(f"  embedding {len(stored)} texts (kept for later runs)")
    started = time.perf_counter()
    parts: list[Any] = []
    for at in range(0, len(stored), 2_000):
        parts.append(embedder.embed(stored[at : at + 2_000]).astype(np.float16))
        done = min(len(stored), at + 2_000)
        print_line(f"  {done}/{len(stored)}, {done / (time.perf_counter() - started):.0f} a second")
    rate = len(stored) / (time.perf_counter() - started)
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, np.concatenate(parts))
    return np.concatenate(parts), round(rate, 1)

"""The choice of an embedder.

There are three embedders:

- `minilm`: all-MiniLM-L6-v2 from the installed packages; the default;
- `endpoint`: an OpenAI-style HTTP endpoint, if the operator configures one;
- `hashed`: hashed features, if no model is installed.

NumPy and the models are imported when the first text is embedded.
"""

from pathlib import Path

from msgspec import Struct

from store.embedding.embedder import Embedder
from store.embedding.endpoint import EndpointEmbedder, EndpointSettings
from store.embedding.hashed import HashedFeatures
from store.embedding.minilm.model import load_file, load_packaged


class EmbeddingSettings(Struct, frozen=True, kw_only=True):
    """The choice of an embedder. By default the installed model, or else hashed features."""

    endpoint: EndpointSettings | None = None
    model_path: Path | None = None
    hashed: bool = False


def choose_embedder(settings: EmbeddingSettings | None = None) -> Embedder:
    """The embedder for these settings. Its model is loaded when the first text is embedded."""
    settings = settings or EmbeddingSettings()
    if settings.endpoint is not None:
        return EndpointEmbedder(settings.endpoint)
    if settings.hashed:
        return HashedFeatures(is_chosen=True)
    if settings.model_path is not None:
        return load_file(settings.model_path)
    return load_packaged() or HashedFeatures()

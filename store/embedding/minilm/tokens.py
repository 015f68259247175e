"""Content tokens of a text: the model's states of its words, in fewer dimensions.

The model computes a state of 384 numbers for every word piece. Their mean is the text's vector; the
single states show which words match a question (late interaction). Punctuation and stop words are
left out. `projection.f16` maps a state to 128 numbers. It holds the main directions of the states
of BERT's own vocabulary, one word per run (`scripts/models/token_projection.py`). No other text was
used.
"""

from collections.abc import Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from store.ranking.tokenizer import is_stop_word

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TOKEN_DIMS: Final = 128
MOST_TOKENS: Final = 48  # of one text; of LoCoMo's turns one in a thousand has more
FILE: Final = "projection.f16"


class TokenProjection:
    """Selects and shortens the states of content tokens. Thread-safe."""

    def __init__(self, vocabulary: Sequence[str]) -> None:
        import numpy as np

        content = files("store.embedding.minilm").joinpath(FILE).read_bytes()
        self._matrix = np.frombuffer(content, "<f2").reshape(-1, TOKEN_DIMS).astype(np.float32)
        self._skipped = skipped_pieces(vocabulary)

    def tokens(self, ids: Sequence[int], states: "NDArray[np.float32]") -> "NDArray[np.float32]":
        """A row of unit length for each content token of one run, at most `MOST_TOKENS`."""
        import numpy as np

        rows = np.asarray(states[content_places(ids, self._skipped)[:MOST_TOKENS]] @ self._matrix)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True) + 1e-9
        return rows


def content_places(ids: Sequence[int], skipped: frozenset[int]) -> list[int]:
    """The places of the content tokens; of a text without any, all places between the markers."""
    places = [at for at, id in enumerate(ids) if id not in skipped]
    return places or list(range(1, len(ids) - 1)) or [0]


def skipped_pieces(vocabulary: Sequence[str]) -> frozenset[int]:
    """The ids of pieces that carry no content: markers, punctuation and stop words."""
    return frozenset(
        id
        for id, piece in enumerate(vocabulary)
        if (not piece[0].isalnum() and not piece.startswith("##")) or is_stop_word(piece)
    )

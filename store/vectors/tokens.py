"""Token rows of turns: their stored form, and late interaction with a question.

A token is a direction of 128 numbers, stored in 4 bits each: two numbers a byte, from -7 to 7,
scaled so that the largest is 7. The scale is not stored, because only the direction counts. A turn
of 15 content tokens takes 960 bytes.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MOST: Final = 7


def pack_tokens(rows: "NDArray[np.float32]") -> bytes:
    """Encode tokens for storage."""
    import numpy as np

    steps = np.maximum(np.abs(rows).max(axis=1, keepdims=True), 1e-9) / _MOST
    numbers = (np.rint(rows / steps) + 8).astype(np.uint8)
    packed: bytes = (numbers[:, 0::2] << 4 | numbers[:, 1::2]).tobytes()
    return packed


def token_bytes(dims: int) -> int:
    """The size of one stored token."""
    return dims // 2


def closest_tokens(
    question: "NDArray[np.float32]", stored: Sequence[tuple[int, bytes]]
) -> dict[int, tuple[float, ...]]:
    """For each item and each token of the question, the cosine of the item's closest token.

    Items without tokens, or with tokens of a wrong length, are left out.
    """
    import numpy as np

    dims = question.shape[1]
    size = token_bytes(dims)
    stored = [(item, content) for item, content in stored if content and len(content) % size == 0]
    if not stored:
        return {}
    packed = np.frombuffer(b"".join(content for _, content in stored), np.uint8)
    numbers = np.empty((len(packed) // size, dims), dtype=np.float32)
    packed = packed.reshape(-1, size)
    numbers[:, 0::2] = packed >> 4
    numbers[:, 1::2] = packed & 15
    numbers -= 8.0
    lengths = np.sqrt(np.einsum("ij,ij->i", numbers, numbers))
    cosines = (numbers @ question.T) / np.maximum(lengths, 1e-9)[:, None]
    ends = np.cumsum([len(content) // size for _, content in stored])
    best = np.maximum.reduceat(cosines, np.concatenate(([0], ends[:-1])), axis=0)
    return {item: tuple(row) for (item, _), row in zip(stored, best.tolist(), strict=True)}

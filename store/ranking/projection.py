"""A deterministic projection of vectors to the plane.

The first two principal components give every point a place. Then each point moves towards the mean
of its nearest neighbours a few times, so that groups which the components fold over each other come
apart. Nothing is random: the same vectors in the same order give the same places.
"""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NEIGHBOURS: Final = 10
ROUNDS: Final = 6
PULL: Final = 0.5
#: Digits of a place, so that the order of additions in a library does not show.
DIGITS: Final = 4
_BLOCK: Final = 1024


def project(vectors: "NDArray[np.float32]") -> list[tuple[float, float]]:
    """Places in [-1, 1] for unit vectors, one per row."""
    import numpy as np

    count = len(vectors)
    if count < 3:
        return [(round(-0.5 + index, DIGITS), 0.0) for index in range(count)]
    centred = vectors.astype(np.float64) - vectors.mean(axis=0, dtype=np.float64)
    _, axes = np.linalg.eigh(centred.T @ centred)
    places = centred @ _signed(axes[:, [-1, -2]])
    near = _neighbours(vectors, min(NEIGHBOURS, count - 1))
    for _ in range(ROUNDS):
        places = (1 - PULL) * places + PULL * places[near].mean(axis=1)
    places -= (places.max(axis=0) + places.min(axis=0)) / 2
    size = np.abs(places).max(axis=0)
    places /= np.where(size > 0, size, 1.0)
    return [(_rounded(places[row, 0]), _rounded(places[row, 1])) for row in range(count)]


def _rounded(place: float) -> float:
    return round(float(place), DIGITS) + 0.0  # 0.0, not -0.0


def _signed(axes: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """The axes with their largest part positive, because a library may choose either sign."""
    import numpy as np

    largest = np.abs(axes).argmax(axis=0)
    return axes * np.where(axes[largest, [0, 1]] < 0, -1.0, 1.0)


def _neighbours(vectors: "NDArray[np.float32]", count: int) -> "NDArray[np.intp]":
    """The rows of the nearest vectors of each vector, without itself."""
    import numpy as np

    found: list[NDArray[np.intp]] = []
    for start in range(0, len(vectors), _BLOCK):
        cosines = vectors[start : start + _BLOCK] @ vectors.T
        rows = np.arange(len(cosines))
        cosines[rows, start + rows] = -2.0
        found.append(np.argpartition(-cosines, count - 1, axis=1)[:, :count])
    return np.concatenate(found)

"""Vectors as rows of int8 in memory, compared exactly; and the stored form of vectors."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from store.embedding.native_libraries import load_numkong

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Vectors = Sequence[tuple[int, int, bytes]]  # item, change, half floats


def pack(vectors: "NDArray[np.float32]") -> list[bytes]:
    """Encode vectors for storage: IEEE half floats, little endian."""
    return [row.tobytes() for row in vectors.astype("<f2")]


def stored_size(dims: int) -> int:
    """The size of a stored vector in bytes; one of another size is damaged."""
    return 2 * dims


def unpack(contents: Iterable[bytes], dims: int) -> "NDArray[np.float32]":
    """Decode stored vectors to rows of float32; NaN and infinity in a damaged one become 0."""
    import numpy as np

    joined = b"".join(contents)
    rows = np.frombuffer(joined, dtype="<f2").reshape(-1, dims).astype(np.float32)
    return np.nan_to_num(rows, copy=False, nan=0.0, posinf=0.0, neginf=0.0)


def quantise(
    vectors: "NDArray[np.float32]",
) -> "tuple[NDArray[np.int8], NDArray[np.float32]]":
    """Scale each row to the full int8 range. Also returns the size of one step for each row."""
    import numpy as np

    steps = np.maximum(np.abs(vectors).max(axis=1), 1e-12) / 127.0
    return np.rint(vectors / steps[:, None]).astype(np.int8), steps.astype(np.float32)


class Matrix:
    """Vectors as rows, oldest change first. Replaced rows stay as holes until `drop_until`."""

    def __init__(self, dims: int) -> None:
        self._dims = dims
        self._size = 0
        self._places: dict[int, int] = {}
        self._arrays: tuple[Any, Any, Any, Any] | None = None  # keys, changes, vectors, steps

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, key: int) -> bool:
        return key in self._places

    def __iter__(self) -> Iterator[int]:
        return iter(self._places)

    def append(self, rows: Vectors) -> None:
        if not rows:
            return
        import numpy as np

        start, end = self._size, self._size + len(rows)
        keys, changes, vectors, steps = self._reserve(end)
        keys[start:end] = np.fromiter((row[0] for row in rows), dtype=np.int64, count=len(rows))
        changes[start:end] = np.fromiter((row[1] for row in rows), dtype=np.int64, count=len(rows))
        vectors[start:end], steps[start:end] = quantise(
            unpack((row[2] for row in rows), self._dims)
        )
        for at, (key, _, _) in enumerate(rows, start):
            self.clear(key)
            self._places[key] = at
        self._size = end

    def nearest(
        self, query: Any, count: int, allowed: "NDArray[np.int64] | None" = None
    ) -> dict[int, float]:
        if not self._places or self._arrays is None or count < 1:
            return {}
        import numpy as np

        size = self._size
        keys, _, vectors, steps = (array[:size] for array in self._arrays)
        asked, step = quantise(query[None])
        dots = np.asarray(load_numkong().cdist(asked, vectors, metric="dot"))[0]
        cosines = dots * steps * step
        if len(self._places) < size:
            cosines[keys == 0] = -2.0
        if allowed is not None:
            cosines[~np.isin(keys, allowed)] = -2.0
        places = np.argpartition(cosines, size - count)[-count:] if count < size else slice(None)
        found = zip(keys[places].tolist(), cosines[places].tolist(), strict=True)
        return {key: cosine for key, cosine in found if cosine > -2.0}

    def discard(self, key: int, visible: int) -> None:
        if self._arrays is not None and self._arrays[1][self._places[key]] <= visible:
            self.clear(key)

    def oldest(self, count: int) -> tuple[Any, Any, Any]:
        """The first rows that are not holes: keys, change numbers, vectors as int8."""
        import numpy as np

        if self._arrays is None:
            return (), (), ()
        keys, changes, vectors, _ = self._arrays
        places = np.flatnonzero(keys[: self._size] > 0)[:count]
        return keys[places].astype(np.uint64), changes[places], vectors[places]

    def drop_until(self, change: int) -> None:
        """Remove all rows up to a change number, and all holes."""
        if self._arrays is None:
            return
        import numpy as np

        keys, changes, vectors, steps = self._arrays
        keep = np.flatnonzero((keys[: self._size] > 0) & (changes[: self._size] > change))
        self._arrays = keys[keep], changes[keep], vectors[keep], steps[keep]
        self._size = len(keep)
        self._places = {int(key): at for at, key in enumerate(self._arrays[0])}

    def clear(self, key: int) -> None:
        """Turn the row of this key into a hole, if there is one."""
        place = self._places.pop(key, None)
        if place is not None and self._arrays is not None:
            self._arrays[0][place] = 0  # no item has rowid 0

    def _reserve(self, size: int) -> tuple[Any, Any, Any, Any]:
        import numpy as np

        if self._arrays is None or len(self._arrays[0]) < size:
            room = max(size, 256 if self._arrays is None else len(self._arrays[0]) * 3 // 2)
            grown: tuple[Any, Any, Any, Any] = (
                np.zeros(room, dtype=np.int64),
                np.zeros(room, dtype=np.int64),
                np.empty((room, self._dims), dtype=np.int8),
                np.empty(room, dtype=np.float32),
            )
            if self._arrays is not None:
                for new, old in zip(grown, self._arrays, strict=True):
                    new[: self._size] = old[: self._size]
            self._arrays = grown
        return self._arrays

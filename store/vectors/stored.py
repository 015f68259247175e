"""Exact cosines of vectors that are read from the bank's table."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from store.database import Connection
from store.vectors.matrix import stored_size, unpack

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SCAN_LIMIT: Final = 200_000  # the newest rows, which a scan reads at most
SCAN_SECONDS: Final = 1.0  # the time a scan takes at most


def scan(
    connection: Connection,
    query: "NDArray[np.float32]",
    model: int,
    count: int,
    condition: str = "",
    values: Sequence[Any] = (),
) -> tuple[dict[int, float], bool]:
    """Scan the table for the nearest items. Also returns whether the whole table was read.

    `condition` is an SQL condition on `items`, composed of constants; its values are bound.
    """
    import numpy as np

    join = "JOIN items ON items.id = vectors.item" if condition else ""
    rows = connection.execute(
        f"SELECT vectors.item, vectors.bytes FROM vectors {join} WHERE vectors.model = ?"
        f" AND length(vectors.bytes) = ? {'AND ' + condition if condition else ''}"
        " ORDER BY vectors.item DESC LIMIT ?",
        (model, stored_size(len(query)), *values, SCAN_LIMIT + 1),
    )
    best: dict[int, float] = {}
    seen = 0
    late = time.monotonic() + SCAN_SECONDS
    while some := rows.fetchmany(1024):
        seen += len(some)
        cosines = unpack((content for _, content in some), len(query)) @ query
        for at in np.argsort(-cosines)[:count].tolist():
            best[some[at][0]] = float(cosines[at])
        best = dict(sorted(best.items(), key=lambda entry: -entry[1])[:count])
        if time.monotonic() > late:
            return best, False
    return best, seen <= SCAN_LIMIT


def stored_cosines(
    connection: Connection, query: "NDArray[np.float32]", model: int, ids: Sequence[int]
) -> dict[int, float]:
    """The exact cosines of these items, read from the table; items without a vector are missing."""
    found: list[tuple[int, bytes]] = []
    for start in range(0, len(ids), 500):
        some = ids[start : start + 500]
        found += connection.execute(
            f"SELECT item, bytes FROM vectors WHERE item IN ({','.join('?' * len(some))})"
            " AND model = ?",
            (*some, model),
        ).fetchall()
    return cosines_of(found, query)


def cosines_of(
    stored: Sequence[tuple[int, bytes]], query: "NDArray[np.float32]"
) -> dict[int, float]:
    """The exact cosines of items from their stored vectors, without those of a wrong length."""
    if stored:
        size = stored_size(len(query))
        stored = [(item, content) for item, content in stored if len(content) == size]
    if not stored:
        return {}
    cosines = unpack((content for _, content in stored), len(query)) @ query
    return dict(zip((item for item, _ in stored), cosines.tolist(), strict=True))

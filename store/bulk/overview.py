"""Summaries of a bank for people: frequent values, growth by day, and a map by meaning."""

from collections.abc import Sequence
from datetime import date, timedelta
from typing import TYPE_CHECKING, Final

from store.database import Connection
from store.model import FacetCount, Facets, Filters, GrowthDay, Kind, MapPoint
from store.rows.items import LIVE, where
from store.vectors.matrix import stored_size, unpack

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: The values of each facet that are counted.
FACET_LIMIT: Final = 50
LABEL_LENGTH: Final = 80
DAY_MS: Final = 86_400_000


def facets(connection: Connection, *, kinds: Sequence[Kind], filters: Filters) -> Facets:
    """The most frequent values of the items that pass the filters."""
    dialect = connection.dialect
    condition, values = where(dialect, filters, kinds)

    def count(column: str, table: str = "items") -> tuple[FacetCount, ...]:
        rows = connection.execute(
            f"SELECT {column} AS value, count(*) FROM {table} WHERE {condition}"
            f" AND {column} IS NOT NULL GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT ?",
            (*values, FACET_LIMIT),
        )
        return tuple(FacetCount(value=str(value), count=number) for value, number in rows)

    return Facets(
        kinds=count("items.kind"),
        sources=count("items.source"),
        categories=count("items.category"),
        tags=count("tag.value", f"items {dialect.each_tag}"),
        sessions=count("items.session"),
        clients=count(dialect.member("items.provenance", "client")),
    )


def growth(connection: Connection, *, days: int, today: int) -> list[GrowthDay]:
    """The items of each of the last days (UTC) by their own time, and the total at its end."""
    last = today // DAY_MS
    first = last - days + 1
    counts: dict[int, int] = {}
    total = 0
    for day, number in connection.execute(
        f"SELECT occurred_at / {DAY_MS}, count(*) FROM items WHERE {LIVE} GROUP BY 1"
    ):
        if day < first:
            total += number
        elif day <= last:
            counts[day] = number
    found: list[GrowthDay] = []
    for day in range(first, last + 1):
        total += counts.get(day, 0)
        name = (date(1970, 1, 1) + timedelta(days=day)).isoformat()
        found.append(GrowthDay(date=name, added=counts.get(day, 0), total=total))
    return found


def read_points(
    connection: Connection, limit: int
) -> "tuple[list[MapPoint], NDArray[np.float32] | None, int]":
    """The newest items with vectors: without positions, their vectors, and the number of items."""
    (total,) = connection.execute(f"SELECT count(*) FROM items WHERE {LIVE}").fetchone()
    model = connection.execute(
        "SELECT models.id, dims FROM models JOIN state ON state.model = models.id"
    ).fetchone()
    if model is None:
        return [], None, total
    rows = connection.execute(
        "SELECT public_id, kind, session, occurred_at, title, substr(text, 1, 400), vectors.bytes"
        " FROM vectors JOIN items ON items.id = vectors.item"
        f" WHERE vectors.model = ? AND length(vectors.bytes) = ? AND {LIVE}"
        " ORDER BY vectors.item DESC LIMIT ?",
        (model[0], stored_size(model[1]), limit),
    ).fetchall()
    points = [
        MapPoint(id=id, kind=kind, session=session, occurred_at=at, label=_label(title, text))
        for id, kind, session, at, title, text, _ in rows
    ]
    if not rows:
        return [], None, total
    return points, unpack((row[-1] for row in rows), model[1]), total


def _label(title: str, text: str) -> str:
    words = " ".join((title or text).split())
    return words if len(words) <= LABEL_LENGTH else f"{words[: LABEL_LENGTH - 1]}…"

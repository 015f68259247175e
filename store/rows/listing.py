"""Lists of items in order of time or arrival, without ranking."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from store.arguments import checked_filters, kinds_argument, texts
from store.database import Connection
from store.errors import InvalidInput
from store.model import Filters, Kind, Page
from store.rows.items import LIVE, SELECT, find, item_of, where

ALL: Final = Filters()


def listing(
    connection: Connection,
    *,
    kinds: Sequence[Kind] = (),
    filters: Filters = ALL,
    limit: int = 50,
    offset: int = 0,
    newest_first: bool = True,
    by: str = "time",
    count: bool = True,
    before: int | None = None,
) -> Page:
    """A page of items in order of `occurred_at` (by "time") or of insertion (by "arrival").

    With `before`, only items that were inserted before that row are listed; `total` counts all.

    Counting the whole list costs more than reading a page of it. Without `count`, `total` covers
    only the items up to the end of this page.
    """
    kinds = tuple(dict.fromkeys(kinds))
    condition, values = where(connection.dialect, filters, kinds)
    end = offset + limit
    direction = "DESC" if newest_first else "ASC"
    order = f"id {direction}"
    if by == "time":
        order = f"occurred_at {direction}, {order}"
    if by == "time" and kinds and filters.document is None:
        # For one kind the index returns rows in order, so SQLite stops reading at the limit.
        parts: list[str] = []
        chosen: list[Any] = []
        for kind in kinds:
            part, bound = where(connection.dialect, filters, (kind,))
            parts.append(
                f"SELECT * FROM (SELECT id, occurred_at FROM items WHERE {part}"
                f" ORDER BY {order} LIMIT ?) AS page{len(parts)}"
            )
            chosen += [*bound, end]
        pages = " UNION ALL ".join(parts)
        ids = f"SELECT id FROM ({pages}) AS pages ORDER BY {order} LIMIT ? OFFSET ?"
    else:
        older = "" if before is None else " AND items.id < ?"
        ids = f"SELECT id FROM items WHERE {condition}{older} ORDER BY {order} LIMIT ? OFFSET ?"
        chosen = [*values, *(() if before is None else (before,))]
    # The ids are selected first, so that SQLite does not sort whole rows with their texts.
    rows = connection.execute(
        f"{SELECT} WHERE items.id IN ({ids}) ORDER BY {order}", [*chosen, limit, offset]
    ).fetchall()
    total = offset + len(rows)
    if count and (offset or before is not None or len(rows) == limit):
        (total,) = connection.execute(
            f"SELECT count(*) FROM items WHERE {condition}", values
        ).fetchone()
    return Page(
        items=tuple(map(item_of, rows)),
        total=total,
        next=offset + len(rows) if _has_more(len(rows), limit, offset, total, before) else None,
    )


def _has_more(shown: int, limit: int, offset: int, total: int, before: int | None) -> bool:
    """Whether another page may follow. Behind a row number, a full page may be the last one."""
    if before is not None:
        return shown == limit
    return shown > 0 and offset + shown < total


def rowids_where(
    connection: Connection, *, kinds: Sequence[Kind] = (), filters: Filters
) -> list[int]:
    """The row numbers of the live items that pass the filters."""
    condition, values = where(connection.dialect, filters, kinds)
    return [row[0] for row in connection.execute(f"SELECT id FROM items WHERE {condition}", values)]


def rowids_of(connection: Connection, ids: Sequence[str]) -> list[int]:
    """The row numbers of live items, or `NotFound` for the first unknown id."""
    return [find(connection, id).rowid for id in dict.fromkeys(ids)]


def choice(
    ids: Sequence[str], kinds: Sequence[Kind], filters: Filters | None
) -> Callable[[Connection], list[int]]:
    """Selects the rows with these ids or those that pass the filters; exactly one must be given."""
    ids, kinds = texts("ids", ids), kinds_argument(kinds)
    if bool(ids) == (filters is not None):
        raise InvalidInput("ids", "give either ids or filters")
    if filters is None:
        return lambda connection: rowids_of(connection, ids)
    chosen = checked_filters(filters)
    return lambda connection: rowids_where(connection, kinds=kinds, filters=chosen)


def live_rowids(connection: Connection, ids: Sequence[str]) -> list[int]:
    """The row numbers of those of these items that are there and not forgotten."""
    found: list[int] = []
    for start in range(0, len(ids), 500):
        some = ids[start : start + 500]
        marks = ",".join("?" * len(some))
        rows = connection.execute(
            f"SELECT id FROM items WHERE public_id IN ({marks}) AND {LIVE}", some
        )
        found += [rowid for (rowid,) in rows]
    return found


def forgotten_ids(connection: Connection) -> list[str]:
    rows = connection.execute("SELECT public_id FROM items WHERE forgotten_at IS NOT NULL")
    return [id for (id,) in rows]

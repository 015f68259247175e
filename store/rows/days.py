"""Items by day (24 hours of UTC): their number and the latest of them. Empty days are left out."""

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Final

import msgspec

from store.database import Connection
from store.model import Day, Filters, Kind
from store.rows.items import where
from store.rows.listing import listing

DAY_MS: Final = 86_400_000
_EPOCH: Final = date(1970, 1, 1)


def days(
    connection: Connection, *, kinds: Sequence[Kind], filters: Filters, each: int, limit: int
) -> list[Day]:
    """The last `limit` days with items that pass the filters, latest first.

    Each day contains its latest `each` items.
    """
    found: list[Day] = []
    end = filters.until
    # Each day is found by reading the end of the index; GROUP BY would read the whole index.
    while len(found) < limit:
        before = msgspec.structs.replace(filters, until=end)
        last = listing(connection, kinds=kinds, filters=before, limit=1, count=False).items
        if not last:
            break
        start = last[0].occurred_at // DAY_MS * DAY_MS
        that_day = msgspec.structs.replace(
            before, since=start if filters.since is None else max(start, filters.since)
        )
        items = listing(connection, kinds=kinds, filters=that_day, limit=each, count=False).items
        count = len(items)
        if count == each:
            condition, values = where(connection.dialect, that_day, kinds)
            (count,) = connection.execute(
                f"SELECT count(*) FROM items WHERE {condition}", values
            ).fetchone()
        found.append(Day(date=_name(start), count=count, items=items))
        end = start
    return found


def _name(start: int) -> str:
    days_since = start // DAY_MS
    try:
        return (_EPOCH + timedelta(days=days_since)).isoformat()
    except OverflowError:  # a year that Python's `date` cannot represent
        return f"day {days_since}"

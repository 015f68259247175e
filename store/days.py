"""Days: how much happened on each, and the latest of it, without reading all of it.

A day is 24 hours of UTC. Only days on which something happened are there.
"""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Final

import msgspec

from store.database import Connection
from store.items import where
from store.memories import listing
from store.model import Day, Filters, Kind

DAY_MS: Final = 86_400_000
_EPOCH: Final = date(1970, 1, 1)


def days(
    connection: Connection, *, kinds: Sequence[Kind], filters: Filters, each: int, limit: int
) -> list[Day]:
    """The last `limit` days that the filters let through, latest first, `each` items of each."""
    condition, values = where(filters, kinds)
    rows = connection.execute(
        # SQLite divides towards zero; the shift keeps days before 1970 whole.
        "SELECT (items.occurred_at + ?) / ? AS day, count(*) FROM items"
        f" WHERE {condition} GROUP BY day ORDER BY day DESC LIMIT ?",
        [_SHIFT, DAY_MS, *values, limit],
    ).fetchall()
    found: list[Day] = []
    for shifted, count in rows:
        start = shifted * DAY_MS - _SHIFT
        end = start + DAY_MS
        that_day = msgspec.structs.replace(
            filters,
            since=start if filters.since is None else max(start, filters.since),
            until=end if filters.until is None else min(end, filters.until),
        )
        items = listing(connection, kinds=kinds, filters=that_day, limit=each, count=False).items
        found.append(Day(date=_name(start), count=count, items=items))
    return found


def start_of(date_: str) -> int:
    """When a day begins, in unix milliseconds."""
    return int(datetime.fromisoformat(date_).replace(tzinfo=UTC).timestamp() * 1000)


_SHIFT: Final = 3_000_000 * DAY_MS  # far more days than there are before 1970


def _name(start: int) -> str:
    days_since = start // DAY_MS
    try:
        return (_EPOCH + timedelta(days=days_since)).isoformat()
    except OverflowError:  # a year that Python's calendar does not have
        return f"day {days_since}"

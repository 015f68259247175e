"""Statistics of a bank, counted on request."""

from collections import Counter

from store.database import Connection
from store.model import SessionActivity, Stats
from store.rows.documents import counts
from store.rows.items import LIVE


def stats(connection: Connection, bank: str, disk_bytes: int) -> Stats:
    """The statistics of a bank. Only indexes are read; reading the rows would take far longer."""
    by_kind: Counter[str] = Counter()
    by_category: Counter[str] = Counter()
    by_label: Counter[str] = Counter()
    times: list[int] = []
    groups = connection.execute(
        "SELECT kind, category, source, document IS NULL, count(*), min(occurred_at),"
        f" max(occurred_at) FROM items INDEXED BY items_by_time WHERE {LIVE} GROUP BY 1, 2, 3, 4"
    )
    for kind, category, source, is_alone, count, first, last in groups:
        by_kind[kind] += count
        if kind == "memory":
            by_category[category or "general"] += count
        if source is not None and is_alone:
            by_label[source] += count
        times += (first, last)
    model = connection.execute(
        "SELECT name, revision, dims FROM models JOIN state ON state.model = models.id"
    ).fetchone()
    return Stats(
        bank=bank,
        items=by_kind.total(),
        by_kind=dict(by_kind),
        by_category=dict(sorted(by_category.items())),
        by_source=counts(connection),
        by_label=dict(sorted(by_label.items())),
        sessions=_one(
            connection,
            "SELECT count(DISTINCT session) FROM items INDEXED BY items_by_session"
            f" WHERE session IS NOT NULL AND {LIVE}",
        ),
        documents=_one(connection, "SELECT count(*) FROM documents"),
        forgotten=_one(connection, "SELECT count(*) FROM items WHERE forgotten_by IS NOT NULL"),
        pending_vectors=pending_vectors(connection),
        oldest_at=min(times, default=None),
        newest_at=max(times, default=None),
        disk_bytes=disk_bytes,
        model=None if model is None else f"{model[0]}@{model[1]}/{model[2]}",
    )


def pending_vectors(connection: Connection) -> int:
    """The number of items whose vector is not computed yet."""
    return _one(connection, "SELECT count(*) FROM vectors WHERE bytes IS NULL")


def sessions(connection: Connection, *, limit: int) -> list[SessionActivity]:
    """The sessions that have items in a bank, latest first."""
    rows = connection.execute(
        "SELECT session, count(*), min(occurred_at), max(occurred_at) FROM items"
        f" WHERE session IS NOT NULL AND {LIVE} GROUP BY session"
        " ORDER BY max(id) DESC LIMIT ?",
        (limit,),
    )
    return [
        SessionActivity(id=row[0], items=row[1], first_at=row[2], last_at=row[3]) for row in rows
    ]


def _one(connection: Connection, query: str) -> int:
    (value,) = connection.execute(query).fetchone()
    return int(value)

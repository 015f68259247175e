"""True numbers about a bank, counted when asked for."""

from pathlib import Path
from typing import Any

from store.database import Connection
from store.documents import counts
from store.items import LIVE
from store.model import KINDS, SessionActivity, Stats


def stats(connection: Connection, bank: str, directory: Path) -> Stats:
    """Everything `Stats` names; reading it all takes one look at the indexes."""
    by_kind = dict(_rows(connection, f"SELECT kind, count(*) FROM items WHERE {LIVE} GROUP BY 1"))
    by_category = _rows(
        connection,
        "SELECT coalesce(category, 'general'), count(*) FROM items"
        f" WHERE kind = 'memory' AND {LIVE} GROUP BY 1 ORDER BY 1",
    )
    by_label = _rows(
        connection,
        "SELECT source, count(*) FROM items"
        f" WHERE source IS NOT NULL AND document IS NULL AND {LIVE} GROUP BY 1 ORDER BY 1",
    )
    oldest, newest = _span(connection)
    model = connection.execute(
        "SELECT name, revision, dims FROM models JOIN state ON state.model = models.id"
    ).fetchone()
    return Stats(
        bank=bank,
        items=sum(by_kind.values()),
        by_kind=by_kind,
        by_category=dict(by_category),
        by_source=counts(connection),
        by_label=dict(by_label),
        sessions=_one(
            connection,
            f"SELECT count(DISTINCT session) FROM items WHERE session IS NOT NULL AND {LIVE}",
        ),
        documents=_one(connection, "SELECT count(*) FROM documents"),
        forgotten=_one(connection, "SELECT count(*) FROM items WHERE forgotten_by IS NOT NULL"),
        pending_vectors=_one(connection, "SELECT count(*) FROM vectors WHERE bytes IS NULL"),
        oldest_at=oldest,
        newest_at=newest,
        disk_bytes=disk_bytes(directory),
        model=None if model is None else f"{model[0]}@{model[1]}/{model[2]}",
    )


def _span(connection: Connection) -> tuple[int | None, int | None]:
    """When the oldest and the newest thing happened: the ends of the index, a kind at a time."""
    ends: list[int] = []
    for kind in KINDS:
        for end in ("min", "max"):
            (when,) = connection.execute(
                f"SELECT {end}(occurred_at) FROM items WHERE kind = ? AND {LIVE}", (kind,)
            ).fetchone()
            if when is not None:
                ends.append(when)
    return min(ends, default=None), max(ends, default=None)


def sessions(connection: Connection, *, limit: int) -> list[SessionActivity]:
    """The sessions a bank holds something of, latest first."""
    rows = connection.execute(
        "SELECT session, count(*), min(occurred_at), max(occurred_at) FROM items"
        f" WHERE session IS NOT NULL AND {LIVE} GROUP BY session"
        " ORDER BY max(id) DESC LIMIT ?",
        (limit,),
    )
    return [
        SessionActivity(id=row[0], items=row[1], first_at=row[2], last_at=row[3]) for row in rows
    ]


def disk_bytes(directory: Path) -> int:
    return sum(file.stat().st_size for file in directory.iterdir() if file.is_file())


def database_bytes(connection: Connection) -> int:
    """What the database itself takes, without free pages."""
    pages = _one(connection, "PRAGMA page_count") - _one(connection, "PRAGMA freelist_count")
    return pages * _one(connection, "PRAGMA page_size")


def _rows(connection: Connection, query: str) -> list[tuple[Any, ...]]:
    return connection.execute(query).fetchall()


def _one(connection: Connection, query: str) -> int:
    (value,) = connection.execute(query).fetchone()
    return int(value)

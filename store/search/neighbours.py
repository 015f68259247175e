"""Neighbours: the items before and after a candidate, in its session or document."""

from collections.abc import Mapping, Sequence
from typing import Final

from store.database import Connection
from store.ranking.candidates import Candidate


def _select_around(scope: str, place: str) -> str:
    """SQL for the two items before and after each item within a scope, ordered by a column."""

    def near(sign: str, order: str, skipped: int) -> str:
        return (
            f"(SELECT near.id FROM items AS near WHERE near.{scope} = one.{scope}"
            f" AND near.{place} {sign} one.{place} AND near.forgotten_at IS NULL"
            f" ORDER BY near.{place} {order} LIMIT 1 OFFSET {skipped})"
        )

    before = f"{near('<', 'DESC', 1)}, {near('<', 'DESC', 0)}"
    after = f"{near('>', 'ASC', 0)}, {near('>', 'ASC', 1)}"
    return f"SELECT {before}, one.id, {after} FROM items AS one WHERE one.id IN ({{marks}})"


_IN_DOCUMENT: Final = _select_around("document", "position")
_IN_SESSION: Final = _select_around("session", "id")


def windows(connection: Connection, candidates: Sequence[Candidate]) -> list[list[int]]:
    """For each candidate, the ids around it in its session or document, in order."""
    in_documents = [c.id for c in candidates if isinstance(c.group, tuple)]
    in_sessions = [c.id for c in candidates if not isinstance(c.group, tuple)]
    rows = [
        row
        for ids, statement in ((in_documents, _IN_DOCUMENT), (in_sessions, _IN_SESSION))
        if ids
        for row in connection.execute(
            statement.format(marks=",".join("?" * len(ids))), ids
        ).fetchall()
    ]
    return [[id for id in row if id is not None] for row in rows]


def link(candidates: Mapping[int, Candidate], windows: Sequence[Sequence[int]]) -> None:
    """Tell each candidate which items are before and after it."""
    for window in windows:
        for at, id in enumerate(window):
            candidate = candidates.get(id)
            if candidate is None:
                continue
            if at > 0:
                candidate.before = window[at - 1]
            if at > 1:
                candidate.two_before = window[at - 2]
            if at + 1 < len(window):
                candidate.after = window[at + 1]

"""The items from the time that a question names.

`ranking.dates` reads the expression. Here it is applied to a bank: the items of a span are listed,
and a span that begins with an event ("since the release") gets the time of that event.
"""

import re
from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Struct

from store.database import Connection
from store.model import KINDS, Kind, Query
from store.ranking.candidates import Ranked
from store.ranking.dates import AskedTime, asked_time
from store.ranking.tokenizer import query_terms
from store.rows.items import LIVE, where

MOST: Final = 2_000  # items of a span that are considered, the newest ones
MENTIONS: Final = 50  # items that mention the event with which a span begins
#: The score of an item from the asked time, if the question names no subject.
SCORE: Final = 0.7
#: Kinds that did not happen at their date.
_TIMELESS: Final = frozenset(("chunk", "skill"))
_HAPPENED: Final = re.compile(
    r"\b(?:released|shipped|deployed|launched|published|merged|migrated|moved|switched|upgraded"
    r"|renamed|replaced|rolled out|went live|is (?:out|live|done|over)|done|finished|completed)\b",
    re.I,
)


class Span(Struct, frozen=True, kw_only=True):
    """A span with at least one item."""

    since: int
    until: int
    ids: frozenset[int]
    newest_first: tuple[int, ...]
    is_all: bool  # the question asks for everything in the span

    def contains(self, occurred_at: int) -> bool:
        return self.since <= occurred_at < self.until

    def first(self, ranked: Sequence[Ranked]) -> list[Ranked]:
        """All items of the span, newest first, and then the other results."""
        known = {entry.id: entry for entry in ranked}
        inside = [
            Ranked(
                id=id,
                value=known[id].value if id in known else 0.0,
                score=max(SCORE, known[id].score if id in known else 0.0),
                parts={**(known[id].parts if id in known else {}), "time": 1.0},
            )
            for id in self.newest_first
        ]
        outside = [
            msgspec.structs.replace(entry, score=min(entry.score, SCORE))
            for entry in ranked
            if entry.id not in self.ids
        ]
        return inside + outside


def asked_span(connection: Connection, query: Query, now: int) -> Span | None:
    """The span that the text of a query names, if the bank has items from that time.

    A query with a span in its filters has no other one.
    """
    if query.filters.since is not None or query.filters.until is not None:
        return None
    asked = asked_time(query.text, now)
    if asked is None:
        return None
    since, until = asked.since, asked.until
    if asked.anchor:
        since = _time_of(connection, asked)
        if since is None:
            return None
    kinds = query.kinds or tuple(kind for kind in KINDS if kind not in _TIMELESS)
    begin, end = since or 0, 2**63 - 1 if until is None else until
    ids = _ids(connection, query, kinds, begin, end)
    if not ids:
        return None
    return Span(
        since=begin,
        until=end,
        ids=frozenset(ids),
        newest_first=tuple(ids),
        is_all=asked.is_all,
    )


def _ids(
    connection: Connection, query: Query, kinds: Sequence[Kind], since: int, until: int
) -> list[int]:
    """The newest items of the span. For one kind the index returns them in order of time."""
    filters = msgspec.structs.replace(query.filters, since=since, until=until)
    rows: list[tuple[int, int]] = []
    for kind in kinds:
        condition, values = where(connection.dialect, filters, (kind,))
        rows += connection.execute(
            f"SELECT occurred_at, id FROM items WHERE {condition}"
            " ORDER BY occurred_at DESC, id DESC LIMIT ?",
            (*values, MOST),
        ).fetchall()
    return [id for _, id in sorted(rows, reverse=True)[:MOST]]


def _time_of(connection: Connection, asked: AskedTime) -> int | None:
    """The time of the newest item about an event; one that says that it happened comes first."""
    terms = [term.text for term in query_terms(asked.anchor) if term.weight == 1.0]
    if not terms:
        return None
    ids = connection.words.with_all(terms, MENTIONS, (f"items.kind <> 'chunk' AND {LIVE}", ()))
    rows: list[tuple[int, str]] = connection.execute(
        "SELECT items.occurred_at, items.title || ' ' || items.text FROM items"
        f" WHERE items.id IN ({','.join('?' * len(ids))})",
        ids,
    ).fetchall()
    happened = [time for time, text in rows if _HAPPENED.search(text[:2_000])]
    return max(happened or [time for time, _ in rows], default=None)

"""From what was found to what is around it: its session, its day, its subject."""

from typing import Final

import msgspec
from msgspec import UNSET, Struct

from daemon.dialects.awareness.answers import DayView, SessionView
from daemon.dialects.awareness.language import summaries
from daemon.dialects.awareness.language.keywords import MOST as MOST_TERMS
from daemon.dialects.awareness.language.keywords import keywords_of
from daemon.dialects.awareness.memory import MemoryReader
from daemon.dialects.awareness.reading import bank_overview, passages
from daemon.dialects.awareness.reading.passages import Result
from daemon.tools.toolkit import iso
from store.model import Filters, Found, Hit, Item, Query

SESSIONS: Final = 5
SESSION_CHARACTERS: Final = 8_000
SESSION_EVENTS: Final = 100
LEVEL_SESSIONS: Final = 3
LEVEL_DAYS: Final = 3
CLUSTERS: Final = 2
MEMBERS: Final = 4
#: What is less alike than this is another subject.
RELATED: Final = 0.3


class Levels(Struct, frozen=True, kw_only=True):
    """The sessions and the days that the answers are from."""

    sessions: list[SessionView]
    days: list[DayView]


class Member(Struct, frozen=True, kw_only=True):
    id: str
    kind: str
    content: str
    score: float


class Cluster(Struct, frozen=True, kw_only=True):
    """What else there is on the subject of an answer."""

    topic: str
    around: str
    members: list[Member]


async def whole_sessions(reader: MemoryReader, found: Found, filters: Filters) -> list[Result]:
    """Each answer as the history of the session it is from, oldest event first.

    At most five sessions, best first. An answer that is no event of a history stands before it,
    one that is from no session stands for itself.
    """
    results: list[Result] = []
    seen: set[str] = set()
    for hit in found.hits:
        session = hit.item.session
        if session is None:
            results.append(passages.excerpt(hit))
        elif session not in seen and len(seen) < SESSIONS:
            seen.add(session)
            results.append(await _history(reader, session, hit, filters))
    return results


async def _history(reader: MemoryReader, session: str, hit: Hit, filters: Filters) -> Result:
    page = await reader.engine.timeline(
        reader.bank,
        filters=Filters(session=session, user=filters.user, role=filters.role),
        limit=SESSION_EVENTS,
        newest_first=False,
    )
    if not page.items:
        return passages.excerpt(hit)
    lines = [_line(item) for item in page.items]
    if hit.item.kind not in ("event", "memory"):
        lines.insert(0, _line(hit.item))
    text = "\n".join(lines)
    is_long = len(text) > SESSION_CHARACTERS or page.total > len(page.items)
    if len(text) > SESSION_CHARACTERS:
        text = passages.around(text, summaries.lead(hit.item.text), SESSION_CHARACTERS)
    return Result(
        content=text,
        score=round(hit.score, 4),
        metadata=passages.metadata_of(hit.item, event_count=page.total),
        truncated=True if is_long else UNSET,
    )


def _line(item: Item) -> str:
    return f"[{item.actor or item.kind}] {item.text or item.title}"


async def levels(reader: MemoryReader, found: Found, filters: Filters) -> Levels:
    """Summaries of the sessions and days that the answers are from, in the answers' order."""
    sessions = list(dict.fromkeys(hit.item.session for hit in found.hits if hit.item.session))
    views = [
        await _session_level(reader, session, filters) for session in sessions[:LEVEL_SESSIONS]
    ]
    starts = dict.fromkeys(
        hit.item.occurred_at // bank_overview.DAY_MS * bank_overview.DAY_MS for hit in found.hits
    )
    days: list[DayView] = []
    for start in list(starts)[:LEVEL_DAYS]:
        that_day = Filters(
            user=filters.user, role=filters.role, since=start, until=start + bank_overview.DAY_MS
        )
        days += [
            DayView(date=day.date, narrative=summaries.tell(day.items), count=day.count)
            for day in await reader.engine.days(reader.bank, filters=that_day, limit=1)
        ]
    return Levels(sessions=views, days=days)


async def _session_level(reader: MemoryReader, session: str, filters: Filters) -> SessionView:
    """The summary that was kept of a session, or one that is made now."""
    here = Filters(session=session, user=filters.user, role=filters.role)
    kept = await reader.engine.recent(
        reader.bank,
        kinds=("narrative",),
        filters=msgspec.structs.replace(here, categories=("session",)),
        limit=1,
    )
    if kept.items:
        return bank_overview.session_view(kept.items[0])
    page = await reader.engine.timeline(reader.bank, filters=here, limit=40)
    return SessionView(
        session_id=session,
        summary=summaries.tell(page.items, bank_overview.SUMMARY),
        event_count=page.total,
        date=iso(page.items[0].occurred_at)[:10] if page.items else "",
    )


async def clusters(reader: MemoryReader, found: Found, filters: Filters) -> list[Cluster]:
    """For each of the best answers, what is about the same and was not found itself."""
    told = {hit.item.id for hit in found.hits}
    made: list[Cluster] = []
    for hit in found.hits[:CLUSTERS]:
        text = summaries.clip(f"{hit.item.title}\n{hit.item.text}".strip(), 240)
        near = await reader.engine.search(
            Query(
                bank=reader.bank,
                text=text,
                keywords=keywords_of(text, MOST_TERMS),
                limit=MEMBERS + len(told),
                filters=filters,
                min_score=RELATED,
            )
        )
        members = [other for other in near.hits if other.item.id not in told][:MEMBERS]
        if members:
            told |= {other.item.id for other in members}
            made.append(
                Cluster(
                    topic=summaries.lead(hit.item.title or hit.item.text, 80),
                    around=hit.item.id,
                    members=[
                        Member(
                            id=other.item.id,
                            kind=other.item.kind,
                            content=summaries.clip(other.item.text or other.item.title, 300),
                            score=round(other.score, 4),
                        )
                        for other in members
                    ],
                )
            )
    return made

"""Sessions and the timeline of a bank."""

from functools import partial
from typing import Annotated

from msgspec import Meta, Struct

from daemon.api.filters import FilterArguments
from daemon.api.operation import Operation, operation
from daemon.api.views import Memory, memory_of
from daemon.tools.context import Context
from daemon.tools.toolkit import Toolkit, iso
from store.model import SessionActivity

TAG = "timeline"


class SessionsArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    bank: str
    limit: Annotated[int, Meta(ge=1, le=500)] = 50


class TimelineArguments(FilterArguments, frozen=True, kw_only=True):
    """`days` is the number of days, `each` the number of memories that a day shows."""

    bank: str
    days: Annotated[int, Meta(ge=1, le=366)] = 30
    each: Annotated[int, Meta(ge=1, le=100)] = 20


class SessionView(Struct, frozen=True, kw_only=True):
    """A session that stored something in this bank."""

    id: str
    client: str | None
    transport: str | None
    memories: int
    first_at: str
    last_at: str


class Sessions(Struct, frozen=True, kw_only=True):
    sessions: list[SessionView]


class DayView(Struct, frozen=True, kw_only=True):
    """A day (UTC), the number of its memories, and the latest of them."""

    date: str
    count: int
    memories: list[Memory]


class Timeline(Struct, frozen=True, kw_only=True):
    days: list[DayView]


async def list_sessions(
    toolkit: Toolkit, arguments: SessionsArguments, _context: Context
) -> Sessions:
    """The sessions that stored something in a bank, latest first."""
    found = await toolkit.engine.sessions_in(arguments.bank, limit=arguments.limit)
    return Sessions(sessions=[await _session(toolkit, each) for each in found])


async def get_timeline(
    toolkit: Toolkit, arguments: TimelineArguments, _context: Context
) -> Timeline:
    """The last days with memories, latest first."""
    found = await toolkit.engine.days(
        arguments.bank,
        kinds=arguments.kinds or ("event", "memory"),
        filters=arguments.filters(),
        each=arguments.each,
        limit=arguments.days,
    )
    return Timeline(
        days=[
            DayView(
                date=day.date, count=day.count, memories=[memory_of(item) for item in day.items]
            )
            for day in found
        ]
    )


async def _session(toolkit: Toolkit, activity: SessionActivity) -> SessionView:
    known = await toolkit.engine.sessions.get(activity.id)
    client = None
    if known is not None and known.client_name:
        client = " ".join(part for part in (known.client_name, known.client_version) if part)
    return SessionView(
        id=activity.id,
        client=client,
        transport=known.transport if known is not None else None,
        memories=activity.items,
        first_at=iso(activity.first_at),
        last_at=iso(activity.last_at),
    )


def operations(toolkit: Toolkit) -> list[Operation]:
    add = partial(operation, service=toolkit, tag=TAG)
    return [
        add("GET", "/banks/{bank}/sessions", list_sessions),
        add("GET", "/banks/{bank}/timeline", get_timeline),
    ]

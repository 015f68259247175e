"""What every dialect is built on: the engine, the clock, and how a row remembers where it is from.

Made once by `daemon.app` and handed down. A dialect keeps no state of its own.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from daemon.tools.context import Context
from store.engine import Engine
from store.model import Item, Provenance


class Toolkit(Struct, frozen=True, kw_only=True, eq=False):
    """The engine behind the tools. `now` is unix milliseconds, UTC."""

    engine: Engine
    now: Callable[[], int]
    final_limit: int = 12
    #: What `awareness_get_agent_prompt` wants as `api_key`; empty: nothing.
    api_key: str = ""


def provenance(context: Context, dialect: str, explanation: str | None = None) -> Provenance:
    """By which door a row came and who brought it; its session and time are fields of the row."""
    client = context.client
    return Provenance(
        dialect=dialect,
        client=f"{client.name}/{client.version}"[:200] if client else None,
        transport=context.transport,
        explanation=explanation or None,
    )


def iso(milliseconds: int) -> str:
    """A time as every dialect shows it: ISO 8601 in UTC, `2026-11-16T04:40:01.250Z`."""
    seconds, rest = divmod(milliseconds, 1000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:03d}Z"


#: Kinds whose title is part of what they say; a task's text may be empty without it.
_TITLED: Final = frozenset({"card", "task", "risk", "skill"})


def words_of(item: Item) -> str:
    """What an item says, for a dialect that has one field for it."""
    if item.kind in _TITLED and item.title:
        return f"{item.title}\n{item.text}" if item.text else item.title
    return item.text

"""Toolkit: the engine, the clock and the settings that every dialect uses.

`daemon.app` creates one and passes it down. Dialects keep no state of their own.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, Protocol

from msgspec import Struct

from daemon.tools.answer_size import ANSWER_BYTES
from daemon.tools.context import Context
from daemon.tools.errors import ArgumentsRefused
from store.engine import Engine
from store.model import Item, Provenance


class SourceReport(Struct, frozen=True, kw_only=True):
    """A configured source of documents, as tools show it. `last_sync` is unix milliseconds."""

    name: str
    is_healthy: bool
    last_sync: int | None
    last_error: str | None
    withheld_deletions: int


class SourceDirectory(Protocol):
    """The configured sources of documents; `daemon.sources` implements it."""

    async def reports(self, bank: str) -> list[SourceReport]:
        """The sources whose documents are in this bank."""
        ...

    def is_configured(self, name: str, bank: str) -> bool:
        """Whether the documents of this source in this bank come from a sync."""
        ...


class Toolkit(Struct, frozen=True, kw_only=True, eq=False):
    """The services of the tools. `now` is unix milliseconds, UTC."""

    engine: Engine
    now: Callable[[], int]
    final_limit: int = 12
    #: The `api_key` that `awareness_get_agent_prompt` requires; empty if it requires none.
    api_key: str = ""
    #: Banks whose skills are delivered to the sessions of all banks.
    skill_banks: tuple[str, ...] = ()
    #: `limits.answer_bytes`.
    answer_bytes: int = ANSWER_BYTES
    #: None in a process without sources.
    sources: SourceDirectory | None = None


def provenance(context: Context, dialect: str, explanation: str | None = None) -> Provenance:
    """The dialect, client and transport that a row came from."""
    client = context.client
    return Provenance(
        dialect=dialect,
        client=f"{client.name}/{client.version}"[:200] if client else None,
        transport=context.transport,
        explanation=explanation or None,
    )


def iso(milliseconds: int) -> str:
    """A time as ISO 8601 in UTC, such as `2026-11-16T04:40:01.250Z`."""
    seconds, rest = divmod(milliseconds, 1000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:03d}Z"


#: Kinds whose title is part of their content; the text of a task may be empty.
_TITLED: Final = frozenset({"card", "task", "risk", "skill"})


def milliseconds(field: str, text: str) -> int:
    """A time in ISO 8601 as unix milliseconds; without an offset it is UTC."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ArgumentsRefused(
            f"{field}: {text[:40]!r} is not a time in ISO 8601, such as 2026-11-16T10:00:00Z"
        ) from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def full_text(item: Item) -> str:
    """Title and text of an item, for a dialect that has one field for both."""
    if item.kind in _TITLED and item.title:
        return f"{item.title}\n{item.text}" if item.text else item.title
    return item.text

"""Memories: this dialect's name for banks. Finds one to read from, or one to write to.

Reading creates nothing. The default memory is read as an empty one until something is written to
it. Any other memory that does not exist is an error: an empty answer would hide a misspelt id.
"""

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from msgspec import Struct

from daemon.tools.context import Context
from daemon.tools.errors import Missing
from daemon.tools.toolkit import Toolkit, provenance
from store.engine import ANY
from store.errors import BankExists, BankNotFound, NotFound
from store.model import (
    AgentProfile,
    Card,
    Day,
    Filters,
    Found,
    Item,
    Kind,
    Page,
    Provenance,
    Query,
    Risk,
    Skill,
    Task,
)

NAME: Final = "awareness"


class Reads(Protocol):
    """The operations of the engine that read a memory."""

    async def search(self, query: Query) -> Found: ...
    async def recent(
        self, bank: str, *, kinds: Sequence[Kind] = (), filters: Filters = ANY, limit: int = 20
    ) -> Page: ...
    async def timeline(
        self,
        bank: str,
        *,
        filters: Filters = ANY,
        limit: int = 50,
        offset: int = 0,
        newest_first: bool = True,
    ) -> Page: ...
    async def days(
        self, bank: str, *, filters: Filters = ANY, each: int = 12, limit: int = 90
    ) -> list[Day]: ...
    async def chunks(self, bank: str, document: str) -> list[Item]: ...
    async def card(self, bank: str, id: str) -> Card: ...
    async def cards(
        self, bank: str, *, filters: Filters = ANY, limit: int = 50, offset: int = 0
    ) -> tuple[list[Card], int]: ...
    async def tasks(
        self, bank: str, *, filters: Filters = ANY, limit: int = 50, offset: int = 0
    ) -> tuple[list[Task], int]: ...
    async def risks(
        self, bank: str, *, filters: Filters = ANY, limit: int = 50, offset: int = 0
    ) -> tuple[list[Risk], int]: ...
    async def skills(
        self, bank: str, *, filters: Filters = ANY, limit: int = 50
    ) -> list[Skill]: ...
    async def profiles(self, bank: str) -> list[AgentProfile]: ...


class EmptyMemory:
    """The answers of a memory that nothing was written to. It touches no storage."""

    async def search(self, query: Query) -> Found:
        return Found(mode=query.mode)

    async def recent(
        self, bank: str, *, kinds: Sequence[Kind] = (), filters: Filters = ANY, limit: int = 20
    ) -> Page:
        return Page(items=(), total=0)

    async def timeline(
        self,
        bank: str,
        *,
        filters: Filters = ANY,
        limit: int = 50,
        offset: int = 0,
        newest_first: bool = True,
    ) -> Page:
        return Page(items=(), total=0)

    async def days(
        self, bank: str, *, filters: Filters = ANY, each: int = 12, limit: int = 90
    ) -> list[Day]:
        return []

    async def chunks(self, bank: str, document: str) -> list[Item]:
        raise NotFound("document", document)

    async def card(self, bank: str, id: str) -> Card:
        raise NotFound("card", id)

    async def cards(
        self, bank: str, *, filters: Filters = ANY, limit: int = 50, offset: int = 0
    ) -> tuple[list[Card], int]:
        return [], 0

    async def tasks(
        self, bank: str, *, filters: Filters = ANY, limit: int = 50, offset: int = 0
    ) -> tuple[list[Task], int]:
        return [], 0

    async def risks(
        self, bank: str, *, filters: Filters = ANY, limit: int = 50, offset: int = 0
    ) -> tuple[list[Risk], int]:
        return [], 0

    async def skills(self, bank: str, *, filters: Filters = ANY, limit: int = 50) -> list[Skill]:
        return []

    async def profiles(self, bank: str) -> list[AgentProfile]:
        return []


_EMPTY: Final = EmptyMemory()


class MemoryReader(Struct, frozen=True, kw_only=True, eq=False):
    """A memory to read from. `now` is unix milliseconds, UTC."""

    bank: str
    engine: Reads
    now: Callable[[], int]


async def to_read(toolkit: Toolkit, context: Context, memory_id: str) -> MemoryReader:
    """The memory to read; raises `Missing` unless it exists or is the default one."""
    name = memory_id or context.bank
    try:
        found = await toolkit.engine.bank(name)
    except BankNotFound:
        if name != context.bank:
            raise Missing(f"Memory '{memory_id}' not found.") from None
        return MemoryReader(bank=name, engine=_EMPTY, now=toolkit.now)
    return MemoryReader(bank=found.name, engine=toolkit.engine, now=toolkit.now)


async def installed(toolkit: Toolkit, context: Context, bank: str) -> list[str]:
    """The other memories whose skills this caller gets.

    They are the ones in `server.skill_banks` that the caller may read, and the ones that its token
    names. The owner may read every bank; without that setting it gets the skills of none of them,
    because the banks of two projects have nothing to do with each other.
    """
    granted = context.principal.banks
    wanted = [name for name in toolkit.skill_banks if granted is None or name in granted]
    wanted += sorted(granted or ())
    known = {each.name for each in await toolkit.engine.banks()}
    return [name for name in dict.fromkeys(wanted) if name != bank and name in known]


async def to_write(toolkit: Toolkit, context: Context, memory_id: str) -> str:
    """The bank to write to, created if it does not exist."""
    name = memory_id or context.bank
    try:
        return (await toolkit.engine.bank(name)).name
    except BankNotFound:
        pass
    try:
        return (await toolkit.engine.create_bank(name)).name
    except BankExists:  # created by another call in the meantime
        return (await toolkit.engine.bank(name)).name


def filters_for(
    user_id: str, agent_role: str = "", session_id: str = "", *, or_shared: bool = False
) -> Filters:
    """Filters for the labels of a call; an empty label does not filter.

    With `or_shared`, items that belong to no user are shared by all users and pass too.
    """
    return Filters(
        user=user_id or None,
        or_shared=or_shared,
        role=agent_role or None,
        session=session_id or None,
    )


def provenance_of(context: Context) -> Provenance:
    return provenance(context, NAME)

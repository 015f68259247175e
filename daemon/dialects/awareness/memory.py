"""A memory, as this dialect calls a bank: found by its id, created by writing, filtered by people.

The default memory always exists. Another one that nothing was written to is an error to read: an
empty answer would hide a misspelt id.
"""

from daemon.tools.context import Context
from daemon.tools.errors import Missing
from daemon.tools.toolkit import Toolkit, provenance
from store.errors import BankExists, BankNotFound
from store.model import Filters, Provenance

NAME = "awareness"


async def to_read(toolkit: Toolkit, context: Context, memory_id: str) -> str:
    """The bank to read from; the default one is made if need be, another one must be there."""
    name = memory_id or context.bank
    try:
        return toolkit.engine.bank(name).name
    except BankNotFound:
        if memory_id and memory_id != context.bank:
            raise Missing(f"Memory '{memory_id}' not found.") from None
        return await to_write(toolkit, context, memory_id)


async def to_write(toolkit: Toolkit, context: Context, memory_id: str) -> str:
    """The bank to write to, made if need be."""
    name = memory_id or context.bank
    try:
        return toolkit.engine.bank(name).name
    except BankNotFound:
        pass
    try:
        return (await toolkit.engine.create_bank(name)).name
    except BankExists:  # somebody else was quicker
        return toolkit.engine.bank(name).name


def people(user_id: str, agent_role: str = "", session_id: str = "") -> Filters:
    return Filters(user=user_id or None, role=agent_role or None, session=session_id or None)


def from_here(context: Context) -> Provenance:
    return provenance(context, NAME)

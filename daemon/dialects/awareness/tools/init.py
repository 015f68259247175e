"""`awareness_init`: opens a session and returns an overview of the memory.

A read-only caller gets the same overview under the session of its connection. It cannot record
anything, so no session and no bank are created for it.
"""

import re
import secrets
from datetime import UTC, datetime
from typing import Final

from msgspec import UNSET, Struct, UnsetType

from daemon.dialects.awareness import memory, roles, rules
from daemon.dialects.awareness.answers import ProfileView, SkillView
from daemon.dialects.awareness.arguments import InitArguments, at_least, check_labels
from daemon.dialects.awareness.reading import bank_overview
from daemon.tools.context import Context
from daemon.tools.toolkit import Toolkit

MOST: Final = 100
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_-]+")


class Initialised(Struct, frozen=True, kw_only=True):
    session_id: str
    memory_id: str
    context: bank_overview.MemoryContext
    agent_profiles: list[ProfileView]
    active_skills: list[SkillView] | UnsetType
    setup_hints: rules.SetupHints | UnsetType


class Init:
    def __init__(self, toolkit: Toolkit) -> None:
        self._toolkit = toolkit

    async def __call__(self, arguments: InitArguments, context: Context) -> Initialised:
        days = at_least("days", arguments.days, 1, bank_overview.MOST_DAYS)
        max_cards = at_least("max_cards", arguments.max_cards, 0, MOST)
        max_tasks = at_least("max_tasks", arguments.max_tasks, 0, MOST)
        check_labels(
            source=arguments.source, user_id=arguments.user_id, agent_role=arguments.agent_role
        )
        can_write = context.principal.can_write
        if can_write:
            await memory.to_write(self._toolkit, context, arguments.memory_id)
        reader = await memory.to_read(self._toolkit, context, arguments.memory_id)
        # The role labels the session; it does not filter the overview.
        filters = memory.filters_for(arguments.user_id, or_shared=True)
        overview = await bank_overview.overview(
            reader,
            days=days,
            max_cards=max_cards,
            max_tasks=max_tasks,
            filters=filters,
        )
        installed = await memory.installed(self._toolkit, context, reader.bank)
        skills = await bank_overview.active_skills(reader, filters, installed)
        profiles = roles.views(await reader.engine.profiles(reader.bank))
        session = self._mint(reader.bank, arguments, context) if can_write else context.session()
        return Initialised(
            session_id=await session,
            memory_id=reader.bank,
            context=overview,
            agent_profiles=profiles,
            active_skills=skills or UNSET,
            setup_hints=rules.hints_for(arguments.source) or UNSET,
        )

    async def _mint(self, bank: str, arguments: InitArguments, context: Context) -> str:
        """Create a session for the events that this caller will record."""
        session = await self._toolkit.engine.sessions.mint(
            id=session_id(arguments.source, self._toolkit.now()),
            transport=context.transport,
            client_name=context.client.name if context.client else None,
            client_version=context.client.version if context.client else None,
            bank=bank,
            source=arguments.source or None,
            agent_role=arguments.agent_role or None,
        )
        return session.id


def session_id(source: str, now: int) -> str:
    """A readable, sortable, unique id such as `aw-cursor-20261116044001-3f9a1c…`."""
    label = _UNSAFE.sub("-", source).strip("-")[:40] or "session"
    moment = datetime.fromtimestamp(now // 1000, UTC)
    return f"aw-{label}-{moment:%Y%m%d%H%M%S}-{secrets.token_hex(6)}"

"""Agent profiles among submitted insights: roles to create, to change and to delete.

An entry names a role. If the memory has a profile of that role, the given fields replace its
fields and the others stay; otherwise the profile is created. `"delete": true` deletes it. Built-in
roles can be neither changed nor deleted.
"""

from typing import Any, cast

import msgspec
from msgspec import Struct

from daemon.dialects.awareness import roles
from daemon.dialects.awareness.writing.insight_parsing import ParsingReport
from daemon.tools.toolkit import Toolkit
from store.errors import BankNotFound
from store.model import AgentProfile


class ProfileChanges(Struct, frozen=True, kw_only=True):
    stored: tuple[AgentProfile, ...] = ()
    deleted: tuple[str, ...] = ()


async def read_changes(
    toolkit: Toolkit, bank: str, entries: list[tuple[str, Any]], report: ParsingReport
) -> ProfileChanges:
    """The changes that these entries ask for; entries that cannot be applied are reported."""
    if not entries:
        return ProfileChanges()
    try:
        known = {each.agent_role: each for each in await toolkit.engine.profiles(bank)}
    except BankNotFound:
        known = {}
    stored: dict[str, AgentProfile] = {}
    deleted: list[str] = []
    for place, entry in entries:
        if not isinstance(entry, dict):
            report.reject(place, "must be an object")
            continue
        given = dict(cast("dict[str, Any]", entry))
        is_deletion = given.pop("delete", False)
        role = given.get("agent_role")
        if not isinstance(role, str) or not role.strip():
            report.reject(place, "agent_role: must be a text that is not empty")
        elif roles.built_in(role) is not None:
            report.reject(place, f"agent_role: '{role}' is a built-in role; choose another name")
        elif not isinstance(is_deletion, bool):
            report.reject(place, "delete: must be true or false")
        elif role in stored or role in deleted:
            report.reject(place, f"agent_role: '{role}' occurs twice")
        elif is_deletion and role not in known:
            report.reject(place, f"agent_role: no stored profile '{role}' in this memory")
        elif is_deletion:
            deleted.append(role)
        else:
            profile = _changed(place, given, known.get(role), report)
            if profile is not None:
                stored[role] = profile
    return ProfileChanges(stored=tuple(stored.values()), deleted=tuple(deleted))


def _changed(
    place: str, given: dict[str, Any], known: AgentProfile | None, report: ParsingReport
) -> AgentProfile | None:
    fields = set(AgentProfile.__struct_fields__)
    unknown = sorted(set(given) - fields)
    if unknown:
        report.correct(place, f"profiles have no {', '.join(unknown)}: left out")
    before: dict[str, Any] = {} if known is None else msgspec.to_builtins(known)
    try:
        return msgspec.convert(
            before | {name: value for name, value in given.items() if name in fields}, AgentProfile
        )
    except msgspec.ValidationError as error:
        report.reject(place, str(error).replace("`", "").replace("$.", ""))
        return None

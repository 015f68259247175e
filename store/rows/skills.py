"""Skills, narratives and agent profiles, which agents read before they begin their work."""

from typing import Any, Final

import msgspec
from msgspec import Struct

from store.database import Connection
from store.errors import NotFound
from store.model import (
    AgentProfile,
    Filters,
    Item,
    Narrative,
    NewMemory,
    NewNarrative,
    NewSkill,
    Put,
    Skill,
)
from store.rows.items import SELECT, item_of, where
from store.rows.listing import listing
from store.rows.memories import put
from store.rows.prepared import prepare
from store.rows.table import Table
from store.rows.transaction import WriteTransaction
from store.validate import check_labels, check_list, check_text

_profile: Final = msgspec.json.Decoder(AgentProfile).decode


class ProfileRow(Struct, frozen=True):
    """A row of the table `profiles`."""

    agent_role: str
    fields: str  # JSON
    updated_at: int


PROFILES: Final = Table("profiles", ProfileRow, noun="agent profile")
_PUT_PROFILE: Final = (
    f"{PROFILES.insert_statement} ON CONFLICT (agent_role) DO UPDATE SET fields = excluded.fields,"
    " updated_at = excluded.updated_at, digest = excluded.digest"
)


def put_skill(transaction: WriteTransaction, skill: NewSkill, now: int) -> Put:
    """Store a skill. It replaces a skill with the same name."""
    check_text("name", skill.name, empty=False)
    check_text("summary", skill.summary, empty=False)
    check_list("methods", skill.methods)
    check_list("triggers", skill.triggers)
    details: dict[str, Any] = {}
    if skill.methods:
        details["methods"] = list(skill.methods)
    if skill.triggers:
        details["triggers"] = list(skill.triggers)
    new = NewMemory(
        kind="skill",
        title=skill.name,
        text=skill.summary,
        key=skill.name.casefold(),
        tags=skill.tags,
        session=skill.session,
        source=skill.source,
        user=skill.user,
        role=skill.role,
        metadata=skill.metadata,
        details=details,
        provenance=skill.provenance,
    )
    return put(transaction, prepare(new, now))


def skills(connection: Connection, filters: Filters, *, limit: int) -> list[Skill]:
    """Skills, newest first."""
    found = listing(connection, kinds=("skill",), filters=filters, limit=limit, by="arrival")
    return [skill_of(item) for item in found.items]


def put_narrative(transaction: WriteTransaction, narrative: NewNarrative, now: int) -> Put:
    """Store the summary of a span. It replaces an older summary of the same span."""
    check_labels(span=narrative.span, name=narrative.name)
    # A title is searched. The id of a session is no subject of its summary.
    is_named_by_session = narrative.name == narrative.session and narrative.text.strip()
    new = NewMemory(
        kind="narrative",
        title="" if is_named_by_session else narrative.name,
        text=narrative.text,
        category=narrative.span,
        key="\n".join((narrative.span, narrative.name, narrative.user or "", narrative.role or "")),
        session=narrative.session,
        user=narrative.user,
        role=narrative.role,
        details={"count": narrative.count},
        provenance=narrative.provenance,
    )
    return put(transaction, prepare(new, now))


def narratives(
    connection: Connection, *, span: str, limit: int, filters: Filters
) -> list[Narrative]:
    """Narratives of a span in descending order of name, which for days is the order of time."""
    wanted = msgspec.structs.replace(filters, categories=(span,))
    condition, values = where(connection.dialect, wanted, ("narrative",))
    rows = connection.execute(
        f"{SELECT} WHERE {condition} ORDER BY items.title DESC, items.id DESC LIMIT ?",
        [*values, limit],
    )
    return [narrative_of(item_of(row)) for row in rows]


def check_profile(profile: AgentProfile) -> None:
    check_text("agent_role", profile.agent_role, limit=256, empty=False)
    for field, value in msgspec.to_builtins(profile).items():
        if isinstance(value, str):
            check_text(field, value)
        else:
            check_list(field, value)


def put_profile(connection: Connection, profile: AgentProfile, now: int) -> None:
    check_profile(profile)
    connection.execute(_PUT_PROFILE, PROFILES.written(profile_row(profile, now)))


def profile(connection: Connection, agent_role: str) -> AgentProfile:
    columns = connection.execute(
        f"{PROFILES.select} WHERE agent_role = ?", (agent_role,)
    ).fetchone()
    if columns is None:
        raise NotFound("agent profile", agent_role)
    return profile_of(PROFILES.read(columns))


def profiles(connection: Connection) -> list[AgentProfile]:
    rows = connection.execute(f"{PROFILES.select} ORDER BY agent_role")
    return [profile_of(PROFILES.read(columns)) for columns in rows]


def delete_profile(connection: Connection, agent_role: str) -> None:
    deleted = connection.execute("DELETE FROM profiles WHERE agent_role = ?", (agent_role,))
    if not deleted.rowcount:
        raise NotFound("agent profile", agent_role)


def skill_of(item: Item) -> Skill:
    return Skill(
        id=item.id,
        name=item.title,
        summary=item.text,
        methods=tuple(item.details.get("methods", ())),
        triggers=tuple(item.details.get("triggers", ())),
        tags=item.tags,
        item=item,
    )


def narrative_of(item: Item) -> Narrative:
    return Narrative(
        id=item.id,
        span=item.category or "",
        name=item.title or item.session or "",
        text=item.text,
        count=int(item.details.get("count", 0)),
        item=item,
    )


def profile_of(row: ProfileRow) -> AgentProfile:
    return _profile(row.fields)


def profile_row(profile: AgentProfile, updated_at: int) -> ProfileRow:
    fields = msgspec.json.encode(profile).decode()
    return ProfileRow(agent_role=profile.agent_role, fields=fields, updated_at=updated_at)

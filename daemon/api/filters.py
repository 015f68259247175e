"""Filters that lists, searches and bulk operations of the API share."""

from typing import Any

from msgspec import Struct

from daemon.tools.toolkit import milliseconds
from store.model import Filters, Kind


class FilterArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Conditions on memories. Lists accept any of their values, `tags` requires all of them.

    Times are ISO 8601; `since` is inclusive and `until` exclusive.
    """

    kinds: tuple[Kind, ...] = ()
    sources: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    session: str | None = None
    user: str | None = None
    role: str | None = None
    document: str | None = None
    contains: str | None = None
    since: str | None = None
    until: str | None = None
    include_superseded: bool = True

    def filters(self) -> Filters:
        return Filters(
            sources=self.sources,
            categories=self.categories,
            statuses=self.statuses,
            tags=self.tags,
            session=self.session,
            user=self.user,
            role=self.role,
            document=self.document,
            contains=self.contains or None,
            since=_milliseconds("since", self.since),
            until=_milliseconds("until", self.until),
            include_superseded=self.include_superseded,
        )


#: The names of the filters, for arguments that contain them beside others.
NAMES: tuple[str, ...] = FilterArguments.__struct_fields__


def _milliseconds(field: str, text: str | None) -> int | None:
    return None if text is None else milliseconds(field, text)


def is_empty(filters: Any) -> bool:
    """Whether no condition is given at all."""
    return all(getattr(filters, name) in ((), None, True) for name in NAMES)

"""Summaries of a bank for people: frequent values, growth by day, and a map by meaning."""

from functools import partial
from typing import Annotated, Final

from msgspec import Meta, Struct

from daemon.api.filters import FilterArguments
from daemon.api.operation import Operation, operation
from daemon.tools.answer_size import fitting
from daemon.tools.context import Context
from daemon.tools.toolkit import Toolkit, iso
from store.model import Facets, GrowthDay

TAG: Final = "overview"
ENVELOPE_BYTES: Final = 1024
METHOD: Final = "principal components, pulled towards the nearest neighbours"


class FacetArguments(FilterArguments, frozen=True, kw_only=True):
    bank: str


class GrowthArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    bank: str
    days: Annotated[int, Meta(ge=1, le=3_660)] = 90


class MapArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    bank: str
    limit: Annotated[int, Meta(ge=1, le=10_000)] = 2_000


class Growth(Struct, frozen=True, kw_only=True):
    """The last days, oldest first, also those without memories."""

    days: list[GrowthDay]


class MapPointView(Struct, frozen=True, kw_only=True):
    """A memory and its place, from -1 to 1."""

    id: str
    x: float
    y: float
    kind: str
    session: str | None
    at: str
    label: str


class MemoryMap(Struct, frozen=True, kw_only=True):
    """The newest memories with vectors. `stale` is true while vectors are being computed."""

    points: list[MapPointView]
    total: int
    method: str
    stale: bool


async def get_facets(toolkit: Toolkit, arguments: FacetArguments, _context: Context) -> Facets:
    """The most frequent kinds, sources, categories, tags, sessions and clients."""
    return await toolkit.engine.facets(
        arguments.bank, kinds=arguments.kinds, filters=arguments.filters()
    )


async def get_growth(toolkit: Toolkit, arguments: GrowthArguments, _context: Context) -> Growth:
    """The memories of each day by their own time, and the total at its end."""
    return Growth(days=await toolkit.engine.growth(arguments.bank, days=arguments.days))


async def get_map(toolkit: Toolkit, arguments: MapArguments, _context: Context) -> MemoryMap:
    """A map of the memories by meaning. The same content always gives the same map."""
    found = await toolkit.engine.map(arguments.bank, limit=arguments.limit)
    pending = await toolkit.engine.pending_vectors()
    views = (
        MapPointView(
            id=point.id,
            x=point.x,
            y=point.y,
            kind=point.kind,
            session=point.session,
            at=iso(point.occurred_at),
            label=point.label,
        )
        for point in found.points
    )
    return MemoryMap(
        points=fitting(views, toolkit.answer_bytes - ENVELOPE_BYTES),
        total=found.total,
        method=METHOD,
        stale=arguments.bank in pending,
    )


def operations(toolkit: Toolkit) -> list[Operation]:
    add = partial(operation, service=toolkit, tag=TAG)
    return [
        add("GET", "/banks/{bank}/facets", get_facets),
        add("GET", "/banks/{bank}/growth", get_growth),
        add("GET", "/banks/{bank}/map", get_map),
    ]

"""Search with an explanation of each hit, and the hits that were nearly returned."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated

from msgspec import Meta, Struct

from daemon.api.filters import FilterArguments
from daemon.api.operation import Operation, operation
from daemon.api.views import Memory, memory_of
from daemon.tools.answer_size import fitting
from daemon.tools.context import Context
from daemon.tools.errors import ArgumentsRefused
from daemon.tools.toolkit import Toolkit
from store.model import Filters, Hit, Mode, Query

TAG = "search"
ENVELOPE_BYTES = 4096


class SearchArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question. `near_misses` asks for that many hits below `min_score`."""

    bank: str
    query: Annotated[str, Meta(min_length=1)]
    mode: Mode = "hybrid"
    limit: Annotated[int, Meta(ge=1, le=100)] = 10
    min_score: Annotated[float, Meta(ge=0, le=1)] = 0.0
    near_misses: Annotated[int, Meta(ge=0, le=50)] = 0
    explain: bool = False
    where: FilterArguments | None = None


class Match(Struct, frozen=True, kw_only=True):
    """A hit: the memory, its score from 0 to 1, a snippet and the places that match.

    `parts` explains the score: the contributions of words, meaning, context and boosts.
    """

    memory: Memory
    score: float
    snippet: str
    matches: tuple[tuple[int, int], ...]
    parts: Mapping[str, float] | None


class Answer(Struct, frozen=True, kw_only=True):
    """The hits, best first. `below` counts the hits under `min_score`.

    `mode` is the mode that was used; `degraded` says why it is not the requested one.
    `omitted` counts hits that did not fit into the answer.
    """

    hits: list[Match]
    near_misses: list[Match]
    below: int
    omitted: int
    mode: str
    degraded: tuple[str, ...]


async def search_memories(
    toolkit: Toolkit, arguments: SearchArguments, _context: Context
) -> Answer:
    """Search a bank by words and meaning, with an explanation of each hit."""
    if not arguments.query.strip():
        raise ArgumentsRefused("query: must not be empty")
    where = arguments.where
    filters = where.filters() if where is not None else Filters()
    found = await toolkit.engine.search(
        Query(
            bank=arguments.bank,
            text=arguments.query,
            mode=arguments.mode,
            limit=arguments.limit + arguments.near_misses,
            kinds=where.kinds if where is not None else (),
            filters=filters,
            min_score=0.0 if arguments.near_misses else arguments.min_score,
            explain=arguments.explain,
        )
    )
    good = [hit for hit in found.hits if hit.score >= arguments.min_score]
    below = [hit for hit in found.hits if hit.score < arguments.min_score]
    hits = fitting(map(_match, good[: arguments.limit]), toolkit.answer_bytes // 2 - ENVELOPE_BYTES)
    near = fitting(
        map(_match, below[: arguments.near_misses]), toolkit.answer_bytes // 2 - ENVELOPE_BYTES
    )
    return Answer(
        hits=hits,
        near_misses=near,
        below=found.below or len(below),
        omitted=len(good[: arguments.limit]) - len(hits),
        mode=found.mode,
        degraded=found.degraded,
    )


def _match(hit: Hit) -> Match:
    return Match(
        memory=memory_of(hit.item),
        score=round(hit.score, 4),
        snippet=hit.snippet,
        matches=hit.matches,
        parts=hit.parts,
    )


def operations(toolkit: Toolkit) -> list[Operation]:
    add = partial(operation, service=toolkit, tag=TAG)
    question = {"query": "when do we release?", "explain": True, "near_misses": 3}
    return [
        add(
            "POST",
            "/banks/{bank}/search",
            search_memories,
            reads=True,
            example=question,
            fields={"text": "query"},
        )
    ]

"""The order of search results by date where their relevance is nearly equal.

A newer memory may correct an older one ("we deploy on Tuesdays", "… on Wednesdays now"), so it
comes first. Only the order changes, never the set of results.
"""

from collections.abc import Sequence
from typing import Final

from store.model import Hit

#: Results whose values differ by less are nearly equal. Values of good results are about 0.5 to 1.
NEARLY: Final = 0.05


def newer_first(hits: Sequence[Hit]) -> list[Hit]:
    """The hits, with the newer ones first among those of nearly equal value.

    The value is in `Hit.parts`, so the query needs `explain`; without it the score is used.
    """
    ordered: list[Hit] = []
    rest = list(hits)
    while rest:
        least = _value(rest[0]) - NEARLY
        equal = [hit for hit in rest if _value(hit) >= least]
        ordered += sorted(equal, key=lambda hit: -hit.item.occurred_at)
        rest = [hit for hit in rest if _value(hit) < least]
    return ordered


def _value(hit: Hit) -> float:
    return hit.score if hit.parts is None else hit.parts.get("value", hit.score)

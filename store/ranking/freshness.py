"""The order of search results by date where their relevance is nearly equal.

A newer memory may correct an older one ("we deploy on Tuesdays", "… on Wednesdays now"), so it
comes first. Only the order changes, never the set of results.

Turns of a conversation with a speaker and chunks of documents keep their order: their dates say
nothing about which of them is valid.
"""

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from store.model import Hit, Item
from store.ranking.candidates import Ranked
from store.ranking.tokenizer import query_terms
from store.ranking.turns import turn_of

#: Results whose values differ by less are nearly equal. Values of good results are about 0.5 to 1.
NEARLY: Final = 0.05
#: The same for any two results, for two about one subject, and if the newer one says that
#: something changed. The first is small, because results on two subjects compete by relevance.
_NEARLY_ANY: Final = 0.01
_NEARLY_SUBJECT: Final = 0.1
_NEARLY_CORRECTED: Final = 0.35
_SUBJECT: Final = 0.5  # the share of common words from which two short texts have one subject
_READ_CHARACTERS: Final = 1_000
_COMPARED: Final = 20  # results after a result that are compared with it

_CORRECTS: Final = re.compile(
    r"\b(?:now|no longer|not any ?more|instead|from now on|as of|changed|moved|switched|replaced"
    r"|replaces|since then|anymore|update[ds]?|correction|new)\b",
    re.I,
)


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


def successors_first(results: Sequence[tuple[Ranked, Item]]) -> list[tuple[Ranked, Item]]:
    """The results, with a newer one before an older one of nearly equal value.

    Two results about one subject may differ more, and most if the newer one says that something
    changed. A result that moves up gets the score of the place, so that scores never rise down
    the list.
    """
    if len(results) < 2 or len({item.occurred_at for _, item in results}) < 2:
        return list(results)
    words = {item.rowid: _words(item) for _, item in results}
    ordered: list[tuple[Ranked, Item]] = []
    for entry in results:
        place = len(ordered)
        for at in range(max(0, len(ordered) - _COMPARED), len(ordered)):
            if _succeeds(entry, ordered[at], words):
                place = at
                break
        ordered.insert(place, entry)
    scores = sorted((entry.score for entry, _ in results), reverse=True)
    return [
        (msgspec.structs.replace(entry, score=score), item)
        for (entry, item), score in zip(ordered, scores, strict=True)
    ]


def _succeeds(
    new: tuple[Ranked, Item], old: tuple[Ranked, Item], words: dict[int, frozenset[str]]
) -> bool:
    """Whether a result that is less relevant belongs before an older one all the same."""
    (new_rank, new_item), (old_rank, old_item) = new, old
    ours, theirs = words[new_item.rowid], words[old_item.rowid]
    if new_item.occurred_at <= old_item.occurred_at or not ours or not theirs:
        return False
    distance = old_rank.value - new_rank.value
    if distance < _NEARLY_ANY:
        return True
    if distance >= _NEARLY_CORRECTED:
        return False
    has_subject = len(ours & theirs) >= _SUBJECT * min(len(ours), len(theirs))
    if has_subject and _CORRECTS.search(new_item.text[:_READ_CHARACTERS]):
        return True
    return has_subject and distance < _NEARLY_SUBJECT


def _words(item: Item) -> frozenset[str]:
    """The significant words of a statement; none for a turn with a speaker and for a chunk."""
    text = item.text[:_READ_CHARACTERS]
    if item.kind == "chunk" or turn_of(text, in_session=item.session is not None).speaker:
        return frozenset()
    terms = query_terms(f"{item.title}\n{text}")
    return frozenset(term.text for term in terms if term.weight == 1.0)


def _value(hit: Hit) -> float:
    return hit.score if hit.parts is None else hit.parts.get("value", hit.score)

"""Telling what happened in a few lines, by choosing among the sentences that were recorded.

No model writes here: a narrative is made of the events' own first sentences, those that weigh most
(decisions, faults and open work before chatter), in the order they happened.
"""

import re
from collections.abc import Sequence
from typing import Final

from store.model import Item

DAY_CHARACTERS: Final = 400
SUMMARY_CHARACTERS: Final = 800
SENTENCE: Final = 160

_WEIGHTS: Final = {"decision": 5, "issue": 4, "planning": 3, "file_diff": 2, "message": 1}
_STATUS_WEIGHTS: Final = {"open": 2, "in_progress": 1, "resolved": 2}
_END: Final = re.compile(r"(?<=[.!?。！？])\s+|\n")


def clip(text: str, characters: int) -> str:
    """The text, or as much of it as fits, cut between words, and a sign that it goes on."""
    if len(text) <= characters:
        return text
    cut = text[: characters - 1]
    head, blank, _ = cut.rpartition(" ")
    return (head if blank and len(head) > characters // 2 else cut).rstrip(" ,;:") + "…"


def lead(text: str, characters: int = SENTENCE) -> str:
    """The first sentence that says something."""
    first = next((part for part in _END.split(text.strip()) if len(part.strip()) > 2), text)
    return clip(" ".join(first.split()), characters)


def tell(events: Sequence[Item], characters: int = DAY_CHARACTERS) -> str:
    """A narrative of these events, at most so many characters long."""
    ranked = sorted(enumerate(events), key=lambda entry: (-_weight(entry[1]), entry[0]))
    chosen: dict[int, str] = {}
    said: set[str] = set()
    room = characters
    for position, event in ranked:
        sentence = lead(event.title or event.text)
        if sentence.casefold() in said or len(sentence) + 1 > room:
            continue
        said.add(sentence.casefold())
        chosen[position] = sentence if sentence[-1:] in ".!?…。" else sentence + "."
        room -= len(chosen[position]) + 1
    order = sorted(chosen, key=lambda at: (events[at].occurred_at, events[at].rowid))
    return " ".join(chosen[at] for at in order)


def _weight(event: Item) -> float:
    weight = _WEIGHTS.get(event.event_type or "message", 1)
    weight += _STATUS_WEIGHTS.get(event.status or "", 0)
    if event.event_type == "tool_call":
        weight -= 1
    # "ok" and "thanks" tell nothing, whatever their type.
    return weight + (event.salience or 0.0) - (3 if len(event.text) < 25 else 0)

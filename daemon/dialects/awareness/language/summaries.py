"""Extractive summaries: a few lines chosen from the sentences that were recorded.

No language model is involved. A summary consists of the first sentences of the heaviest events
(decisions, faults and open work before small talk), in the order in which the events happened.
"""

import re
from collections.abc import Sequence
from typing import Final

from store.model import Item

DAY_CHARACTERS: Final = 400
SUMMARY_CHARACTERS: Final = 800
SENTENCE: Final = 160
#: Length of the beginning of a text in which its first sentence is looked for.
READ_CHARACTERS: Final = 4_000

_WEIGHTS: Final = {"decision": 5, "issue": 4, "planning": 3, "file_diff": 2, "message": 1}
# Open work comes first, so that a narrative names it until it is resolved.
_STATUS_WEIGHTS: Final = {"open": 6, "in_progress": 1, "resolved": 2}
_END: Final = re.compile(r"(?<=[.!?。！？])\s+|\n")


def clip(text: str, characters: int) -> str:
    """The text, cut between words and marked with "…" if it is longer than `characters`."""
    if len(text) <= characters:
        return text
    cut = text[: characters - 1]
    head, blank, _ = cut.rpartition(" ")
    return (head if blank and len(head) > characters // 2 else cut).rstrip(" ,;:") + "…"


def first_sentence(text: str, characters: int = SENTENCE) -> str:
    """The first sentence of more than two characters, clipped."""
    read = text.lstrip()[:READ_CHARACTERS].rstrip()
    first = next((part for part in _END.split(read) if len(part.strip()) > 2), read)
    return clip(" ".join(first.split()), characters)


def summarise(events: Sequence[Item], characters: int = DAY_CHARACTERS) -> str:
    """A summary of these events in at most `characters` characters."""
    ranked = sorted(enumerate(events), key=lambda entry: (-_weight(entry[1]), entry[0]))
    chosen: dict[int, str] = {}
    seen: set[str] = set()
    room = characters
    for position, event in ranked:
        sentence = first_sentence(event.title or event.text)
        if sentence.casefold() in seen or len(sentence) + 1 > room:
            continue
        seen.add(sentence.casefold())
        chosen[position] = sentence if sentence[-1:] in ".!?…。" else sentence + "."
        room -= len(chosen[position]) + 1
    order = sorted(chosen, key=lambda at: (events[at].occurred_at, events[at].rowid))
    return " ".join(chosen[at] for at in order)


def _weight(event: Item) -> float:
    weight = _WEIGHTS.get(event.event_type or "message", 1)
    weight += _STATUS_WEIGHTS.get(event.status or "", 0)
    if event.event_type == "tool_call":
        weight -= 1
    # Very short events such as "ok" and "thanks" carry no information.
    return weight + (event.salience or 0.0) - (3 if len(event.text) < 25 else 0)

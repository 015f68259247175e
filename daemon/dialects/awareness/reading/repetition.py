"""Search results that repeat each other: equal texts, and summaries of events that are shown."""

import re
from collections.abc import Sequence
from typing import Final

from store.model import Hit

_SENTENCE: Final = re.compile(r"(?<=[.!?…。！？])\s+")
READ_CHARACTERS: Final = 4_000


def without_repetitions(hits: Sequence[Hit]) -> list[Hit]:
    """The hits in order, without those whose text another hit shows.

    A text is shown once. The summary of a session is left out if at least half of its sentences, or
    all of those that matched, are part of events among the hits: a summary consists of sentences of
    the events.
    """
    events = [_plain(hit.item.text) for hit in hits if hit.item.kind in ("event", "memory")]
    kept: list[Hit] = []
    seen: set[str] = set()
    for hit in hits:
        text = _plain(
            f"{hit.item.title}\n{hit.item.text}"
            if hit.item.kind == "card"
            else hit.item.text or hit.item.title
        )
        if text in seen or (hit.item.kind == "narrative" and _is_shown(hit, events)):
            continue
        seen.add(text)
        kept.append(hit)
    return kept


def _is_shown(hit: Hit, events: Sequence[str]) -> bool:
    text = hit.item.text[:READ_CHARACTERS]
    sentences = {part: _is_part(part, events) for part in _SENTENCE.split(text) if part.strip()}
    matched = {hit.snippet[start:end] for start, end in hit.matches}
    matching = [
        is_shown for part, is_shown in sentences.items() if any(match in part for match in matched)
    ]
    return 2 * sum(sentences.values()) >= len(sentences) or (bool(matching) and all(matching))


def _is_part(sentence: str, events: Sequence[str]) -> bool:
    plain = _plain(sentence).rstrip(".…")
    return any(plain in event for event in events)


def _plain(text: str) -> str:
    return " ".join(text[:READ_CHARACTERS].casefold().split())

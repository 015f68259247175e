"""Statuses and levels of this dialect, and their synonyms."""

from typing import Final

from daemon.dialects.awareness.refusal import InvalidArgument

EVENT_STATUSES: Final = ("open", "in_progress", "resolved", "noted")
CARD_STATUSES: Final = (*EVENT_STATUSES, "superseded")
TASK_STATUSES: Final = ("pending", "in_progress", "completed")
RISK_STATUSES: Final = ("active", "mitigated", "resolved")
LEVELS: Final = ("high", "medium", "low")
#: The category of stated preferences, of cards as well as of events.
PREFERENCE: Final = "personal_preference"

_SYNONYMS: Final[tuple[tuple[str, ...], ...]] = (
    ("pending", "open", "todo", "active", "new"),
    ("completed", "resolved", "done", "closed", "finished", "complete", "fixed"),
    ("in_progress", "in-progress", "in progress", "started", "doing", "wip", "ongoing"),
    ("mitigated",),
    ("noted",),
)


def status_named(value: str, statuses: tuple[str, ...], field: str = "status") -> str:
    """The status that a word means; empty stays empty, an unknown word is refused."""
    plain = value.strip().lower()
    if not plain or plain in statuses:
        return plain
    for words in _SYNONYMS:
        if plain in words:
            found = next((status for status in statuses if status in words), None)
            if found is not None:
                return found
    raise InvalidArgument(f"{field}: must be one of {', '.join(statuses)}")


def level_named(value: str) -> str | None:
    """high, medium or low for a level or a synonym; None for any other word."""
    plain = value.strip().lower()
    return _LEVELS.get(plain, plain if plain in LEVELS else None)


_LEVELS: Final = {
    "critical": "high", "urgent": "high", "severe": "high", "p0": "high", "p1": "high",
    "normal": "medium", "moderate": "medium", "p2": "medium",
    "minor": "low", "trivial": "low", "p3": "low",
}  # fmt: skip

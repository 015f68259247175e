"""Conversation history in its usual formats: JSON, JSON lines, or a plain transcript."""

from typing import Any, Final, cast

import msgspec

from daemon.dialects.awareness.arguments import from_text
from daemon.dialects.awareness.language.detection import speaker_of
from daemon.dialects.awareness.writing.drafts import TEXT_KEYS

LISTS: Final = ("events", "messages", "history", "conversation", "steps", "items", "turns")


def entries_of(history: Any) -> list[Any]:
    """The entries of a history in order; empty if there are none."""
    history = from_text(history)
    if isinstance(history, dict):
        return _entries_in(cast("dict[str, Any]", history))
    if isinstance(history, list):
        return cast("list[Any]", history)
    if isinstance(history, str):
        return _json_lines(history) or _transcript(history)
    return []


def _entries_in(history: dict[str, Any]) -> list[Any]:
    for key in LISTS:
        found = from_text(history.get(key))
        if isinstance(found, list):
            return cast("list[Any]", found)
    return [history] if any(key in history for key in TEXT_KEYS) else []


def _json_lines(text: str) -> list[Any]:
    """One object per line, if every line is an object."""
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines or not all(line.lstrip().startswith("{") for line in lines):
        return []
    try:
        return [msgspec.json.decode(line.encode("utf-8", "replace")) for line in lines]
    except msgspec.MsgspecError:
        return []


def _transcript(text: str) -> list[Any]:
    """One turn per named speaker, or one entry per line if no speaker is named."""
    lines = text.splitlines()
    speakers = [speaker_of(line) for line in lines]
    if not any(speakers):
        return [line.strip() for line in lines if line.strip()]
    turns: list[tuple[str | None, list[str]]] = []
    for line, named in zip(lines, speakers, strict=True):
        if named is not None:
            turns.append((named[0], [named[1]]))
        elif turns:
            turns[-1][1].append(line)
        elif line.strip():
            turns.append((None, [line]))
    return [_turn(actor, said) for actor, said in turns]


def _turn(actor: str | None, said: list[str]) -> dict[str, str]:
    text = "\n".join(said).strip()
    return {"text": text} if actor is None else {"actor": actor, "text": text}

"""Conversation history, in the shapes people have it: JSON, JSON lines, or a transcript."""

from typing import Any, Final, cast

import msgspec

from daemon.dialects.awareness.arguments import from_text
from daemon.dialects.awareness.language.detection import speaker_of
from daemon.dialects.awareness.writing.drafts import TEXT_KEYS

LISTS: Final = ("events", "messages", "history", "conversation", "steps", "items", "turns")


def entries_of(history: Any) -> list[Any]:
    """The single entries of a history, in order; empty when there are none."""
    history = from_text(history)
    if isinstance(history, dict):
        return _inside(cast("dict[str, Any]", history))
    if isinstance(history, list):
        return cast("list[Any]", history)
    if isinstance(history, str):
        return _json_lines(history) or _transcript(history)
    return []


def _inside(history: dict[str, Any]) -> list[Any]:
    for key in LISTS:
        found = from_text(history.get(key))
        if isinstance(found, list):
            return cast("list[Any]", found)
    return [history] if any(key in history for key in TEXT_KEYS) else []


def _json_lines(text: str) -> list[Any]:
    """An object a line, if every line is one."""
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines or not all(line.lstrip().startswith("{") for line in lines):
        return []
    try:
        return [msgspec.json.decode(line.encode("utf-8", "replace")) for line in lines]
    except msgspec.MsgspecError:
        return []


def _transcript(text: str) -> list[Any]:
    """Where speakers are named, a turn each; else a line each."""
    lines = text.splitlines()
    if not any(speaker_of(line) for line in lines):
        return [line.strip() for line in lines if line.strip()]
    turns: list[dict[str, str]] = []
    for line in lines:
        named = speaker_of(line)
        if named is not None:
            turns.append({"actor": named[0], "text": named[1]})
        elif turns:
            turns[-1]["text"] += f"\n{line}"
        elif line.strip():
            turns.append({"text": line})
    return [{**turn, "text": turn["text"].strip()} for turn in turns]

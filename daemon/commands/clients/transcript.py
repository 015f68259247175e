"""Reads the transcript of a session and returns the part that is not stored yet, as one text.

The clients write different records, but each has a role and a content. The requests of the user and
the last answer are kept; tool calls and their output are not. Keys, tokens and passwords that
`daemon.importing.secrets` recognises are replaced by their sort. `captures.json` in the state
directory has the number of stored turns of the last sessions. Standard library only.
"""

import json
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

MAX_BYTES: Final = 64 * 1024 * 1024
MAX_SESSIONS: Final = 200
REQUESTS: Final = 12
REQUEST_CHARACTERS: Final = 300
ANSWER_CHARACTERS: Final = 1000
_ASSISTANT: Final = ("assistant", "model", "gemini", "agent")


class Part(NamedTuple):
    """The new part of a session. `turns` is the number of turns that are stored with it."""

    text: str
    session: str
    turns: int


def new_part(payload: dict[str, Any], client: str, captures: Path) -> Part | None:
    """The part of a session that is not stored yet; None if there is nothing new."""
    from daemon.importing.secrets import (
        redacted,
    )  # imported late: a session start has no need of it

    turns = _turns(payload)
    session = str(payload.get("session_id") or payload.get("conversation_id") or "")
    new = turns[int(_load(captures).get(session, 0)) :]
    # Before a text is cut, because a part of a secret is not recognised.
    new = [(role, redacted(text)) for role, text in new]
    requests = [_short(text, REQUEST_CHARACTERS) for role, text in new if role == "user"]
    if not requests:
        return None
    answers = [text for role, text in new if role == "assistant"]
    folder = Path(str(payload.get("cwd") or "")).name
    place = f" in {folder}" if folder else ""
    lines = [f"Session{place} with {client or 'an agent'}. Requests of the user:"]
    lines += [f"- {request}" for request in requests[-REQUESTS:]]
    if answers:
        lines.append(f"Last answer: {_short(answers[-1], ANSWER_CHARACTERS)}")
    return Part("\n".join(lines), session, len(turns))


def mark_stored(part: Part, captures: Path) -> None:
    """Note that a part is stored; called after the daemon acknowledged it."""
    if part.session:
        known = _load(captures)
        known.pop(part.session, None)
        _save(captures, {**known, part.session: part.turns})


def _turns(payload: dict[str, Any]) -> list[tuple[str, str]]:
    """The role and the text of each turn, from the payload itself or from the transcript."""
    records: Any = payload.get("messages")
    if not isinstance(records, list):
        records = _records(payload.get("transcript_path"))
    found = [_turn(record) for record in cast("list[Any]", records)]
    return [turn for turn in found if turn is not None]


def _records(path: Any) -> list[Any]:
    """The records of a transcript: one JSON document with `messages`, or JSON lines."""
    if not isinstance(path, str) or not path:
        return []
    file = Path(path).expanduser()
    try:
        if file.stat().st_size > MAX_BYTES:
            return []
        text = file.read_text("utf-8", errors="replace")
    except OSError:
        return []
    try:
        document: Any = json.loads(text)
        if isinstance(document, dict):
            document = cast("dict[str, Any]", document).get("messages")
        if isinstance(document, list):
            return cast("list[Any]", document)
    except ValueError:
        pass
    records: list[Any] = []
    for line in text.splitlines():
        try:
            records.append(json.loads(line))
        except ValueError:
            continue
    return records


def _turn(record: Any) -> tuple[str, str] | None:
    if not isinstance(record, dict):
        return None
    outer = cast("dict[str, Any]", record)
    if outer.get("isMeta"):
        return None
    inner: Any = outer.get("message") or outer.get("payload") or outer
    if not isinstance(inner, dict):
        return None
    body = cast("dict[str, Any]", inner)
    role = str(body.get("role") or outer.get("role") or body.get("type") or outer.get("type"))
    role = "assistant" if role in _ASSISTANT else role
    content: Any = body.get("content", body.get("text", body.get("parts")))
    text = _text(content).strip()
    # Clients put their own notices between tags: commands, reminders, the environment.
    return (role, text) if role in ("user", "assistant") and text and text[0] != "<" else None


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts: list[str] = []
    for part in cast("list[Any]", content):
        if isinstance(part, str):
            parts.append(part)
        elif isinstance(part, dict):
            block = cast("dict[str, Any]", part)
            if block.get("type", "text") in ("text", "input_text", "output_text"):
                parts.append(str(block.get("text") or ""))
    return "\n".join(parts)


def _short(text: str, limit: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def _load(path: Path) -> dict[str, Any]:
    try:
        found: Any = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _save(path: Path, known: dict[str, Any]) -> None:
    kept = dict(list(known.items())[-MAX_SESSIONS:])
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_suffix(".new")
    temporary.touch(mode=0o600)
    temporary.write_text(json.dumps(kept))
    temporary.replace(path)

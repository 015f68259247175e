"""Gemini CLI: its session files `chats/session-*.json`, and the notes `GEMINI.md`."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

from daemon.importing import foreign_files
from daemon.importing.conversations.messages import files, message, text_in
from daemon.importing.files.markdown import note_of, read_text
from daemon.importing.record import ForeignKind, Found, Memory, Rejected, WrongKind
from daemon.importing.values import milliseconds, object_of, objects_of, present, text_of

_NOTE: Final = "GEMINI.md"
_ACTORS: Final = {"user": "user", "gemini": "assistant"}
_LOOKED_AT: Final = 20


def missing(path: Path) -> str | None:
    if path.name == _NOTE or (path / _NOTE).is_file():
        return None
    for session in islice(_sessions(path), _LOOKED_AT):
        if {"sessionId", "messages"} <= object_of(foreign_files.load(session)).keys():
            return None
    return "it has no session file with `sessionId` and `messages`"


def _sessions(path: Path) -> Iterator[Path]:
    if path.name != _NOTE:
        yield from files(path, "session-*.json")


def read(path: Path) -> Iterator[Found]:
    for session in _sessions(path):
        try:
            whole = object_of(foreign_files.load(session))
        except WrongKind as wrong:
            yield Rejected(where=session.name, reason=str(wrong))
            continue
        yield from _session(whole, session.stem)
    note = path if path.name == _NOTE else path / _NOTE
    if note.is_file():
        text = read_text(note)
        yield text if isinstance(text, Rejected) else note_of(note, _NOTE, text)


def _session(whole: dict[str, Any], name: str) -> Iterator[Found]:
    session = text_of(whole.get("sessionId")) or name
    about = present({"project": whole.get("projectHash")})
    summary = text_of(whole.get("summary"))
    if summary is not None:
        yield Memory(
            original_id=f"summary/{session}",
            text=summary,
            kind="narrative",
            category="session",
            session=session,
            metadata=about,
            created_at=milliseconds(whole.get("startTime")),
        )
    for number, entry in enumerate(objects_of(whole.get("messages")), start=1):
        actor = _ACTORS.get(str(entry.get("type")))
        text = text_in(entry.get("content"))
        if actor is None or text is None:
            continue
        yield message(
            id=text_of(entry.get("id")) or f"{session}:{number}",
            text=text,
            actor=actor,
            session=session,
            created_at=milliseconds(entry.get("timestamp") or whole.get("startTime")),
            metadata=about,
        )


KIND: Final = ForeignKind(
    name="gemini-cli", title="Gemini CLI", missing=missing, read=read, usual=(".gemini",)
)

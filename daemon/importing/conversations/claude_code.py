"""Claude Code: its session files, and the notes `CLAUDE.md` and `MEMORY.md`.

A session is a file of JSON lines below `~/.claude/projects`. The texts of user and assistant become
events with their session; tool calls and their results are left out. Notes become memories.
"""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

from daemon.importing import foreign_files
from daemon.importing.conversations.messages import files, message, text_in
from daemon.importing.files.markdown import note_of, read_text
from daemon.importing.record import ForeignKind, Found, Memory, Rejected
from daemon.importing.values import milliseconds, object_of, present, text_of

_NOTES: Final = ("CLAUDE.md", "CLAUDE.local.md", "MEMORY.md")
_LOOKED_AT: Final = 20
#: Texts that the program itself puts into messages of the user.
_NOISE: Final = ("<command-", "<local-command-", "<system-reminder>", "Caveat: The messages below")


def _notes(path: Path) -> Iterator[Path]:
    if path.is_file():
        if path.name in _NOTES:
            yield path
        return
    for note in sorted(path.rglob("*.md")):
        if note.name in _NOTES or note.parent.name == "memory":
            yield note


def missing(path: Path) -> str | None:
    if path.is_file() and path.name in _NOTES:
        return None
    for session in islice(files(path, "*.jsonl"), _LOOKED_AT):
        for _, line in islice(foreign_files.json_lines(session), _LOOKED_AT):
            if {"sessionId", "type"} <= object_of(line).keys() or _is_summary(object_of(line)):
                return None
    if path.is_dir() and next(_notes(path), None) is not None:
        return None
    return "it has neither a session with `sessionId` and `type` nor a CLAUDE.md or MEMORY.md"


def _is_summary(line: dict[str, Any]) -> bool:
    return line.get("type") == "summary" and "leafUuid" in line


def read(path: Path) -> Iterator[Found]:
    if not (path.is_file() and path.name in _NOTES):
        for session in files(path, "*.jsonl"):
            yield from _session(session)
    for note in _notes(path):
        place = note.name if path.is_file() else str(note.relative_to(path))
        text = read_text(note)
        yield text if isinstance(text, Rejected) else note_of(note, place, text)


def _session(path: Path) -> Iterator[Found]:
    for number, value in foreign_files.json_lines(path):
        line = object_of(value)
        if not line:
            yield Rejected(where=f"{path.name}, line {number}", reason="is not a JSON object")
        elif _is_summary(line):
            text = text_of(line.get("summary"))
            if text is not None:
                yield Memory(
                    original_id=f"summary/{line['leafUuid']}",
                    text=text,
                    kind="narrative",
                    category="session",
                    session=path.stem,
                )
        elif line.get("type") in ("user", "assistant") and not line.get("isMeta"):
            found = _message(line, f"{path.stem}:{number}", path.stem)
            if found is not None:
                yield found


def _message(line: dict[str, Any], place: str, name: str) -> Found | None:
    text = text_in(object_of(line.get("message")).get("content"))
    if text is None or text.startswith(_NOISE):
        return None
    return message(
        id=text_of(line.get("uuid")) or place,
        text=text,
        actor=str(line["type"]),
        session=text_of(line.get("sessionId")) or name,
        created_at=milliseconds(line.get("timestamp")),
        metadata=present(
            {
                "project": line.get("cwd"),
                "branch": line.get("gitBranch"),
                "sidechain": line.get("isSidechain") or None,
            }
        ),
    )


KIND: Final = ForeignKind(
    name="claude-code",
    title="Claude Code",
    missing=missing,
    read=read,
    usual=(".claude",),
    variables=(("CLAUDE_CONFIG_DIR", ""),),
)

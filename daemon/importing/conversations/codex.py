"""Codex CLI: its session files `rollout-*.jsonl` below `~/.codex/sessions`.

The messages of user and assistant become events. Instructions that the program adds by itself, tool
calls and thoughts are left out. Older files have no envelope around a message.
"""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

from daemon.importing import foreign_files
from daemon.importing.conversations.messages import files, message, text_in
from daemon.importing.record import ForeignKind, Found, Rejected
from daemon.importing.values import milliseconds, object_of, present, text_of

_LOOKED_AT: Final = 20
_NOISE: Final = ("<environment_context>", "<user_instructions>", "# AGENTS.md instructions")


def missing(path: Path) -> str | None:
    for session in islice(files(path, "rollout-*.jsonl"), _LOOKED_AT):
        first = object_of(foreign_files.first_line(session))
        if first.get("type") == "session_meta" and isinstance(first.get("payload"), dict):
            return None
        if session.name.startswith("rollout-") and {"id", "timestamp"} <= first.keys():
            return None
    return "it has no session file that begins with `session_meta`"


def read(path: Path) -> Iterator[Found]:
    for session in files(path, "rollout-*.jsonl"):
        yield from _session(session)


def _session(path: Path) -> Iterator[Found]:
    about: dict[str, Any] = {}
    for number, value in foreign_files.json_lines(path):
        line = object_of(value)
        place = f"{path.stem}:{number}"
        if not line:
            yield Rejected(where=place, reason="is not a JSON object")
            continue
        payload = object_of(line.get("payload"))
        if line.get("type") == "session_meta":
            about = payload
        elif not about and {"id", "timestamp"} <= line.keys() and "role" not in line:
            about = line
        entry = payload if line.get("type") == "response_item" else line
        if entry.get("type") != "message" or entry.get("role") not in ("user", "assistant"):
            continue
        text = text_in(entry.get("content"))
        if text is None or text.startswith(_NOISE):
            continue
        session = text_of(about.get("id")) or path.stem
        yield message(
            id=f"{session}:{number}",
            text=text,
            actor=str(entry["role"]),
            session=session,
            created_at=milliseconds(line.get("timestamp") or about.get("timestamp")),
            metadata=present({"project": about.get("cwd")}),
        )


KIND: Final = ForeignKind(
    name="codex",
    title="Codex CLI",
    missing=missing,
    read=read,
    usual=(".codex/sessions",),
    variables=(("CODEX_HOME", "sessions"),),
)

"""Messages of conversations, as events. The content is a text or a list of parts."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, cast

from daemon.importing.record import Memory
from daemon.importing.values import object_of, text_of

#: Parts of a message that are text. Tool calls, results, thoughts and images are left out.
_TEXT_PARTS: Final = frozenset(("text", "input_text", "output_text"))


def message(
    *,
    id: str,
    text: str,
    actor: str,
    session: str | None,
    created_at: int | None,
    title: str = "",
    metadata: Mapping[str, Any] | None = None,
) -> Memory:
    return Memory(
        original_id=id,
        text=text,
        kind="event",
        event_type="message",
        actor=actor,
        session=session,
        title=title,
        metadata=metadata or {},
        created_at=created_at,
    )


def text_in(content: Any) -> str | None:
    """The text of a message; None if it has none, as a message with only a tool result."""
    if isinstance(content, str):
        return text_of(content)
    if not isinstance(content, list):
        return None
    texts: list[str] = []
    for part in cast("list[Any]", content):
        if isinstance(part, str):
            texts.append(part)
            continue
        members = object_of(part)
        if members.get("type", "text") in _TEXT_PARTS:
            texts.append(text_of(members.get("text")) or "")
    return text_of("\n".join(text for text in texts if text.strip()))


def files(path: Path, pattern: str) -> Iterator[Path]:
    """The file itself, or the files below a folder that match, in the order of their names."""
    if path.is_file():
        yield path
    else:
        yield from sorted(each for each in path.rglob(pattern) if each.is_file())

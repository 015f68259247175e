"""Claude: the data export (ZIP, folder or `conversations.json`), with the memories in it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from daemon.importing.conversations import exports
from daemon.importing.conversations.messages import message, text_in
from daemon.importing.record import ForeignKind, Found, Memory
from daemon.importing.values import content_id, milliseconds, object_of, objects_of, text_of


def missing(path: Path) -> str | None:
    return exports.lack(path, "chat_messages")


def read(path: Path) -> Iterator[Found]:
    for conversation in exports.listed(path):
        yield from _conversation(conversation)
    for entry in exports.listed(path, "memories.json"):
        yield from _memories(entry)


def _conversation(conversation: dict[str, Any]) -> Iterator[Found]:
    session = text_of(conversation.get("uuid"))
    title = text_of(conversation.get("name")) or ""
    summary = text_of(conversation.get("summary"))
    if summary is not None:
        yield Memory(
            original_id=f"summary/{session}",
            text=summary,
            kind="narrative",
            category="session",
            title=title,
            session=session,
            created_at=milliseconds(conversation.get("created_at")),
            updated_at=milliseconds(conversation.get("updated_at")),
        )
    for number, each in enumerate(objects_of(conversation.get("chat_messages")), start=1):
        text = text_in(each.get("content")) or text_of(each.get("text"))
        if text is None:
            continue
        yield message(
            id=text_of(each.get("uuid")) or f"{session}:{number}",
            text=text,
            actor="user" if each.get("sender") == "human" else "assistant",
            session=session,
            title=title,
            created_at=milliseconds(each.get("created_at")),
        )


def _memories(entry: dict[str, Any]) -> Iterator[Found]:
    texts = {"conversations": entry.get("conversations_memory")}
    texts |= object_of(entry.get("project_memories"))
    for name, value in texts.items():
        text = text_of(value)
        if text is not None:
            yield Memory(
                original_id=f"memory/{name}/{content_id(text)}",
                text=text,
                title="Memory of conversations" if name == "conversations" else "Project memory",
                category="summary",
                metadata={} if name == "conversations" else {"project": name},
            )


KIND: Final = ForeignKind(name="claude", title="Claude", missing=missing, read=read)
